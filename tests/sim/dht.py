"""The DHT in the seeded world: what must hold whatever is sent, and random lives that try to break it.

    play(seed, plant) ──> a mesh of 12..18, bad weather, crashes with and without disk, silent nodes, clocks set back,
                          Mallory forging, replaying, spoofing ──> calm ──> one mesh, every live agent found

Rules D1-D7: docs/invariants.md. Directed lives: dht_schedules.py; planted faults: dht_mutants.py.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.dht import commands
from ioa_p2p.dht.records import item_of
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.wire import frames, limits
from ioa_p2p.wire.dht import Contact, Found, Ping, Pong, Records, Store
from ioa_p2p.wire.records import AgentRecord
from tests.dht.frames import forged, sealed
from tests.dht.mesh import Mesh, card
from tests.sim.scenario import Violation
from tests.sim.world import Weather, World
from tests.wire.samples import MALLORY, NETWORK, fault_of, record

CLOCK_S = 300.0  # how wrong a wall clock gets
CALM_S = 400.0  # for seeds to be tried again, and for one check of all copies
SPREAD_S = 10.0  # for a new issue to reach its holders
STEPS = 30

Plant = Callable[[pytest.MonkeyPatch], None]
"""Plants a fault, or none."""


def sound(patch: pytest.MonkeyPatch) -> None:
    """The product as it is."""


class Mallory:
    """A node that keeps the tokens she is given and sends what she is told."""

    def __init__(self) -> None:
        self.tokens: dict[Contact, bytes] = {}

    def start(self, now: Now) -> list[Effect]:
        return []

    def handle_message(self, now: Now, peer: Contact, message: Any) -> list[Effect]:
        if isinstance(message, Pong):
            self.tokens[peer] = message.token
        return []

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        return []

    def handle_command(self, now: Now, command: Send) -> list[Effect]:
        return [command]


class Watched:
    """A mesh whose every served frame is checked against D1-D4 and D6, and its holdings against D5."""

    def __init__(self, seed: int, size: int, weather: Weather | None = None) -> None:
        self.mesh = Mesh(seed, size, weather)
        self.world = self.mesh.world
        self.dice = random.Random(f"lives {seed}")
        self.mallory = Mallory()
        self.lair = Contact(MALLORY.node, "127.0.0.1", 9)
        self.world.add(self.lair, lambda address, rows, dice, now: self.mallory)
        self.frames: dict[bytes, None] = {}
        self.spoofed: set[bytes] = set()
        self.agents: dict[tuple[Contact, str], int] = {}
        self._issued: dict[tuple[bytes, str], dict[bytes, tuple[int, float]]] = {}
        self._given: dict[tuple[Contact, int, bytes, bytes], float] = {}
        self._newest: dict[tuple[Contact, int, bytes], tuple[int, float]] = {}
        self._signed: set[bytes] = set()
        self.world.on_send.append(self._check)
        self.world.on_deliver.append(self._note_given)

    @property
    def wall_s(self) -> float:
        return 1_800_000_000.0 + self.world.time_s

    # -- what people and machines do

    def publish(self, contact: Contact, agent: str, ttl: int) -> None:
        self.agents[contact, agent] = ttl
        self.world.command(contact, commands.Publish(card(agent, f"{agent}.x"), ttl=ttl))

    def crash(self, contact: Contact, lose_disk: bool) -> None:
        """With the disk goes the memory of what was issued: the next seq must only be new to the mesh."""
        self.world.crash(contact, lose_disk=lose_disk)
        if lose_disk:
            for key in [key for key in self._issued if key[0] == contact.key]:
                del self._issued[key]

    def restart(self, contact: Contact) -> None:
        """The owner starts the node again; its config names the seeds and the agents."""
        self.world.restart(contact)
        self.mesh.join(contact, self.mesh.contacts[:2])
        for (owner, agent), ttl in self.agents.items():
            if owner == contact:
                self.publish(owner, agent, ttl)

    def search(self) -> None:
        """Somebody looks for some agent, by name and by word."""
        alive = self.mesh.alive()
        if not alive or not self.agents:
            return
        asker, (owner, agent) = self.dice.choice(alive), self.dice.choice(list(self.agents))
        self.world.command(asker, commands.SearchRecord(0, owner.key, agent))
        self.world.command(asker, commands.SearchPointers(0, f"skill:{agent}"))

    # -- what Mallory does

    def attack(self) -> None:
        """She asks everybody for a token, forges, replays what she saw, and writes in other people's names."""
        for contact in self.mesh.alive():
            self.world.command(self.lair, Send(contact, Ping(1, True)))
            if contact in self.mallory.tokens:
                self.store(contact, self._weapon())
            self.spoof(contact)

    def store(self, contact: Contact, raw: bytes) -> None:
        token = self.mallory.tokens[contact]
        self.world.command(self.lair, Send(contact, Store(2, True, token, raw)))

    def spoof(self, contact: Contact) -> None:
        """A Store that claims to come from somebody else's address, with a token she made up."""
        name = f"spoof-{len(self.spoofed)}"
        raw = sealed(record(MALLORY, agent=name, issued=int(self.wall_s), ttl=600), MALLORY, NETWORK)
        self.spoofed.add(raw)
        self.world.deliver(self.dice.choice(self.mesh.contacts), contact, Store(3, True, bytes(8), raw))

    def _weapon(self) -> bytes:
        if self.frames and self.dice.random() < 0.7:
            return self.dice.choice(list(self.frames))
        owner, agent = self.dice.choice(list(self.agents))
        body = record(self.mesh.keys[owner], agent=agent, seq=1 << 60, issued=int(self.wall_s), ttl=600)
        return forged(body, self.mesh.keys[owner], MALLORY)

    # -- what must hold

    def _check(self, world: World, source: Any, target: Any, message: Any) -> None:
        if isinstance(message, Store) and source in self.mesh.keys:
            self._check_issue(source, message.frame)
        if isinstance(message, Found | Records):
            for raw in message.frames:
                self._check_served(source, raw)

    def _check_issue(self, source: Contact, raw: bytes) -> None:
        """D4: while its disk lives, a node never uses a seq of an agent again, nor an older one."""
        self.frames[raw] = None
        one = item_of(raw)
        if one.body.node == source.key and isinstance(one.body, AgentRecord):
            issued = self._issued.setdefault((source.key, one.body.agent), {})
            if raw not in issued and one.body.seq <= max((seq for seq, _ in issued.values()), default=-1):
                raise Violation("D4", f"seq {one.body.seq} of {one.body.agent} again or after a newer one")
            issued.setdefault(raw, (one.body.seq, self.world.time_s))

    def _check_served(self, source: Contact, raw: bytes) -> None:
        one, life = item_of(raw), self.world.hosts[source].life
        over_s = self.wall_s - (one.body.issued + one.body.ttl + limits.CLOCK_SKEW_S + CLOCK_S)
        if over_s >= 0:
            raise Violation("D1", f"{one.body.agent} served {over_s:.0f} s past its time")
        seq, until_s = self._newest.get((source, life, one.slot), (-1, 0.0))
        if one.body.seq < seq and self.world.time_s < until_s:
            raise Violation("D2", f"seq {one.body.seq} of {one.body.agent} served while {seq} lives")
        if raw not in self._signed and fault_of(envelope.check, frames.parse(raw), NETWORK):
            raise Violation("D3", f"{one.body.agent} served, signed by nobody")
        self._signed.add(raw)

    def _note_given(self, world: World, source: Any, target: Any, message: Any) -> None:
        """From when on, and how long at least, a holder must serve nothing older."""
        if not isinstance(message, Store) or target not in self.mesh.keys:
            return
        one = item_of(message.frame)
        key = (target, world.hosts[target].life, one.slot)
        given_s = self._given.setdefault((*key, message.frame), world.time_s)
        left_s = one.body.issued + one.body.ttl + limits.CLOCK_SKEW_S - CLOCK_S - self.wall_s
        held = [kept.raw for kept in self.mesh.machine(target).held]
        if one.body.seq > self._newest.get(key, (-1, 0.0))[0] and message.frame in held:
            self._newest[key] = (one.body.seq, min(given_s + one.body.ttl, world.time_s + left_s))

    def check_holdings(self) -> None:
        for contact in self.mesh.alive():
            items = self.mesh.machine(contact).held
            if any(one.raw in self.spoofed for one in items):
                raise Violation("D6", "a record stored without proof of address")
            held = [one.body.node for one in items]
            for node in set(held) - {contact.key}:
                if held.count(node) > limits.STORE_NODE_ITEMS_MAX:
                    raise Violation("D5", f"{held.count(node)} items of one node")

    def check_progress(self) -> None:
        """D7: one mesh, and every agent that is published is found by whoever asks, in its newest issue."""
        for contact in self.mesh.contacts:
            if not self.mesh.machine(contact).contacts:
                raise Violation("D7", f"{contact.port} knows nobody")
        for owner, agent in self.agents:
            for asker in self.dice.sample(self.mesh.contacts, 3):
                found = self.mesh.find(asker, owner, agent).record
                if found is None or found.seq < self._newest_out(owner, agent):
                    raise Violation("D7", f"{agent} found as {found and found.seq} by {asker.port}")
                pointers = self.mesh.pointers(asker, f"skill:{agent}").pointers
                if owner.key not in [pointer.node for pointer in pointers]:
                    raise Violation("D7", f"{agent} not found by its skill by {asker.port}")

    def _newest_out(self, owner: Contact, agent: str) -> int:
        """The largest seq issued long enough ago to be everywhere."""
        issued = self._issued[owner.key, agent].values()
        return max((seq for seq, at_s in issued if at_s < self.world.time_s - SPREAD_S), default=0)


def play(seed: int, plant: Plant) -> World:
    """One random life, then calm. Raises Violation."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        dice = random.Random(f"weather {seed}")
        weather = Weather(loss=dice.choice((0.0, 0.05, 0.2)), duplicate=0.05, delay_s=(0.002, 0.1))
        life = Watched(seed, dice.randint(12, 18), weather)
        life.mesh.join_all(settle_s=5.0)
        for number, contact in enumerate(life.dice.sample(life.mesh.contacts, 4)):
            life.publish(contact, f"agent-{number}", life.dice.choice((60, 120, 600)))
        for _ in range(STEPS):
            step(life)
            life.world.run(life.dice.uniform(5, 60))
            life.check_holdings()
        calm(life)
        life.check_progress()
        return life.world


def step(life: Watched) -> None:
    """Something happens. Somebody always searches, and Mallory never rests."""
    life.attack()
    life.search()
    contact = life.dice.choice(life.mesh.contacts)
    host = life.world.hosts[contact]
    match life.dice.randrange(7):
        case 0 | 1 if host.machine is not None:
            life.crash(contact, lose_disk=life.dice.random() < 0.3)
            host.wall_offset_s = life.dice.choice((-CLOCK_S, 0.0, 0.0))
        case 0 | 1 | 2 if host.machine is None:
            life.restart(contact)
        case 3 if not host.frozen:
            life.world.freeze(contact)
        case 4 if host.frozen:
            life.world.thaw(contact)
        case 5 if host.machine is not None and life.agents:
            owner, agent = life.dice.choice(list(life.agents))
            life.publish(owner, agent, life.agents[owner, agent])
        case _:
            life.world.cut(contact, life.dice.choice(life.mesh.contacts))


def calm(life: Watched) -> None:
    """Faults stop: good weather, everybody runs, clocks are set right by a restart."""
    life.world.mend()
    life.world.weather.loss = 0.0
    for contact in life.mesh.contacts:
        host = life.world.hosts[contact]
        if host.frozen:
            life.world.thaw(contact)
        if host.machine is None or host.wall_offset_s:
            host.wall_offset_s = 0.0
            life.restart(contact)
    life.world.run(CALM_S)
