"""A mesh of DHT machines in the seeded world, and what tests ask of it.

    Mesh(seed, nodes) ── join ──> World of DhtMachines ── ask(node, command) ──> the event that answers

Contacts are the hosts' addresses; link messages (to a bare key) are carried only where `link` made a link.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands, events
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.effects import Effect, Now, Rows
from ioa_p2p.wire.dht import Contact, Directory
from ioa_p2p.wire.frames import Frame
from ioa_p2p.wire.records import Card, Skill
from tests.sim.world import Weather, World
from tests.wire.samples import NETWORK


class Checked:
    """Signature checks with a memory: the same frame is verified once for all nodes of a mesh, not once a node."""

    def __init__(self) -> None:
        self._good: set[bytes] = set()

    def __call__(self, frame: Frame, network: bytes) -> None:
        if frame.raw not in self._good:
            envelope.check(frame, network)
            self._good.add(frame.raw)


class QuietWorld(World):
    """Hashes what kind of message went where, not its text: a mesh sends millions."""

    def _note(self, *what: Any) -> None:
        if what[0] == "message":
            what = (what[1].port, what[2].port, type(what[3]).__name__, getattr(what[3], "id", 0))
        super()._note(*what)


class Host:
    """A DhtMachine behind one address: link messages come with the sender's bare key."""

    def __init__(self, machine: DhtMachine) -> None:
        self.dht = machine

    def start(self, now: Now) -> list[Effect]:
        return self.dht.start(now)

    def handle_message(self, now: Now, peer: Contact, message: Any) -> list[Effect]:
        return self.dht.handle_message(now, peer.key if isinstance(message, Directory) else peer, message)

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        return self.dht.handle_timer(now, name)

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        return self.dht.handle_command(now, command)


def node_key(number: int) -> NodeKey:
    return NodeKey(hashlib.blake2b(b"node %d" % number, digest_size=32).digest())


def contact_of(number: int, host: str = "127.0.0.1") -> Contact:
    return Contact(node_key(number).node, host, 10_000 + number)


def card(name: str, *skills: str, description: str = "") -> Card:
    return Card(name=name, description=description, skills=tuple(Skill(name=skill) for skill in skills))


class Mesh:
    """`nodes` machines, none joined yet. Host addresses are `self.contacts`, in order."""

    def __init__(self, seed: int, nodes: int, weather: Weather | None = None, host: str = "127.0.0.1") -> None:
        self.world = QuietWorld(seed, weather)
        self.world.route = self._route
        self.contacts = [contact_of(number, host) for number in range(nodes)]
        self.keys = {contact: node_key(number) for number, contact in enumerate(self.contacts)}
        self._by_key = {contact.key: contact for contact in self.contacts}
        self._links: dict[bytes, set[bytes]] = {}
        self._check = Checked()
        self._requests = 0
        for contact in self.contacts:
            self.world.add(contact, self._make)

    def machine(self, contact: Contact) -> DhtMachine:
        host = self.world.hosts[contact].machine
        assert isinstance(host, Host)
        return host.dht

    def alive(self) -> list[Contact]:
        return [contact for contact in self.contacts if self.world.hosts[contact].machine is not None]

    def join(self, contact: Contact, seeds: Iterable[Contact]) -> None:
        self.world.command(contact, commands.Join(tuple(seed for seed in seeds if seed != contact)))

    def join_all(self, seeds: int = 2, over_s: float = 2.0, settle_s: float = 20.0) -> None:
        """Everybody joins within `over_s`, knowing the first `seeds` nodes, and has time to settle."""
        for contact in self.contacts:
            at_s = self.world.time_s + self.world.rng.uniform(0, over_s)
            self.world.at(at_s, lambda contact=contact: self.join(contact, self.contacts[:seeds]))
        self.world.run(over_s + settle_s)

    def move(self, contact: Contact, to: Contact) -> Contact:
        """A node gets another endpoint, and nobody tells it or anybody else."""
        self.world.move(contact, to)
        self.contacts[self.contacts.index(contact)] = to
        self.keys[to] = self.keys[contact]
        self._by_key[to.key] = to
        return to

    def link(self, a: Contact, b: Contact) -> None:
        for one, other in ((a, b), (b, a)):
            self._links.setdefault(one.key, set()).add(other.key)
        for one, other in ((a, b), (b, a)):
            self.world.command(one, commands.NeighbourUp(other.key))

    def ask(self, contact: Contact, make: Callable[[int], Any], wait_s: float = 20.0) -> Any:
        """The event that answers `make(request)`, within virtual `wait_s`."""
        self._requests += 1
        request, start = self._requests, len(self.world.events)
        answers: list[Any] = []

        def listen(_world: World, address: Any, event: Any) -> None:
            if address == contact and getattr(event, "request", None) == request:
                answers.append(event)

        self.world.on_event.append(listen)
        self.world.command(contact, make(request))
        self.world.run(wait_s, until=lambda: bool(answers))
        self.world.on_event.remove(listen)
        assert answers, f"no answer within {wait_s} s among {self.world.events[start:]}"
        return answers[0]

    def find(self, contact: Contact, owner: Contact, agent: str) -> events.RecordFound:
        return self.ask(contact, lambda request: commands.SearchRecord(request, owner.key, agent))

    def pointers(self, contact: Contact, key: str) -> events.PointersFound:
        return self.ask(contact, lambda request: commands.SearchPointers(request, key))

    def publish(self, contact: Contact, card: Card, wait_s: float = 30.0, **options: Any) -> Any:
        """The first Published of it, or None within `wait_s`."""
        start = len(self.world.events)
        self.world.command(contact, commands.Publish(card, **options))

        def told() -> list[events.Published]:
            mine = (event for _, address, event in self.world.events[start:] if address == contact)
            return [event for event in mine if isinstance(event, events.Published) and event.agent == card.name]

        self.world.run(wait_s, until=lambda: bool(told()))
        return next(iter(told()), None)

    def events_of(self, contact: Contact, kind: type[Any]) -> list[Any]:
        return [event for _, address, event in self.world.events if address == contact and isinstance(event, kind)]

    def _make(self, contact: Any, rows: Rows, rng: Any, now: Now) -> Host:
        return Host(DhtMachine(self.keys[contact], NETWORK, rows, rng, int(now.wall * 1000), self._check))

    def _route(self, to: Any) -> Any:
        return to if isinstance(to, Contact) else self._by_key.get(to)
