"""Searches and puts that our own side asked for by number: so many at a time, the others wait their turn.

SearchRecord | FetchRecord | SearchPointers | PutFrame ──> waiting ──> under way ──> RecordFound | PointersFound
                                                           full: UsageError          | FramePut
"""

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ioa_p2p.dht import commands, events, space
from ioa_p2p.dht.direct import DirectRecord
from ioa_p2p.dht.index import is_cell_key
from ioa_p2p.dht.put import Put
from ioa_p2p.dht.reading import Reading
from ioa_p2p.dht.records import is_past, item_of
from ioa_p2p.dht.search import Means, RecordSearch, Search
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Effect, Emit, Now
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact, unpack_endpoint
from ioa_p2p.wire.records import AgentRecord

Query = commands.SearchRecord | commands.FetchRecord | commands.SearchPointers | commands.PutFrame


class Queries:
    """seen() gives `(host, port)` of our DHT as peers see it, or None."""

    def __init__(
        self, means: Means, rng: random.Random, out: list[Effect], seen: Callable[[], tuple[str, int] | None]
    ) -> None:
        self._means = means
        self._rng = rng
        self._out = out
        self._seen = seen
        self._under_way = 0
        self._waiting: deque[Callable[[Now], None]] = deque()

    def ask(self, now: Now, query: Query) -> None:
        """Begin it, or have it wait. Raises UsageError('busy' | 'bad-frame')."""
        begin = self._beginning(query)
        if self._under_way < limits.DHT_SEARCHES_MAX:
            self._under_way += 1
            begin(now)
        elif len(self._waiting) < limits.DHT_QUEUE_MAX:
            self._waiting.append(begin)
        else:
            raise UsageError("busy", "too many searches wait already", "ask again in a while")

    def _beginning(self, query: Query) -> Callable[[Now], None]:
        match query:
            case commands.SearchRecord(request, node, agent, thorough):
                return partial(self._search_record, request, ids.record_key(node, agent), thorough)
            case commands.FetchRecord():
                return partial(self._fetch_record, query)
            case commands.SearchPointers():
                return partial(self._search_pointers, query)
            case commands.PutFrame(request, frame):
                return partial(self._put_frame, request, _own_item(frame))

    def _end(self, now: Now, event: Any) -> None:
        self._out.append(Emit(event))
        self._under_way -= 1
        if self._waiting:
            self._under_way += 1
            self._waiting.popleft()(now)

    # -- records

    def _search_record(self, request: int, key: bytes, thorough: bool, now: Now) -> None:
        RecordSearch(self._means, key, partial(self._record_found, request), thorough=thorough).start(now)

    def _fetch_record(self, query: commands.FetchRecord, now: Now) -> None:
        """The endpoint is of a proven pointer, so bytes can be sent to it; but no stranger sends us into our own
        network."""
        key = ids.record_key(query.node, query.agent)
        contact = Contact(query.node, *unpack_endpoint(query.endpoint)) if query.endpoint else None
        if contact is None or query.node == self._means.peers.own or not self._is_outside(contact):
            self._search_record(query.request, key, False, now)
        else:
            DirectRecord(self._means, key, partial(self._record_fetched, query.request)).start(now, contact)

    def _is_outside(self, contact: Contact) -> bool:
        """Whether the endpoint lies no deeper in private networks than we do, as far as we know."""
        seen = self._seen()
        return seen is None or space.scope(contact.host) >= space.scope(seen[0])

    def _record_fetched(self, request: int, now: Now, fetch: DirectRecord) -> None:
        self._tell_record(
            now,
            request,
            fetch.item,
            fetch.asked,
            fetch.answers,
            copies=fetch.copies,
            direct=fetch.direct,
            silent=fetch.silent,
        )

    def _record_found(self, request: int, now: Now, search: RecordSearch) -> None:
        self._tell_record(now, request, search.item, search.lookup.calls, len(search.tokens), copies=search.copies)

    def _tell_record(self, now: Now, request: int, item: Item | None, asked: int, answered: int, **told: Any) -> None:
        record = item.body if item is not None and not is_past(now, item.body) else None
        assert record is None or isinstance(record, AgentRecord)
        age_s = max(0.0, now.wall - record.issued) if record is not None else 0.0
        self._end(now, events.RecordFound(request, record, asked, answered, age_s, **told))

    # -- pointers

    def _search_pointers(self, query: commands.SearchPointers, now: Now) -> None:
        Reading(
            self._means,
            self._rng,
            ids.index_key(query.key),
            partial(self._pointers_found, query.request),
            sketch=query.sketch if is_cell_key(query.key) else b"",
            wanted=query.wanted,
            thorough=query.thorough,
        ).start(now)

    def _pointers_found(self, request: int, now: Now, reading: Reading) -> None:
        picked = [one for one in reading.harvest.pick(reading.wanted) if not is_past(now, one[0])]
        pointers, holders = tuple(pointer for pointer, _ in picked), tuple(count for _, count in picked)
        cost = (reading.rpcs, reading.size_bytes)
        self._end(now, events.PointersFound(request, pointers, reading.asked, reading.answered, holders, *cost))

    # -- puts

    def _put_frame(self, request: int, item: Item, now: Now) -> None:
        put = Put(self._means.calls, item.raw, partial(self._frame_put, request))
        Search(self._means, item.key, lambda now, search: put.store(now, search)).start(now)

    def _frame_put(self, request: int, now: Now, put: Put) -> None:
        self._end(now, events.FramePut(request, put.succeeded, put.confirmed, put.holders))


def _own_item(frame: bytes) -> Item:
    """A frame our own side wants put. Raises UsageError('bad-frame')."""
    try:
        return item_of(frame)
    except PeerError as fault:
        raise UsageError("bad-frame", f"no record or pointer: {fault.code}", "seal it first") from None
