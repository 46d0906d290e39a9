"""Which pointers one key keeps when more want in than it may hold: a fair sample. docs/wire.md, "Popular keys".

    source A: a1 a2 a3 a4       order: the first of each source, then the second of each, and so on
    source B: b1                       a1 c1 b1 | c2 a2 | a3 | a4        over-full: the last goes
    source C: c1 c2

Who is first in a source, and who of one turn comes first, is decided by ranks that nobody outside can foresee: neither
when something comes nor how often makes a difference. So the sample of publishers that share no subnet is uniform,
and whoever floods a key from few subnets gets what the others leave.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

_LAST_TURN = 63  # of a source with more, the rest stand there together: so few move when one comes or goes


class Entry(NamedTuple):
    """turn: its number within its source, from 0."""

    turn: int
    rank: bytes
    slot: bytes
    source: bytes


_turn = attrgetter("turn")


class Sample:
    """Slots with their sources and ranks, ordered. Its bound is the caller's, who takes out the `last`."""

    __slots__ = ("_entries", "_sources")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._sources: dict[bytes, list[tuple[bytes, bytes]]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, slot: bytes, source: bytes, rank: bytes) -> None:
        own = self._sources.setdefault(source, [])
        place = bisect_left(own, (rank, slot))
        for entry in self._turns(source, place, _LAST_TURN):
            self._take_out(entry)
        own.insert(place, (rank, slot))
        for entry in self._turns(source, place, max(place, _LAST_TURN) + 1):
            insort(self._entries, entry)

    def remove(self, slot: bytes, source: bytes, rank: bytes) -> None:
        own = self._sources[source]
        place = bisect_left(own, (rank, slot))
        for entry in self._turns(source, place, max(place, _LAST_TURN) + 1):
            self._take_out(entry)
        del own[place]
        for entry in self._turns(source, place, _LAST_TURN):
            insort(self._entries, entry)
        if not own:
            del self._sources[source]

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

    def _turns(self, source: bytes, begin: int, end: int) -> list[Entry]:
        own = enumerate(self._sources[source][begin:end], begin)
        return [Entry(min(turn, _LAST_TURN), rank, slot, source) for turn, (rank, slot) in own]

    def _take_out(self, entry: Entry) -> None:
        del self._entries[bisect_left(self._entries, entry)]
