"""Pointer searches: all agents under one index key, from all its holders. docs/wire.md, "DHT".

lookup of the key ── each holder's first page ──> items, one a slot, the newest
                  └─ the nearest few holders: page after page, by cursor
"""

from collections.abc import Callable, Iterable
from typing import Any

from ioa_p2p.dht.calls import Call
from ioa_p2p.dht.search import Means, Search
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Now
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, FindPointers, Found


class PointerSearch(Search):
    """Collects the pointers under `key` from all holders: whoever stops at the first few is led by whoever floods.

    Every holder gives its first page; the nearest few are read to the end, at most `limits.POINTERS_READ_MAX` in all.
    """

    request = FindPointers

    def __init__(self, means: Means, key: bytes, done: Callable[[Now, Any], None], *, thorough: bool = False) -> None:
        super().__init__(means, key, done, limits.DHT_PATHS_WRITE if thorough else limits.DHT_PATHS_READ)
        self.items: dict[bytes, Item] = {}
        self._seen: set[bytes] = set()
        self._cursors: dict[bytes, bytes] = {}
        self._pages = _Pages(self)

    def start(self, now: Now, contacts: Iterable[Contact] = ()) -> None:
        for held in self._means.store.under(now, self.key):
            self._collect(held.item)
        super().start(now, contacts)

    def _take(self, now: Now, call: Call, answer: Found) -> None:
        for raw in answer.frames:
            if raw not in self._seen and len(self.items) < limits.POINTERS_READ_MAX:
                item = self._read(now, raw)
                if item is not None:
                    self._collect(item)
        self._cursors[call.to.key] = answer.cursor

    def _collect(self, item: Item) -> None:
        self._seen.add(item.raw)
        known = self.items.get(item.slot)
        if known is None or (item.body.seq, known.hash) > (known.body.seq, item.hash):
            self.items[item.slot] = item

    def _busy(self) -> bool:
        return self._pages.under_way > 0

    def _step(self, now: Now) -> None:
        if not self.finished and self.lookup.done and len(self.items) < limits.POINTERS_READ_MAX:
            self._turn_pages(now)
        super()._step(now)

    def _turn_pages(self, now: Now) -> None:
        for contact in self.holders[: limits.POINTERS_PAGED_HOLDERS]:
            cursor = self._cursors.pop(contact.key, b"")
            if cursor:
                self._pages.under_way += 1
                self._means.calls.ask(now, contact, FindPointers, Found, self._pages, None, self.key, cursor)

    def page(self, now: Now, call: Call, answer: Found) -> None:
        """A later page of one holder came."""
        if not self.finished:
            self._take(now, call, answer)
            self._step(now)

    def page_missed(self, now: Now) -> None:
        self._step(now)


class _Pages:
    """The Asker for later pages: they are no part of the lookup."""

    def __init__(self, search: PointerSearch) -> None:
        self.under_way = 0
        self._search = search

    def answered(self, now: Now, call: Call, answer: Found) -> None:
        self.under_way -= 1
        self._search.page(now, call, answer)

    def slow(self, now: Now, call: Call) -> None:
        self.under_way -= not call.subject
        call.subject = True
        self._search.page_missed(now)

    def lost(self, now: Now, call: Call) -> None:
        self.under_way -= not call.subject
        self._search.page_missed(now)
