"""One search for pointers: all agents under one DHT key, from all its holders. docs/wire.md, "Popular keys".

lookup of the key ── each holder's first page ──┬──> some holders, drawn by lot: page after page ──> Harvest
                                                └ by sketch: enough holders that know nothing nearer,
                                                  then further pages, each from another of them ──> Harvest
"""

import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from ioa_p2p.dht import ranking
from ioa_p2p.dht.calls import Call
from ioa_p2p.dht.harvest import Harvest
from ioa_p2p.dht.pages import ByLot, ByMerit
from ioa_p2p.dht.search import Means, Search
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Now
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, FindPointers, Found, datagram_bytes


class PointerSearch(Search):
    """Collects pointers from all holders: whoever stops at the first few is led by whoever floods.

    Without a sketch every holder gives its first page and some are read on, in step, until there are `most` agents.
    With one (64 B) the search may end as soon as a few holders on different paths gave their nearest, and turns pages
    until there are `most`. Wanted fewer than a read takes anyway, it is brief: the nearest few holders will do.
    thorough: over more paths, and every holder is heard, for what feeds an assignment. on_split(now) is called once the
    key turns out to be crowded, as soon as half of k holders say so.
    """

    request = FindPointers

    def __init__(
        self,
        means: Means,
        rng: random.Random,
        key: bytes,
        harvest: Harvest,
        done: Callable[[Now, Any], None],
        *,
        on_split: Callable[[Now], None] = lambda now: None,
        sketch: bytes = b"",
        most: int = limits.POINTERS_READ_MAX,
        thorough: bool = False,
    ) -> None:
        brief = not thorough and most < limits.POINTERS_READ_MAX
        paths = limits.DHT_PATHS_WRITE if thorough else limits.DHT_PATHS_READ
        super().__init__(means, key, done, paths, limits.POINTERS_BRIEF_K if brief else limits.DHT_K)
        self._fields = (key, b"", sketch)
        self._rng = rng
        self._harvest = harvest
        self._sketch = sketch
        self._most = most
        self._thorough = thorough
        self._on_split = on_split
        self._told_split = False
        self._read_frames: dict[bytes, Item] = {}
        self._agreeing: set[int] = set()
        self._having = 0
        self._crowded = 0
        self._answer_bytes = 0
        self._turns_left = limits.POINTERS_PAGED_HOLDERS * -(-most // limits.POINTERS_PAGE)
        self._pages = _Pages(self)
        self._book = ByMerit(most) if sketch else ByLot(most)

    @property
    def split(self) -> bool:
        """Whether at least half of the holders that have any say that the key is crowded."""
        return 0 < self._having <= 2 * self._crowded

    @property
    def rpcs(self) -> int:
        return self.lookup.calls + self._pages.asked

    @property
    def size_bytes(self) -> int:
        """Of all datagrams, both ways."""
        return self.rpcs * datagram_bytes(FindPointers(0xFFFFFFFF, False, *self._fields)) + self._answer_bytes

    def start(self, now: Now, contacts: Iterable[Contact] = ()) -> None:
        held = self._means.store.under(now, self.key)
        for one in islice(ranking.ranked(self._sketch, held) if self._sketch else held, self._most):
            self._harvest.add(one.item, self._means.peers.own, one.source_mark)
        super().start(now, contacts)

    def _take(self, now: Now, call: Call, answer: Found) -> None:
        before = self._harvest.top() if self._sketch else []
        self._gather(now, call, answer)
        if not answer.frames:
            return
        self._having += 1
        self._crowded += answer.split
        if 2 * self._crowded >= max(self._having, limits.DHT_K):
            self._tell_split(now)
        self._book.opened(call.to, answer)
        path = self.lookup.path_of(call.to)
        if self._sketch and path is not None:
            self._agreeing = {path, *(self._agreeing if before == self._harvest.top() else ())}

    def _gather(self, now: Now, call: Call, answer: Found) -> None:
        self._answer_bytes += datagram_bytes(answer)
        size = limits.POINTER_SOURCE_BYTES
        for number, raw in enumerate(answer.frames):
            item = self._read_frames.get(raw) or self._read(now, raw)
            if item is not None:
                self._read_frames[raw] = item
                self._harvest.add(item, call.to.key, answer.sources[number * size : (number + 1) * size])

    def _finish(self, now: Now) -> None:
        if self.split and not self.finished:
            self._tell_split(now)
        super()._finish(now)

    def _tell_split(self, now: Now) -> None:
        if not self._told_split:
            self._told_split = True
            self._on_split(now)

    # -- when it ends

    @property
    def _agreed(self) -> bool:
        return not self._thorough and len(self._agreeing) >= limits.POINTERS_AGREE

    def _enough(self) -> bool:
        return self._agreed and not self._pages.under_way

    def _hold_back(self) -> bool:
        """As long as nobody asked lacks it, those under way are likely to make it enough."""
        if not self._sketch or self._thorough:
            return False
        hopeful = bool(self._agreeing) or not self.tokens
        return self._agreed or (hopeful and len(self._agreeing | self.lookup.paths_under_way) >= limits.POINTERS_AGREE)

    def _busy(self) -> bool:
        return self._pages.under_way > 0

    # -- further pages

    def _step(self, now: Now) -> None:
        settled = (self._agreed or self.lookup.done) and not self.finished and not self._pages.under_way
        if settled and self._turns_left:
            self._turn_pages(now)
        super()._step(now)

    def _turn_pages(self, now: Now) -> None:
        """One of each holder that is read on: in step, so that none brings in more than the others."""
        turns = self._book.next(self.holders, self.split, len(self._harvest), self._rng)
        for contact, cursor in turns[: self._turns_left]:
            self._turns_left -= 1
            self._pages.open()
            fields = (self.key, cursor, self._sketch)
            self._means.calls.ask(now, contact, FindPointers, Found, self._pages, cursor, *fields)

    def page(self, now: Now, call: Call, answer: Found) -> None:
        """A later page of one holder came."""
        if not self.finished:
            self._gather(now, call, answer)
            self._book.turned(call.to, answer)
            self._step(now)

    def page_missed(self, now: Now, cursor: bytes) -> None:
        """cursor: empty if nobody waits for it any more."""
        if cursor:
            self._book.missed(cursor)
            self._step(now)


class _Pages:
    """The Asker for later pages, which are no part of the lookup. A call's subject is its cursor while it is waited
    for; who is slow is not, but counts when it comes."""

    def __init__(self, search: PointerSearch) -> None:
        self.asked = 0
        self.under_way = 0
        self._search = search

    def open(self) -> None:
        self.asked += 1
        self.under_way += 1

    def answered(self, now: Now, call: Call, answer: Found) -> None:
        self._close(call)
        self._search.page(now, call, answer)

    def slow(self, now: Now, call: Call) -> None:
        self._search.page_missed(now, self._close(call))

    def lost(self, now: Now, call: Call) -> None:
        self._search.page_missed(now, self._close(call))

    def _close(self, call: Call) -> bytes:
        """The cursor, if it was still waited for."""
        cursor, call.subject = call.subject, b""
        self.under_way -= bool(cursor)
        return cursor
