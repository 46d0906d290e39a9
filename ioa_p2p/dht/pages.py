"""Whose pages a pointer search turns, and in what order. docs/wire.md, "Popular keys".

first pages ── opened ──> ByLot:   a few holders drawn once, each read to its end by its own cursor
                     └──> ByMerit: the next places of the ranking, each page from another holder in turn
                             ^── missed: that place again, from somebody else
"""

import random
from collections import deque
from collections.abc import Iterator

from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Found, pack_cursor, unpack_cursor

Turn = tuple[Contact, bytes]
"""Whom to ask, with which cursor."""


class ByLot:
    """crowded: holders have different samples, so that each one's share is small and all are read."""

    def __init__(self) -> None:
        self._cursors: dict[Contact, bytes] = {}
        self._drawn: list[Contact] | None = None

    def opened(self, contact: Contact, answer: Found) -> None:
        if answer.cursor:
            self._cursors[contact] = answer.cursor

    turned = opened

    def missed(self, cursor: bytes) -> None:
        pass

    def next(self, holders: list[Contact], crowded: bool, lacking: int, rng: random.Random) -> list[Turn]:
        if self._drawn is None:
            unread = [contact for contact in holders if contact in self._cursors]
            count = len(unread) if crowded else limits.POINTERS_PAGED_HOLDERS
            self._drawn = rng.sample(unread, min(count, len(unread)))
        return [(contact, self._cursors.pop(contact)) for contact in self._drawn if contact in self._cursors]


class ByMerit:
    """A cursor means the same place at every holder: whoever withholds something withholds one page of it."""

    def __init__(self) -> None:
        self._unread: dict[Contact, None] = {}
        self._start = 0
        self._place: int | None = None
        self._again: deque[int] = deque()

    def opened(self, contact: Contact, answer: Found) -> None:
        """A first page: go on after the shortest."""
        if len(answer.cursor) != limits.POINTERS_CURSOR_BYTES:
            return
        self._start, _ = unpack_cursor(answer.cursor)
        given = len(answer.frames)
        self._place = given if self._place is None else min(self._place, given)
        self._unread[contact] = None

    def turned(self, contact: Contact, answer: Found) -> None:
        if answer.cursor:
            self._unread[contact] = None

    def missed(self, cursor: bytes) -> None:
        self._again.append(unpack_cursor(cursor)[1])

    def next(self, holders: list[Contact], crowded: bool, lacking: int, rng: random.Random) -> list[Turn]:
        pages = -(-lacking // limits.POINTERS_PAGE)
        turns = list(self._unread)[:pages]
        for contact in turns:
            del self._unread[contact]
        return [
            (contact, pack_cursor(self._start, place)) for contact, place in zip(turns, self._places(), strict=False)
        ]

    def _places(self) -> Iterator[int]:
        """Those that were missed first."""
        while True:
            if self._again:
                yield self._again.popleft()
            else:
                assert self._place is not None
                yield self._place
                self._place += limits.POINTERS_PAGE
