"""Repair: which missing range of an author's chain is asked of whom, and again of another.

marks say others hold more ── ask ──> Want to one holder ── entries, end mark ──> next range at once
                                          └── no progress in 2 s (then 4, 8 .. 30): another holder
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.gossip.log import Chain
from ioa_p2p.wire import limits


@dataclass(frozen=True, slots=True)
class Asked:
    """One range under way: of whom, where the chain stood, when to give up."""

    peer: bytes
    head: int
    deadline: float
    wait_s: float


class Repair:
    """At most one range an author is under way, so repair never floods anyone."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._asked: dict[bytes, Asked] = {}

    @property
    def next_due(self) -> float | None:
        return min((asked.deadline for asked in self._asked.values()), default=None)

    def ask(self, boot: float, author: bytes, chain: Chain, holders: Sequence[bytes]) -> bytes | None:
        """Whom to ask for the author's next range now, or None. holders: linked members that hold more."""
        asked = self._asked.get(author)
        if not holders:
            self._asked.pop(author, None)
            return None
        if asked and boot < asked.deadline:
            return None
        wait_s, others = limits.CHAT_ANSWER_S, list(holders)
        if asked and asked.head == chain.head:
            wait_s = min(asked.wait_s * 2, limits.CHAT_ANSWER_S_MAX)
            others = [holder for holder in holders if holder != asked.peer] or others
        peer = author if author in others else self._rng.choice(others)
        self._asked[author] = Asked(peer, chain.head, boot + wait_s, wait_s)
        return peer

    def end(self, author: bytes, chain: Chain, peer: bytes) -> bool:
        """`peer` says its answer is complete. True if it helped: the next range may go at once."""
        asked = self._asked.get(author)
        if asked is None or asked.peer != peer or chain.head == asked.head:
            return False
        del self._asked[author]
        return True

    def lose(self, peer: bytes) -> None:
        """`peer` is gone: what was asked of it may be asked of another."""
        self._asked = {author: asked for author, asked in self._asked.items() if asked.peer != peer}


def span(chain: Chain, held: int) -> tuple[int, int]:
    """The range to ask of a member that holds the chain up to `held`: from our head to the next entry we have."""
    first, gap = chain.head + 1, chain.gap
    last = min(held, chain.head + limits.CHAT_WANT_ENTRIES_MAX)
    return first, last if gap is None else min(last, gap - 1)
