"""Keeping copies where they belong while nodes come and go. DISCOVERY, "Republish".

    every 5 min: what we publish, and what hardly anybody knows to be nearer to ── Have ──> the closest nodes
    a newcomer enters the table: what it should hold ─────────────────────────── Have ──> the newcomer
        <── Had: what each lacks ── Store, the unchanged bytes, if fewer than half have it (of ours: if one lacks it)

Passing on never makes anything live longer: holders keep time from when they first saw it, and from its issue.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ioa_p2p.dht import space
from ioa_p2p.dht.calls import Call
from ioa_p2p.dht.search import Means
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Now
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Had, Have, Store, Stored


@dataclass(slots=True, eq=False)
class Copies:
    """What became known of one item's copies. needed: how many there should be, or None: half of who answers."""

    item: Item
    needed: int | None
    open: int = 0
    have: int = 0
    lacking: list[tuple[Contact, bytes]] = field(default_factory=list[tuple[Contact, bytes]])

    @property
    def enough(self) -> bool:
        answered = self.have + len(self.lacking)
        return self.have >= (answered / 2 if self.needed is None else min(self.needed, answered))


class Keeper:
    """An Asker: its Haves. own() lists what we publish ourselves."""

    def __init__(self, means: Means, rng: random.Random, own: Callable[[], Iterable[Item]]) -> None:
        self._means = means
        self._rng = rng
        self._own = own
        self._newcomers: list[Contact] = []
        self._stores = _Stores()

    def check(self, now: Now) -> None:
        """See to the copies of what is ours to see to, a random part of it if it is too much for one time."""
        table = self._means.peers.table
        asked: dict[Contact, list[Copies]] = {}
        for item, needed in self._charges(now):
            copies = Copies(item, needed)
            for entry in table.closest(space.at(item.key), limits.DHT_K):
                asked.setdefault(entry.contact, []).append(copies)
                copies.open += 1
        for contact, several in asked.items():
            self._ask(now, contact, several)

    def entered(self, now: Now, contact: Contact) -> None:
        """A newcomer in the table: in a moment, with others that come at the same time."""
        if not self._newcomers:
            self._means.agenda.at(now.boot + limits.DHT_PASS_ON_S, self._pass_on)
        self._newcomers.append(contact)

    def answered(self, now: Now, call: Call, answer: Had) -> None:
        asked: list[Copies] = call.subject
        for copies, held in zip(asked, answer.held, strict=False):
            if held:
                copies.have += 1
            else:
                copies.lacking.append((call.to, answer.token))
        self._settle(now, asked)

    def slow(self, now: Now, call: Call) -> None:
        pass

    def lost(self, now: Now, call: Call) -> None:
        self._settle(now, call.subject)

    def _charges(self, now: Now) -> list[tuple[Item, int | None]]:
        """What we publish, and of what we hold that to which fewer than three known nodes are nearer."""
        own = {item.slot: item for item in self._own()}
        table = self._means.peers.table
        store = self._means.store
        others = [held.item for held in store if held.until_s > now.boot and held.item.slot not in own]
        # Holders of a crowded key have different samples by design: nothing is lacking there.
        others = [item for item in others if not store.crowded(item.key)]
        near = [item for item in others if table.rank(space.at(item.key)) < limits.DHT_KEEPERS]
        if len(near) > limits.DHT_KEEP_MAX:
            near = self._rng.sample(near, limits.DHT_KEEP_MAX)
        charges: list[tuple[Item, int | None]] = [(item, limits.DHT_K) for item in own.values()]
        return charges + [(item, None) for item in near]

    def _pass_on(self, now: Now) -> None:
        newcomers, self._newcomers = self._newcomers, []
        own = {item.slot for item in self._own()}
        for contact in newcomers:
            place = space.position(contact.key)
            items = [held.item for held in self._means.store if held.until_s > now.boot]
            due = [item for item in items if self._belongs(place, item, item.slot in own)]
            self._ask(now, contact, [Copies(item, 1, open=1) for item in due[: limits.PASS_ON_MAX]])

    def _belongs(self, place: int, item: Item, own: bool) -> bool:
        """Whether a newcomer at `place` should get it from us: from its publisher, or from who was the nearest."""
        target = space.at(item.key)
        table = self._means.peers.table
        if own:
            closest = table.closest(target, limits.DHT_K)
            return bool(closest) and place ^ target <= closest[-1].long_id ^ target
        mine = space.position(self._means.peers.own) ^ target
        if place ^ target >= mine:
            return False
        return all(entry.long_id == place or entry.long_id ^ target > mine for entry in table.closest(target, 2))

    def _ask(self, now: Now, contact: Contact, several: list[Copies]) -> None:
        for start in range(0, len(several), limits.HAVE_MAX):
            batch = several[start : start + limits.HAVE_MAX]
            hashes = b"".join(copies.item.hash[:8] for copies in batch)
            self._means.calls.ask(now, contact, Have, Had, self, batch, hashes)

    def _settle(self, now: Now, asked: list[Copies]) -> None:
        """Once all have answered for an item, give it to those who lack it, if too few have it and it still lives."""
        for copies in asked:
            copies.open -= 1
            if copies.open or copies.enough or self._means.store.known(now, copies.item.hash) is None:
                continue
            for contact, token in copies.lacking:
                self._means.calls.ask(now, contact, Store, Stored, self._stores, None, token, copies.item.raw)


class _Stores:
    """The Asker for Stores: whoever does not keep it is asked again in the next round."""

    def answered(self, now: Now, call: Call, answer: Any) -> None:
        pass

    def slow(self, now: Now, call: Call) -> None:
        pass

    def lost(self, now: Now, call: Call) -> None:
        pass
