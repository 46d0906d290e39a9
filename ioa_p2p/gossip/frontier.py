"""How far everybody is: our own frontier to tell, and the marks we heard of others.

    chains ── heads ──> Frontier ──> member           Frontier | Held | an entry itself ──> Marks

docs/wire.md, "Team channel": a frontier is author -> (seq, 8 B head hash).
"""

from collections.abc import Iterable, Mapping

from ioa_p2p.gossip.log import Chain
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Head


def heads(chains: Mapping[bytes, Chain], linked: Iterable[bytes]) -> tuple[Head, ...]:
    """What we hold of each chain, as many as fit, and with whom we have a live link."""
    live = frozenset(linked)
    members_first = sorted(chains.items(), key=lambda item: item[1].cut is not None)
    return tuple(
        Head(author, chain.counts_to, chain.short(chain.counts_to), author in live)
        for author, chain in members_first[: limits.CHAT_MEMBERS_MAX]
    )


def lacks(told: Iterable[Head], chains: Mapping[bytes, Chain]) -> bool:
    """Whether the member that told these heads misses something that we hold."""
    theirs = {head.author: head.seq for head in told}
    return any(chain.counts_to > theirs.get(author, 0) for author, chain in chains.items())


def differs(head: Head, chain: Chain) -> bool:
    """Whether a told head names another history than ours: a fork, if its entry proves it."""
    return 0 < head.seq <= chain.counts_to and chain.knows(head.seq) and chain.short(head.seq) != head.hash


class Marks:
    """Who holds how much of whose chain, as far as we know. Only ever rises."""

    def __init__(self) -> None:
        self._held: dict[bytes, dict[bytes, int]] = {}

    def rise(self, author: bytes, member: bytes, seq: int) -> bool:
        """Note that `member` holds `author`'s chain up to `seq`. True if that is news."""
        held = self._held.setdefault(author, {})
        if held.get(member, 0) >= seq:
            return False
        held[member] = seq
        return True

    def of(self, author: bytes, member: bytes) -> int:
        held = self._held.get(author)
        return held.get(member, 0) if held else 0

    def holders(self, author: bytes, seq: int) -> list[bytes]:
        """Members that hold `author`'s chain up to `seq` at least."""
        return [member for member, held in self._held.get(author, {}).items() if held >= seq]
