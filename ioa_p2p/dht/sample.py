"""Which pointers one key keeps when more want in than it may hold: a fair sample. docs/wire.md, "Popular keys".

    source A: a1 a2 a3 a4       order: the first of each source, then the second of each, and so on
    source B: b1                       a1 c1 b1 | c2 a2 | a3 | a4        over-full: the last goes
    source C: c1 c2

Who is first in a source, and who of one turn comes first, is decided by ranks that nobody outside can foresee: neither
when something comes nor how often makes a difference. So the sample of publishers that share no subnet is uniform,
and whoever floods a key from few subnets gets what the others leave.
"""

from bisect import insort
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple


class Entry(NamedTuple):
    """turn: its number within its source, from 0."""

    turn: int
    rank: bytes
    slot: bytes
    source: bytes


_turn = attrgetter("turn")


class Sample:
    """Slots with their sources and ranks, ordered. Bounded by who calls `drop_last`."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, slot: bytes, source: bytes, rank: bytes) -> None:
        own = self._of(source)
        if own:
            self._arrange(source, [*own, (rank, slot)])
        else:
            insort(self._entries, Entry(0, rank, slot, source))

    def remove(self, slot: bytes, source: bytes) -> None:
        self._arrange(source, [(rank, own) for rank, own in self._of(source) if own != slot])

    def last(self) -> bytes:
        """The slot that goes when there are too many."""
        return self._entries[-1].slot

    def order(self, start: int = 0) -> Iterator[bytes]:
        """All slots, turn after turn. start: any number; each turn is a ring that is entered there, so that readers
        with different numbers begin with different publishers."""
        for _, entries in groupby(self._entries, key=_turn):
            ring = [entry.slot for entry in entries]
            first = start % len(ring)
            yield from ring[first:]
            yield from ring[:first]

    def _of(self, source: bytes) -> list[tuple[bytes, bytes]]:
        return [(entry.rank, entry.slot) for entry in self._entries if entry.source == source]

    def _arrange(self, source: bytes, own: Iterable[tuple[bytes, bytes]]) -> None:
        others = [entry for entry in self._entries if entry.source != source]
        turns = [Entry(turn, rank, slot, source) for turn, (rank, slot) in enumerate(sorted(own))]
        self._entries = sorted(others + turns)
