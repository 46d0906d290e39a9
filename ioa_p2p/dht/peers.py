"""The peers a node knows: what it learns, proves, loses, and remembers on disk.

contact heard of ── ping, if its bucket has room ──> answered ──> table ──> saved (the 200 last heard)
request of a stranger ─┘                              unanswered ──> suspect, missed, dropped
request from where its sender is not known to be ── ping ──> answered: it moved, its old endpoint is forgotten
"""

import random
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from ioa_p2p.dht import space
from ioa_p2p.dht.calls import Call, Calls
from ioa_p2p.dht.table import Entry, Table
from ioa_p2p.effects import Effect, Now, Rows, Save
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Ping, Pong, pack_contact, unpack_contact

SPACE = "dht/peers"


class Peers:
    """An Asker: its own pings. own: our key. on_entered(now, contact): it is new in the table."""

    def __init__(
        self, own: bytes, rows: Rows, calls: Calls, out: list[Effect], on_entered: Callable[[Now, Contact], None]
    ) -> None:
        self.own = own
        self.table = Table(space.position(own))
        self.remembered = list(_saved(rows))
        self._saved = {contact.key: contact for contact in self.remembered}
        self._calls = calls
        self._out = out
        self._pinged: set[Contact] = set()
        self._callers: OrderedDict[bytes, Contact] = OrderedDict()
        self._on_entered = on_entered

    def usable(self, contact: Contact, source: Contact) -> bool:
        """Whether `source` may send us to `contact`: not to ourselves, and from afar not into our own network."""
        return contact.key != self.own and space.scope(contact.host) >= space.scope(source.host)

    def heard_of(self, now: Now, contact: Contact) -> None:
        """Somebody named it: ping it if it would find a place in the table, or we lost it elsewhere."""
        entry = self.table.get(space.position(contact.key))
        lost = entry is not None and entry.misses > 0 and entry.contact != contact
        if lost or (self.table.has_room_for(space.position(contact.key)) and not self._suspect(now, contact)):
            self._try(now, contact)

    def asked_by(self, now: Now, contact: Contact) -> None:
        """It asked us something, as no client: it may know us, and is now where it asked from."""
        self._callers.pop(contact.key, None)
        self._callers[contact.key] = contact
        if len(self._callers) > limits.CALLERS_MAX:
            self._callers.popitem(last=False)
        place = space.position(contact.key)
        entry = self.table.get(place)
        if entry is None and self.table.has_room_for(place):
            self._try(now, contact)  # a suspect too: it is back
        elif entry is not None and entry.contact != contact:
            self._try(now, contact)

    def announce(self, now: Now) -> None:
        """We may be elsewhere now: be heard there by all who may know us, so that they forget where we were."""
        known = {entry.contact.key: entry.contact for entry in self.table}
        for contact in (self._callers | known).values():
            self.ping(now, contact)

    def ask_some(self, now: Now, rng: random.Random) -> None:
        """Ping a few at random: what do they see?"""
        good = [entry.contact for entry in self.table if not entry.misses]
        for contact in rng.sample(good, min(len(good), limits.CLOCK_ASKED)):
            self.ping(now, contact)

    def ping(self, now: Now, contact: Contact) -> None:
        self._pinged.add(contact)
        self._calls.ask(now, contact, Ping, Pong, self, None)

    def _suspect(self, now: Now, contact: Contact) -> bool:
        return self._calls.suspects.has(contact, now.boot)

    def _try(self, now: Now, contact: Contact) -> None:
        if len(self._pinged) < limits.DHT_PINGS_MAX and contact not in self._pinged:
            self.ping(now, contact)

    def proven(self, now: Now, contact: Contact, client: bool) -> None:
        """It answered a request of ours at this endpoint."""
        if client:
            self.table.remove(space.position(contact.key))
        elif self.table.enter(contact, now.boot):
            self._on_entered(now, contact)

    def missed(self, contact: Contact, blamed: bool) -> None:
        entry = self.table.get(space.position(contact.key))
        if entry is not None and entry.contact == contact:
            self.table.missed(entry.long_id, blamed=blamed)

    def refresh_one(self, now: Now) -> None:
        """Ask whoever was not heard the longest whether it is still there."""
        entry = self.table.longest_unheard()
        if entry is not None and now.boot - entry.heard_s >= limits.DHT_REFRESH_S / 2:
            self.ping(now, entry.contact)

    def save(self) -> None:
        """Write what changed of the good peers heard last. An empty table forgets nobody: we may be offline."""
        good = sorted((entry for entry in self.table if not entry.misses), key=_heard_last)
        if not good:
            return
        best = {entry.contact.key: entry.contact for entry in good[: limits.DHT_PEERS_SAVED_MAX]}
        for key in list(self._saved):
            if len(best) < limits.DHT_PEERS_SAVED_MAX and key not in best:
                best[key] = self._saved[key]
            elif key not in best:
                self._out.append(Save(SPACE, key, None))
        changed = (contact for key, contact in best.items() if self._saved.get(key) != contact)
        self._out += [Save(SPACE, contact.key, pack_contact(contact)) for contact in changed]
        self._saved = best

    def answered(self, now: Now, call: Call, answer: Any) -> None:
        self._pinged.discard(call.to)

    def slow(self, now: Now, call: Call) -> None:
        pass

    def lost(self, now: Now, call: Call) -> None:
        self._pinged.discard(call.to)


def _heard_last(entry: Entry) -> float:
    return -entry.heard_s


def _saved(rows: Rows) -> Iterator[Contact]:
    """A damaged row is a peer less, no reason not to start."""
    for _, packed in rows(SPACE):
        try:
            yield unpack_contact(packed)
        except PeerError:
            continue
