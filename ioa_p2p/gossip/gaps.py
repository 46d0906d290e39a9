"""Entries that nobody has: how long a chain has not grown although later entries of it are here.

    entry beyond a hole ── look ──> since when ── 60 s without growth ──> overdue: the hole is marked, the talk goes on
                                      └── the chain grows ──> anew

A marked gap counts as met. It is asked for again with each frontier that is heard, and filled if it turns up.
"""

from collections.abc import Iterable, Mapping

from ioa_p2p.gossip.log import Chain
from ioa_p2p.wire import limits


class Gaps:
    """chains: the live map of members' chains."""

    def __init__(self, chains: Mapping[bytes, Chain]) -> None:
        self._chains = chains
        self._since: dict[bytes, float] = {}

    def look(self, boot: float, author: bytes, *, grown: bool = False) -> None:
        """Something of `author` was taken in; grown: its head moved."""
        chain = self._chains[author]
        if grown or chain.gap is None:
            self._since.pop(author, None)
        if chain.gap is not None:
            self._since.setdefault(author, boot)

    @property
    def next_due(self) -> float | None:
        """Boot time when the oldest hole counts as met."""
        since = min((since for author, since in self._since.items() if self._is_open(author)), default=None)
        return None if since is None else since + limits.CHAT_GAP_S

    def overdue(self, boot: float) -> list[bytes]:
        """Authors of holes that nobody could fill in time."""
        latest = boot + limits.CHAT_EARLY_S - limits.CHAT_GAP_S
        return [author for author, since in self._since.items() if since <= latest and self._is_open(author)]

    def _is_open(self, author: bytes) -> bool:
        chain = self._chains.get(author)
        return chain is not None and chain.gap is not None


def runs(holes: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as ranges (first, last), in order."""
    found: list[tuple[int, int]] = []
    for seq in sorted(holes):
        if found and found[-1][1] == seq - 1:
            found[-1] = found[-1][0], seq
        else:
            found.append((seq, seq))
    return found
