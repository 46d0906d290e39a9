"""Whose pages a pointer search turns, and in what order. docs/wire.md, "Popular keys".

first pages ── opened ──> ByLot:   a few holders drawn once, each read to its end by its own cursor
                     └──> ByMerit: the next places of the ranking, each page from another holder in turn
                             ^── missed: that place again, from somebody else
"""

import random
from collections import deque

from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Found, pack_cursor, unpack_cursor

Turn = tuple[Contact, bytes]
"""Whom to ask, with which cursor."""


class ByLot:
    """Until there are `most` agents."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._cursors: dict[Contact, bytes] = {}
        self._drawn: list[Contact] | None = None

    def opened(self, contact: Contact, answer: Found) -> None:
        if answer.cursor:
            self._cursors[contact] = answer.cursor

    turned = opened

    def missed(self, cursor: bytes) -> None:
        pass

    def next(self, holders: list[Contact], crowded: bool, agents: int, rng: random.Random) -> list[Turn]:
        """agents: found so far. crowded: holders have different samples, so that all are read, each a little."""
        if agents >= self._most:
            return []
        if self._drawn is None:
            unread = [contact for contact in holders if contact in self._cursors]
            count = len(unread) if crowded else limits.POINTERS_PAGED_HOLDERS
            self._drawn = rng.sample(unread, min(count, len(unread)))
        return [(contact, self._cursors.pop(contact)) for contact in self._drawn if contact in self._cursors]


class ByMerit:
    """Until the best were given that make up `most` with those by lot. A cursor means the same place at every holder:
    whoever withholds something withholds one page of it."""

    def __init__(self, most: int) -> None:
        self._places_wanted = most - most // limits.POINTERS_LOT
        self._unread: dict[Contact, None] = {}
        self._start = 0
        self._place = self._places_wanted
        self._again: deque[int] = deque()

    def opened(self, contact: Contact, answer: Found) -> None:
        """A first page: go on after the shortest."""
        if len(answer.cursor) != limits.POINTERS_CURSOR_BYTES:
            return
        self._start, _ = unpack_cursor(answer.cursor)
        given = len(answer.frames) - len(answer.frames) // limits.POINTERS_LOT
        self._place = min(self._place, given)
        self._unread[contact] = None

    def turned(self, contact: Contact, answer: Found) -> None:
        if answer.cursor:
            self._unread[contact] = None

    def missed(self, cursor: bytes) -> None:
        self._again.append(unpack_cursor(cursor)[1])

    def next(self, holders: list[Contact], crowded: bool, agents: int, rng: random.Random) -> list[Turn]:
        turns: list[Turn] = []
        while self._unread and (self._again or self._place < self._places_wanted):
            contact = next(iter(self._unread))
            del self._unread[contact]
            turns.append((contact, pack_cursor(self._start, self._next_place())))
        return turns

    def _next_place(self) -> int:
        """One that was missed first."""
        if self._again:
            return self._again.popleft()
        place, self._place = self._place, self._place + limits.POINTERS_LOT - 1
        return place
