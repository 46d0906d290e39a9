"""Searches: lookups carried out. One for nodes, one for a record, one for pointers.

    start ── closest known ──> Lookup.next ──> ask ──> answered: learn contacts, take frames ──> enough, or done
                                   ^                                   │
                                   └───────── slow, lost: go on ───────┘

No rounds: every answer, slow peer or miss lets the next request go at once. A lookup goes over disjoint paths; what
is found is merged over all of them, and only holders on different paths count as agreeing.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ioa_p2p.dht import space
from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.calls import Call, Calls
from ioa_p2p.dht.cards import Cards
from ioa_p2p.dht.lookup import Lookup
from ioa_p2p.dht.path import Path
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.records import Gate
from ioa_p2p.dht.region import Density
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
    density: Density
    cards: Cards


class Search:
    """Finds the nodes closest to `key` (20 B); with each, a token for Stores. done(now, search) is called once.

    paths: disjoint ones; `limits.DHT_PATHS_WRITE` for what is to be stored, or feeds an assignment. k: how many; fewer
    than there are holders for a brief read. hurried: see `lookup.Lookup`.
    """

    request: type[FindNode] | type[FindRecord] | type[FindPointers] = FindNode

    def __init__(
        self,
        means: Means,
        key: bytes,
        done: Callable[[Now, Any], None],
        paths: int = limits.DHT_PATHS_WRITE,
        k: int = limits.DHT_K,
        *,
        hurried: bool = False,
    ) -> None:
        self.key = key
        radius = means.density.radius if k == limits.DHT_K else 0
        self.lookup = Lookup(space.at(key), paths, radius, k, hurried=hurried)
        self.tokens: dict[bytes, bytes] = {}
        self.finished = False
        self._k = k
        self._pool: list[Contact] = []
        self._means = means
        self._done = done
        self._fields: tuple[bytes, ...] = (key,)

    def start(self, now: Now, contacts: Iterable[Contact] = ()) -> None:
        """contacts: more places to begin at than the table's."""
        table = self._means.peers.table
        self._pool = [entry.contact for entry in table.closest(self.lookup.target, 2 * limits.DHT_K)]
        known = self._pool[: limits.DHT_K] or [entry.contact for entry in table]
        first = [*known, *contacts]
        for contact in first:
            self._suspect(now, contact)
        self.lookup.start(first)
        self._end = self._means.agenda.at(now.boot + limits.DHT_LOOKUP_S, self._finish)
        self._step(now)

    @property
    def holders(self) -> list[Contact]:
        """The closest that answered, nearest first, over all paths."""
        return self.lookup.closest()

    def answered(self, now: Now, call: Call, answer: Found) -> None:
        self.tokens[call.to.key] = answer.token
        self.lookup.answered(call.to)
        if self.finished:
            return
        self._take(now, call, answer)
        path = self.lookup.path_of(call.to)
        if path is not None and not self._enough():
            self._learn_from(now, self.lookup.path(path), call.to, answer)
        self._step(now)

    def slow(self, now: Now, call: Call) -> None:
        self.lookup.slow(call.to)
        self._step(now)

    def lost(self, now: Now, call: Call) -> None:
        self.lookup.lost(call.to)
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

    def _in_vain(self) -> bool:
        """Whether a lookup that is done should be widened: a crowd near the key may have kept it to itself."""
        return self.lookup.crowded

    def _busy(self) -> bool:
        """Whether it must go on after the lookup is done."""
        return False

    # -- how they go

    def _step(self, now: Now) -> None:
        if not self.finished and self._enough():
            self._finish(now)
        if not self.finished and self.lookup.done and self._in_vain():
            self._widen()
        while not self.finished and not self._hold_back() and (contact := self.lookup.next()) is not None:
            self._means.calls.ask(now, contact, self.request, Found, self, None, *self._fields)
        if not self.finished and self.lookup.done and not self._busy():
            self._finish(now)

    def _widen(self) -> None:
        """The table as it was before this search met anybody. A crowd may fill one bucket of it, so that it takes
        more than k entries to get past that."""
        self.lookup.widen(self._pool if self.lookup.crowded else self._pool[: limits.DHT_K])

    def _finish(self, now: Now) -> None:
        if not self.finished:
            self.finished = True
            self._end.drop()
            if self.lookup.done and self._k == limits.DHT_K:
                self._means.density.note(self.key, self.lookup.reach)
            self._done(now, self)

    def _suspect(self, now: Now, contact: Contact) -> None:
        if self._means.calls.suspects.has(contact, now.boot):
            self.lookup.suspect(contact)

    def _learn_from(self, now: Now, path: Path, source: Contact, answer: Found) -> None:
        """The answer's contacts that are news on its path, at most three of one subnet: a liar cannot fill the
        shortlist from one network."""
        subnets: Counter[bytes] = Counter()
        for packed in answer.contacts:
            if not path.wants(packed[: limits.NODE_ID_BYTES]):
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
                self._suspect(now, contact)
                path.learn(contact)
                self._means.peers.heard_of(now, contact)

    def _read(self, now: Now, raw: bytes) -> Item | None:
        try:
            return self._means.gate.read(now, raw, self.key)
        except PeerError as fault:
            self._means.faults[fault.code] += 1
            return None


class RecordSearch(Search):
    """Finds the newest AgentRecord under `key`; ends early when enough holders on different paths agree on it.

    thorough: over more paths and never early, for a publisher that must know the newest of all and every holder, or
    for what feeds an assignment.
    """

    request = FindRecord

    def __init__(self, means: Means, key: bytes, done: Callable[[Now, Any], None], *, thorough: bool = False) -> None:
        super().__init__(means, key, done, limits.DHT_PATHS_WRITE if thorough else limits.DHT_PATHS_READ)
        self.item: Item | None = None
        self.agreeing: set[int] = set()
        self.copies = 0
        self._thorough = thorough

    def start(self, now: Now, contacts: Iterable[Contact] = ()) -> None:
        held = self._means.store.get(now, self.key)
        if held is not None:
            self._count(held.item, _OWN)
            self.copies = 0  # counts what others gave
        super().start(now, contacts)

    def _take(self, now: Now, call: Call, answer: Found) -> None:
        path = self.lookup.path_of(call.to) if self.lookup.near(call.to) else None
        for raw in answer.frames[:1]:
            item = self.item if self.item is not None and raw == self.item.raw else self._read(now, raw)
            if item is not None:
                self._count(item, path)

    def _count(self, item: Item, path: int | None) -> None:
        """Newest seq wins, of one seq the lower hash. path: None for who is too far to be a holder: what it says is
        taken, but it agrees with nobody."""
        best = self.item
        if best is None or (item.body.seq, best.hash) > (best.body.seq, item.hash):
            self.item, self.agreeing, self.copies = item, set(), 0
        self.copies += item is self.item
        if path is not None and item is self.item:
            self.agreeing.add(path)

    def _enough(self) -> bool:
        return not self._thorough and len(self.agreeing) >= limits.DHT_AGREE

    def _in_vain(self) -> bool:
        return self.item is None or super()._in_vain()

    def _hold_back(self) -> bool:
        """As long as nobody asked lacks it or is slow, those under way are likely to make it enough."""
        hopeful = (bool(self.agreeing) or not self.tokens) and not self.lookup.met_slow
        likely = len(self.agreeing | self.lookup.paths_under_way)
        return not self._thorough and hopeful and likely >= limits.DHT_AGREE


_OWN = -1  # the path of what we hold ourselves
