"""A whole mesh of real DHT machines in virtual time, full of agents, and askers who search it with the node's own code.

    publishers ── real Publisher ──> signed frames ── placed on the 20 closest by their real Store ──> holders
    asker: node.finder.Search ── node.directory.Directory ── real DhtMachine ── wire in virtual time ──> the mesh

What is real: machines, tables (all nodes joined), signatures, frames, stores with their quotas, every request and
answer, the search flow. What is not: publishing every frame by lookup and Store would be about 120,000 puts of some 45
requests each, hours of work; so proven frames are handed to the closest nodes' Store. One agent is published in full,
and `placed_alike` is the share of its copies that stand where `place` would have put them. A signature is checked once
for all nodes. Links stand where the other node lives.

Askers are clients behind a NAT: they hold nothing, have no digest and no directory, and are forgotten as holders; what
they learned (cards, suspects) is cleared between queries.
"""

import asyncio
import gc
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ioa_p2p.dht import commands, space
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Send
from ioa_p2p.mind.meaning import Meaning
from ioa_p2p.node import finder
from ioa_p2p.node.budget import Budget
from ioa_p2p.node.directory import Directory
from ioa_p2p.node.finder import Search
from ioa_p2p.node.query import Query
from ioa_p2p.node.sense import Aspect
from ioa_p2p.node.trust import Acquaintances, Past
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire import dht as wire
from ioa_p2p.wire.dht import Contact
from ioa_p2p.wire.records import AgentRecord, Card, Skill
from tests.dht.mesh import Mesh, QuietWorld, node_key
from tests.sim.world import World
from tests.wire.samples import NETWORK

T = TypeVar("T")

SEALED_BYTES = limits.DATAGRAM_BYTES_MAX - limits.DATAGRAM_BODY_BYTES_MAX  # of a datagram beside its body
LINK_FRAME_BYTES = 5 + 16  # head of a link frame, and what encryption adds to one
STEP_S = 0.05  # of virtual time between looks at the askers
TTL_S = limits.TTL_S_MAX


class Silent(QuietWorld):
    """A world that keeps no account of a run, and NATs: who stands behind one hears only whom it wrote to."""

    def __init__(self, seed: int, *rest: Any) -> None:
        super().__init__(seed, *rest)
        self.behind_nat: dict[Contact, set[Contact]] = {}

    def _note(self, *what: Any) -> None:
        pass

    def _send(self, host: Any, effect: Send) -> None:
        target = self.route(effect.to)
        if host.address in self.behind_nat:
            self.behind_nat[host.address].add(target)
        if target in self.behind_nat and host.address not in self.behind_nat[target]:
            return
        super()._send(host, effect)


@dataclass(frozen=True)
class Cost:
    """What one search put on the asker's wire: all its requests, and all bytes both ways."""

    rpcs: int
    bytes: int


class FullMesh(Mesh):
    """`nodes` holders and `askers` clients, all joined. model: of the askers; agents bring their own aspects."""

    def __init__(self, seed: int, nodes: int, askers: int, model: Meaning | None) -> None:
        super().__init__(seed, 0)
        self.model = model
        self.world = Silent(seed)
        self.world.route = self._route
        self.nodes = [self._add(number) for number in range(nodes)]
        self.askers = [self._add(nodes + number) for number in range(askers)]
        self.world.behind_nat = {asker: set[Contact]() for asker in self.askers}
        self.join_all()
        self.placed = 0

    def _add(self, number: int) -> Contact:
        contact = Contact(node_key(number).node, "127.0.0.1", 10_000 + number)
        self.contacts.append(contact)
        self.keys[contact] = node_key(number)
        self._by_key[contact.key] = contact
        self.world.add(contact, self._make)
        return contact

    # -- agents

    def place(self, agents: Iterable[tuple[Card, Aspect | None]]) -> None:
        """Agents, dealt to the nodes in turn: each node's frames as its real publisher signs them."""
        gc.disable()  # millions of objects that stay: looking through them again and again is most of the work
        try:
            self._place(agents)
        finally:
            gc.freeze()
            gc.enable()

    def _place(self, agents: Iterable[tuple[Card, Aspect | None]]) -> None:
        hands: dict[Contact, list[tuple[Card, Aspect | None]]] = {}
        for number, agent in enumerate(agents):
            hands.setdefault(self.nodes[(self.placed + number) % len(self.nodes)], []).append(agent)
        self.placed += sum(map(len, hands.values()))
        for owner, hand in hands.items():
            for item in self._signed(owner, hand):
                self._hold(owner, item)
            self._serve(owner, [card for card, _ in hand])

    def placed_alike(self) -> float:
        """Publish one agent in full, by lookups and Stores: the share of its copies that `place` puts there too."""
        owner = self.nodes[0]
        self.publish(
            owner, Card("sample", "quartz violin lantern", skills=(Skill("sample.play"),)), **_order(owner, None)
        )
        items = [item for item in self.machine(owner).held if item.body.node == owner.key]
        places = [(item.slot, holder) for item in items for holder in self.holders_of(item.key)]
        return sum(self._has(holder, slot) for slot, holder in places) / len(places)

    def _has(self, holder: Contact, slot: bytes) -> bool:
        return self.machine(holder)._store.get(self.world.now(self.world.hosts[holder]), slot) is not None

    def holders_of(self, item_key: bytes) -> list[Contact]:
        target = space.at(item_key)
        return sorted(self.nodes, key=lambda node: space.position(node.key) ^ target)[: limits.DHT_K]

    def _signed(self, owner: Contact, hand: Sequence[tuple[Card, Aspect | None]]) -> list[Item]:
        """By a machine with the owner's key that joins nobody, so it signs and keeps."""
        now = self.world.now(self.world.hosts[owner])
        machine = DhtMachine(self.keys[owner], NETWORK, _no_rows, self.world.rng, int(now.wall * 1000), self._check)
        for card, aspect in hand:
            machine.handle_command(now, commands.Publish(card, **_order(owner, aspect)))
        return machine.held

    def _hold(self, owner: Contact, item: Item) -> None:
        for holder in {owner, *self.holders_of(item.key)}:
            host = self.world.hosts[holder]
            self.machine(holder)._store.put(self.world.now(host), item, owner.key)

    def _serve(self, owner: Contact, cards: Iterable[Card]) -> None:
        for card in cards:
            self.machine(owner)._cards.own(card)

    # -- askers

    def search(
        self, asker: Contact, query: Query, aspect: Aspect | None, *, rpcs_max: int = limits.FIND_RPCS_MAX,
        warm: bool = False,
    ) -> tuple[Search, Cost]:  # fmt: skip
        """One search: as it ended, and what went over the asker's wire. warm: with what it learned before."""
        if not warm:
            self.machine(asker)._cards._others.clear()
        tally = _Tally(asker)
        self.world.on_send.append(tally)
        try:
            return asyncio.run(self._searched(asker, query, aspect, Budget(rpcs_max))), Cost(tally.rpcs, tally.bytes)
        finally:
            self.world.on_send.remove(tally)

    async def _searched(self, asker: Contact, query: Query, aspect: Aspect | None, budget: Budget) -> Search:
        driver = _VirtualDriver(self.world, asker)
        directory = Directory(self.machine(asker), driver)  # pyright: ignore[reportArgumentType]
        driver.on_event = directory.on_event
        trust = Acquaintances(asker.key, (), Past(_no_rows))
        means = finder.Means(directory, _Links(self), _Nothing(directory), trust, patience_s=math.inf)
        search = Search(means, query, aspect, budget=budget)
        await driver.run(search.run())
        return search


class _VirtualDriver:
    """`runtime.Driver` as far as the directory uses it, on the world's clock."""

    def __init__(self, world: World, asker: Contact) -> None:
        self.on_event: Callable[[Any], bool]
        self._world = world
        self._asker = asker
        self._news = False

    def command(self, command: Any) -> None:
        self._world.command(self._asker, command)

    async def run(self, work: Awaitable[T]) -> T:
        """Let time pass in the world whenever the work waits for it."""
        self._world.on_event.append(self._hear)
        try:
            task = asyncio.ensure_future(work)
            while not task.done():
                for _ in range(8):  # whoever can go on without time goes on
                    await asyncio.sleep(0)
                self._news = task.done()
                self._world.run(STEP_S, until=lambda: self._news)
            return task.result()
        finally:
            self._world.on_event.remove(self._hear)

    def _hear(self, world: World, address: Any, event: Any) -> None:
        if address == self._asker:
            self._news = self.on_event(event) or self._news


class _Links:
    """Links stand to whoever lives."""

    def __init__(self, mesh: FullMesh) -> None:
        self._mesh = mesh

    async def linked(self, node: bytes, addresses: Sequence[str], wait_s: float) -> bool:
        return self.is_linked(node)

    def is_linked(self, node: bytes) -> bool:
        contact = self._mesh._by_key.get(node)
        return contact is not None and self._mesh.world.hosts[contact].machine is not None


class _Nothing:
    """The empty directory of a fresh node without agents; cards that come along with records are kept."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def own(self) -> Iterable[tuple[AgentRecord, Card]]:
        return ()

    async def known(
        self, words: Sequence[str], aspect: Aspect | None, limit: int, keys: Sequence[str]
    ) -> Sequence[finder.Known]:
        return ()

    def card(self, card_hash: bytes) -> Card | None:
        return self._directory.kept_card(card_hash)


class _Tally:
    """Counts what one node sends and is sent."""

    def __init__(self, node: Contact) -> None:
        self.rpcs = 0
        self.bytes = 0
        self._node = node

    def __call__(self, world: World, source: Any, target: Any, message: Any) -> None:
        if self._node not in (source, target):
            return
        linked = isinstance(message, wire.CardWanted | wire.CardGiven)
        self.bytes += len(codec.encode(message)) + (LINK_FRAME_BYTES if linked else SEALED_BYTES)
        self.rpcs += source == self._node and not isinstance(message, wire.Answer | wire.CardGiven)


def _order(owner: Contact, aspect: Aspect | None) -> dict[str, Any]:
    told: dict[str, Any] = {"endpoint": f"{owner.host}:{owner.port}", "ttl": TTL_S}
    if aspect is not None:
        told |= {"cells": aspect.cells, "sketch": aspect.sketch, "index_model": aspect.model}
    return told


def _no_rows(space: str) -> list[tuple[bytes, bytes]]:
    return []
