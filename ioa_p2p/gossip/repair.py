"""Repair: which missing range of an author's chain is asked of whom, and again of another.

marks say others hold more ── ask ──> Want to the least busy holder ── entries, Served ──> next range at once
                                          └── nothing of what was asked in 2 s: another holder; this one rests
                                              for 2, 4 .. 30 s, or until it tells its frontier anew

No entry is asked of two members at once, so what comes is hardly more than what was missing. A member is asked for one
range at first, and for one more at a time with each that it brings: a slow link is never given more than it can carry.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ioa_p2p.gossip.log import Chain
from ioa_p2p.wire import limits


@dataclass(frozen=True, slots=True)
class Asked:
    """One range under way: of whom (None: of nobody, all rest), first..last, when to look again and when to give it
    up (boot)."""

    peer: bytes | None
    first: int
    last: int
    deadline: float
    until: float


@dataclass(frozen=True, slots=True)
class Rest:
    """A holder that did not help with an author: not asked before `until` (boot), then for `wait_s` longer."""

    until: float
    wait_s: float


class Repair:
    """At most one range an author is under way, and at most CHAT_WANTS_AT_ONCE a member."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._asked: dict[bytes, Asked] = {}
        self._resting: dict[tuple[bytes, bytes], Rest] = {}
        self._room: dict[bytes, int] = {}
        self._heard: dict[bytes, float] = {}

    @property
    def next_due(self) -> float | None:
        return min((asked.deadline for asked in self._asked.values()), default=None)

    def ask(self, boot: float, author: bytes, chain: Chain, holders: dict[bytes, int]) -> tuple[bytes, int, int] | None:
        """Whom to ask for the author's next range now, and which; or None.

        holders: linked members that hold more than we do -> how far they hold the chain.
        """
        asked = self._asked.get(author)
        if not holders:
            self._asked.pop(author, None)
            return None
        if asked is not None and asked.peer is not None:
            if self._is_coming(boot, author, asked):
                return None
            self._rest(boot, author, asked.peer)
        self._asked.pop(author, None)
        return self._choose(boot, author, chain, holders)

    def is_answer(self, boot: float, author: bytes, seq: int, peer: bytes) -> bool:
        """Whether this entry was asked of `peer`; it then counts as being at work on all it was asked for."""
        asked = self._asked.get(author)
        if asked is None or asked.peer != peer or not asked.first <= seq <= asked.last:
            return False
        self._heard[peer] = boot
        return True

    def end(self, boot: float, author: bytes, chain: Chain, peer: bytes, first: int) -> bool:
        """`peer` says that its answer is complete. True if it is the answer we wait for: ask on, or another."""
        asked = self._asked.get(author)
        if asked is None or (asked.peer, asked.first) != (peer, first):
            return False
        del self._asked[author]
        if chain.head >= first:
            self._helped(author, peer)
        else:
            self._rest(boot, author, peer)
        return True

    def settle(self, chains: Mapping[bytes, Chain]) -> None:
        """Ranges that are here, by whatever way, make room for others."""
        for author, asked in list(self._asked.items()):
            if asked.peer is not None and author in chains and chains[author].head >= asked.last:
                del self._asked[author]
                self._helped(author, asked.peer)

    def hear(self, peer: bytes) -> None:
        """`peer` gave a sign of life: it need not rest."""
        self._resting = {pair: rest for pair, rest in self._resting.items() if pair[1] != peer}

    def lose(self, peer: bytes) -> None:
        """`peer` is gone: what was asked of it may be asked of another."""
        self._asked = {author: asked for author, asked in self._asked.items() if asked.peer != peer}
        self._room.pop(peer, None)
        self._heard.pop(peer, None)

    def _helped(self, author: bytes, peer: bytes) -> None:
        self._resting.pop((author, peer), None)
        self._room[peer] = min(self._room.get(peer, 1) + 1, limits.CHAT_WANTS_AT_ONCE)

    def _is_coming(self, boot: float, author: bytes, asked: Asked) -> bool:
        """Whether to go on waiting. An answer waits its turn behind others on the same link."""
        assert asked.peer is not None, "only a range that was asked of somebody can come"
        heard = self._heard.get(asked.peer, 0.0)
        due = min(max(asked.deadline, heard + limits.CHAT_ANSWER_S), asked.until)
        if boot >= due - limits.CHAT_EARLY_S:
            return False
        self._asked[author] = replace(asked, deadline=due)
        return True

    def _choose(
        self, boot: float, author: bytes, chain: Chain, holders: dict[bytes, int]
    ) -> tuple[bytes, int, int] | None:
        """The least busy that does not rest; between equals the author itself, else anyone."""
        rests = {holder: self._resting.get((author, holder)) for holder in holders}
        ready = [holder for holder, rest in rests.items() if rest is None or rest.until <= boot + limits.CHAT_EARLY_S]
        if not ready:
            until = min(rest.until for rest in rests.values() if rest)
            self._asked[author] = Asked(None, 0, 0, until, until)
            return None
        busy = Counter(asked.peer for asked in self._asked.values())
        free = [holder for holder in ready if busy[holder] < self._room.get(holder, 1)]
        if not free:
            return None  # a range of theirs is under way: its end, or its deadline, brings us back
        peer = self._least_busy(author, free, busy)
        first, last = span(chain, holders[peer])
        until = boot + limits.CHAT_RANGE_S_MAX
        self._asked[author] = Asked(peer, first, last, boot + limits.CHAT_ANSWER_S, until)
        return peer, first, last

    def _least_busy(self, author: bytes, free: Sequence[bytes], busy: Counter[bytes | None]) -> bytes:
        least = min(busy[holder] for holder in free)
        equal = [holder for holder in free if busy[holder] == least]
        return author if author in equal else self._rng.choice(equal)

    def _rest(self, boot: float, author: bytes, peer: bytes) -> None:
        last = self._resting.get((author, peer))
        wait_s = limits.CHAT_ANSWER_S if last is None else min(last.wait_s * 2, limits.CHAT_ANSWER_S_MAX)
        self._resting[author, peer] = Rest(boot + wait_s, wait_s)
        self._room.pop(peer, None)


def span(chain: Chain, held: int) -> tuple[int, int]:
    """The range to ask of a member that holds the chain up to `held`: from our head to the next entry we have."""
    first, gap = chain.head + 1, chain.gap
    last = min(held, chain.head + limits.CHAT_WANT_ENTRIES_MAX)
    return first, last if gap is None else min(last, gap - 1)
