"""The newest record of an agent, straight from its own node: one request where a pointer said that it is.

    FetchRecord ── FindRecord ──> the node itself ── its record ──> RecordFound(direct)
                        └── slow, lost, nothing there ──> RecordSearch among the holders ──> RecordFound

That the node answers proves that it lives, which no holder can say of it. docs/wire.md, "DHT".
"""

from collections.abc import Callable

from ioa_p2p.dht.calls import Call
from ioa_p2p.dht.search import Means
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.wire.dht import Contact, FindRecord, Found


class DirectRecord:
    """done(now, item | None) is called once: with the answer, or without one when patience ends."""

    def __init__(self, means: Means, key: bytes, done: Callable[[Now, Item | None], None]) -> None:
        self._means = means
        self._key = key
        self._done = done
        self._open = True

    def start(self, now: Now, contact: Contact) -> None:
        self._means.calls.ask(now, contact, FindRecord, Found, self, None, self._key)

    def answered(self, now: Now, call: Call, answer: Found) -> None:
        self._end(now, self._read(now, answer.frames[0]) if answer.frames else None)

    def slow(self, now: Now, call: Call) -> None:
        self._end(now, None)

    def lost(self, now: Now, call: Call) -> None:
        self._end(now, None)

    def _read(self, now: Now, raw: bytes) -> Item | None:
        try:
            return self._means.gate.read(now, raw, self._key)
        except PeerError as fault:
            self._means.faults[fault.code] += 1
            return None

    def _end(self, now: Now, item: Item | None) -> None:
        if self._open:
            self._open = False
            self._done(now, item)
