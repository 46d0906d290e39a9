"""Repair: which missing range of an author's chain is asked of whom, and again of another.

marks say others hold more ── ask ──> Want to one holder ── entries, end mark ──> next range at once
                                          └── no progress in 2 s: another holder; this one rests
                                              for 2, 4 .. 30 s, or until it tells its frontier anew
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.gossip.log import Chain
from ioa_p2p.wire import limits


@dataclass(frozen=True, slots=True)
class Asked:
    """One range under way: of whom, where the chain stood, when to look again (boot)."""

    peer: bytes | None
    head: int
    deadline: float


@dataclass(frozen=True, slots=True)
class Rest:
    """A holder that did not help with an author: not asked before `until` (boot), then for `wait_s` longer."""

    until: float
    wait_s: float


class Repair:
    """At most one range an author is under way, so repair never floods anyone."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._asked: dict[bytes, Asked] = {}
        self._resting: dict[tuple[bytes, bytes], Rest] = {}

    @property
    def next_due(self) -> float | None:
        return min((asked.deadline for asked in self._asked.values()), default=None)

    def ask(self, boot: float, author: bytes, chain: Chain, holders: Sequence[bytes]) -> bytes | None:
        """Whom to ask for the author's next range now, or None. holders: linked members that hold more."""
        asked = self._asked.get(author)
        if not holders:
            self._asked.pop(author, None)
            return None
        if asked and asked.peer and boot < asked.deadline - limits.CHAT_EARLY_S:
            return None
        if asked and asked.peer and asked.head == chain.head:
            self._rest(boot, author, asked.peer)
        peer, deadline = self._choose(boot, author, holders)
        self._asked[author] = Asked(peer, chain.head, deadline)
        return peer

    def end(self, author: bytes, chain: Chain, peer: bytes) -> bool:
        """`peer` says its answer is complete. True if it helped: the next range may go at once."""
        asked = self._asked.get(author)
        if asked is None or asked.peer != peer or chain.head == asked.head:
            return False
        del self._asked[author]
        self._resting.pop((author, peer), None)
        return True

    def hear(self, peer: bytes) -> None:
        """`peer` gave a sign of life: it need not rest."""
        self._resting = {pair: rest for pair, rest in self._resting.items() if pair[1] != peer}

    def lose(self, peer: bytes) -> None:
        """`peer` is gone: what was asked of it may be asked of another."""
        self._asked = {author: asked for author, asked in self._asked.items() if asked.peer != peer}

    def _choose(self, boot: float, author: bytes, holders: Sequence[bytes]) -> tuple[bytes | None, float]:
        """The author itself if it can, else anyone who does not rest; and when to look again."""
        rests = {holder: self._resting.get((author, holder)) for holder in holders}
        ready = [holder for holder, rest in rests.items() if rest is None or rest.until <= boot + limits.CHAT_EARLY_S]
        if not ready:
            return None, min(rest.until for rest in rests.values() if rest)
        return author if author in ready else self._rng.choice(ready), boot + limits.CHAT_ANSWER_S

    def _rest(self, boot: float, author: bytes, peer: bytes) -> None:
        last = self._resting.get((author, peer))
        wait_s = limits.CHAT_ANSWER_S if last is None else min(last.wait_s * 2, limits.CHAT_ANSWER_S_MAX)
        self._resting[author, peer] = Rest(boot + wait_s, wait_s)


def span(chain: Chain, held: int) -> tuple[int, int]:
    """The range to ask of a member that holds the chain up to `held`: from our head to the next entry we have."""
    first, gap = chain.head + 1, chain.gap
    last = min(held, chain.head + limits.CHAT_WANT_ENTRIES_MAX)
    return first, last if gap is None else min(last, gap - 1)
