"""Searches: lookups carried out. One for nodes, one for a record, one for pointers.

    start ── closest known ──> Lookup.next ──> ask ──> answered: learn contacts, take frames ──> enough, or done
                                   ^                                   │
                                   └───────── slow, lost: go on ───────┘

No rounds: every answer, slow peer or miss lets the next request go at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ioa_p2p.dht import space
from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.calls import Call, Calls
from ioa_p2p.dht.lookup import Lookup
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.records import Gate
from ioa_p2p.dht.store import Item, Store
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, FindNode, FindPointers, FindRecord, Found, unpack_contact


@dataclass(frozen=True, slots=True)
class Means:
    """What every search works with. faults: what peers did wrong, counted by code."""

    calls: Calls
    peers: Peers
    store: Store
    gate: Gate
    agenda: Agenda
    faults: Counter[str]


class Search:
    """Finds the nodes closest to `key` (20 B); with each, a token for Stores. done(now, search) is called once."""

    request: type[FindNode] | type[FindRecord] | type[FindPointers] = FindNode

    def __init__(self, means: Means, key: bytes, done: Callable[[Now, Any], None]) -> None:
        self.key = key
        self.lookup = Lookup(space.at(key))
        self.tokens: dict[bytes, bytes] = {}
        self.finished = False
        self._means = means
        self._done = done

    def start(self, now: Now, contacts: Iterable[Contact] = ()) -> None:
        """contacts: more places to begin at than the table's."""
        table = self._means.peers.table
        for entry in table.closest(self.lookup.target, limits.DHT_K) or list(table):
            self._learn(now, entry.contact)
        for contact in contacts:
            self._learn(now, contact)
        self._means.agenda.at(now.boot + limits.DHT_LOOKUP_S, self._finish)
        self._step(now)

    @property
    def holders(self) -> list[Contact]:
        """The closest that answered, nearest first."""
        return self.lookup.closest()

    def answered(self, now: Now, call: Call, answer: Found) -> None:
        self.tokens[call.to.key] = answer.token
        self.lookup.answered(call.to.key)
        if self.finished:
            return
        self._take(now, call, answer)
        if not self._enough():
            self._learn_from(now, call.to, answer)
        self._step(now)

    def slow(self, now: Now, call: Call) -> None:
        self.lookup.slow(call.to.key)
        self._step(now)

    def lost(self, now: Now, call: Call) -> None:
        self.lookup.lost(call.to.key)
        self._step(now)

    # -- what the kinds of search differ in

    def _take(self, now: Now, call: Call, answer: Found) -> None:
        """Use what was found."""

    def _enough(self) -> bool:
        """Whether the search may end before the lookup is done."""
        return False

    def _hold_back(self) -> bool:
        """Whether those asked may well be enough: then nobody else is asked for now."""
        return False

    def _busy(self) -> bool:
        """Whether it must go on after the lookup is done."""
        return False

    # -- how they go

    def _step(self, now: Now) -> None:
        if not self.finished and self._enough():
            self._finish(now)
        while not self.finished and not self._hold_back() and (contact := self.lookup.next()) is not None:
            self._means.calls.ask(now, contact, self.request, Found, self, None, self.key)
        if not self.finished and self.lookup.done and not self._busy():
            self._finish(now)

    def _finish(self, now: Now) -> None:
        if not self.finished:
            self.finished = True
            self._done(now, self)

    def _learn(self, now: Now, contact: Contact) -> None:
        self.lookup.learn(contact, suspect=self._means.calls.suspects.has(contact.key, now.boot))

    def _learn_from(self, now: Now, source: Contact, answer: Found) -> None:
        """The answer's contacts that are news, at most three of one subnet: a liar cannot fill the shortlist from
        one network."""
        subnets: Counter[bytes] = Counter()
        for packed in answer.contacts:
            if not self.lookup.wants(packed[: limits.NODE_ID_BYTES]):
                continue
            try:
                contact = unpack_contact(packed)
            except PeerError as fault:
                self._means.faults[fault.code] += 1
                continue
            subnet = space.subnet(contact.host)
            if subnet is not None:
                subnets[subnet] += 1
            if self._means.peers.usable(contact, source) and subnets[subnet or b""] <= limits.DHT_SUBNET_TABLE_MAX:
                self._learn(now, contact)
                self._means.peers.heard_of(now, contact)

    def _read(self, now: Now, raw: bytes) -> Item | None:
        try:
            return self._means.gate.read(now, raw, self.key)
        except PeerError as fault:
            self._means.faults[fault.code] += 1
            return None


class RecordSearch(Search):
    """Finds the newest AgentRecord under `key`; ends early when enough holders agree on it.

    thorough: never early, for a publisher that must know the newest of all and every holder.
    """

    request = FindRecord

    def __init__(self, means: Means, key: bytes, done: Callable[[Now, Any], None], *, thorough: bool = False) -> None:
        super().__init__(means, key, done)
        self.item: Item | None = None
        self.holding: set[bytes] = set()
        self._thorough = thorough

    def start(self, now: Now, contacts: Iterable[Contact] = ()) -> None:
        held = self._means.store.get(now, self.key)
        if held is not None:
            self._count(held.item, self._means.peers.own)
        super().start(now, contacts)

    def _take(self, now: Now, call: Call, answer: Found) -> None:
        for raw in answer.frames[:1]:
            if self.item is not None and raw == self.item.raw:
                self.holding.add(call.to.key)
                continue
            item = self._read(now, raw)
            if item is not None:
                self._count(item, call.to.key)

    def _count(self, item: Item, holder: bytes) -> None:
        """Newest seq wins, of one seq the lower hash."""
        best = self.item
        if best is None or (item.body.seq, best.hash) > (best.body.seq, item.hash):
            self.item, self.holding = item, {holder}

    def _enough(self) -> bool:
        return not self._thorough and len(self.holding) >= limits.DHT_AGREE

    def _hold_back(self) -> bool:
        """As long as nobody asked lacks it, those under way are likely to make it enough."""
        hopeful = bool(self.holding) or not self.tokens
        likely = len(self.holding) + self.lookup.under_way
        return not self._thorough and hopeful and likely >= limits.DHT_AGREE
