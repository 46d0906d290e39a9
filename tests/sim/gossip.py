"""A team's channel in the seeded world: what must hold at every event, and random lives that try to break it.

    play(seed, plant) ──> a team of 3..12, bad weather, cuts, splits, crashes, a liar ──> heal ──> logs equal in 60 s

Rules C1-C6 and L3: docs/invariants.md. Directed lives: gossip_schedules.py; planted faults: gossip_mutants.py.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from ioa_p2p.effects import Effect, Now, Rows, Send, SetTimer
from ioa_p2p.errors import UsageError
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Say
from ioa_p2p.gossip.events import Forked, Gap, Said
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.wire.gossip import Entries, Entry, Frontier, Head, Held, Want
from tests.gossip.team import KEYS, NETWORK, NODES, TEAM, chain, signed
from tests.sim.scenario import Violation
from tests.sim.world import Weather, World

HEAL_S = 60.0

Plant = Callable[[pytest.MonkeyPatch], None]
"""Plants a fault, or none."""


def sound(patch: pytest.MonkeyPatch) -> None:
    """The product as it is."""


class Team:
    """Members 0..size-1 in a world, with links that go up and down, and checks at every event."""

    def __init__(self, seed: int, size: int, weather: Weather | None = None, liars: int = 0) -> None:
        self.world = World(seed, weather)
        self.nodes = NODES[:size]
        self.honest = self.nodes[: size - liars]
        self.up: set[tuple[bytes, bytes]] = set()
        self.said: dict[bytes, dict[bytes, int]] = {node: {} for node in self.honest}
        self.lines: dict[tuple[bytes, int], Entry] = {}
        self.forks: dict[bytes, dict[bytes, int]] = {node: {} for node in self.honest}
        self.gaps: dict[bytes, set[tuple[bytes, int]]] = {node: set() for node in self.honest}
        self.cuts: dict[bytes, dict[bytes, int]] = {node: {} for node in self.honest}
        self.world.on_event.append(self._check)
        for node in self.honest:
            self.world.add(node, make)
            self.world.command(node, OpenChannel(TEAM, tuple(self.nodes)))
        for number in range(size - liars, size):
            self.world.add(NODES[number], lambda address, rows, dice, now: Liar(self, address, dice))

    # -- links

    def link(self, a: bytes, b: bytes, up: bool = True) -> None:
        pair = (min(a, b), max(a, b))
        if up == (pair in self.up):
            return
        (self.up.add if up else self.up.discard)(pair)
        for one, other in ((a, b), (b, a)):
            if one in self.honest:
                self.world.command(one, LinkPeer(other, up))

    def link_all(self) -> None:
        for i, a in enumerate(self.nodes):
            for b in self.nodes[i + 1 :]:
                self.link(a, b)

    def crash(self, node: bytes) -> None:
        """The process dies: its links go down at the others."""
        self.world.crash(node)
        for other in self.nodes:
            if other != node:
                self.link(node, other, False)

    def restart(self, node: bytes) -> None:
        if self.world.hosts[node].machine is not None:
            return
        self.world.restart(node)
        for other in self.nodes:
            if other != node and self.world.hosts[other].machine is not None:
                self.link(node, other)

    def say(self, node: bytes, body: bytes = b"") -> None:
        if self.world.hosts[node].machine is None:
            return
        try:
            self.world.command(node, Say(TEAM, "text", body or b"at %f" % self.world.time_s))
        except UsageError as fault:
            raise Violation("C5", f"an honest member may not speak: {fault.code}") from fault

    def remove(self, node: bytes, gone: bytes, cut: int) -> None:
        """`node` learns that `gone` was removed."""
        self.cuts[node][gone] = cut
        members = tuple(member for member in self.nodes if member not in self.cuts[node])
        self.world.command(node, OpenChannel(TEAM, members, cuts=tuple(self.cuts[node].items())))

    # -- what must hold at every event

    def _check(self, world: World, node: Any, event: Any) -> None:
        if isinstance(event, Forked):
            self.forks[node][event.author] = event.seq
        if isinstance(event, Gap):
            self.gaps[node].update((event.author, seq) for seq in range(event.first, event.last + 1))
        if isinstance(event, Said) and (event.author, event.seq) in self.gaps[node]:
            self._check_late(node, event)
        elif isinstance(event, Said):
            self._check_entry(node, event.entry)
            self._check_causes(node, event.entry)
            self.said[node][event.author] = event.seq

    def _check_late(self, node: bytes, event: Said) -> None:
        """A marked gap is filled, once, and by what its author said there."""
        self.gaps[node].discard((event.author, event.seq))
        if not event.late:
            raise Violation("C2", f"{event.seq} was given up and is told as if it were in time")
        self._check_same(event.entry)
        self.said[node][event.author] = max(event.seq, self.said[node].get(event.author, 0))

    def _check_entry(self, node: bytes, entry: Entry) -> None:
        if entry.seq > self.cuts[node].get(entry.node, entry.seq):
            raise Violation("I11", f"line {entry.seq} of a removed author is said, above its cut")
        said = self.said[node].get(entry.node, 0)
        while (entry.node, said + 1) in self.gaps[node]:
            said += 1
        if entry.node not in self.nodes:
            raise Violation("C1", "an entry of somebody who is no member")
        if entry.seq != said + 1:
            raise Violation("C2", f"said {entry.seq} after {said}")
        self._check_same(entry)

    def _check_same(self, entry: Entry) -> None:
        if entry.node in self.honest and self.lines.setdefault((entry.node, entry.seq), entry) != entry:
            raise Violation("C3", "one number, two lines")

    def _check_causes(self, node: bytes, entry: Entry) -> None:
        for author, seq in entry.seen:
            ends = min(self.forks[node].get(author, seq), self.cuts[node].get(author, seq))
            if self.said[node].get(author, 0) < seq <= ends and (author, seq) not in self.gaps[node]:
                raise Violation("C4", "an entry before what its author had seen")

    # -- progress, asserted only after the faults stop

    def equal(self) -> bool:
        """Whether every live member has said the same lines of every honest author."""
        want = {author: max((seq for a, seq in self.lines if a == author), default=0) for author in self.honest}
        live = [node for node in self.honest if self.world.hosts[node].machine is not None]
        return all(self.said[node].get(author, 0) == seq for node in live for author, seq in want.items())

    def heal(self) -> None:
        self.world.weather = Weather()
        self.world.mend()
        for node in self.honest:
            if self.world.hosts[node].machine is None:
                self.restart(node)
        self.link_all()

    def must_be_equal_within(self, seconds: float) -> None:
        if not self.world.run(seconds, until=self.equal):
            raise Violation("L3", f"logs differ after {seconds} s")


def make(address: Any, rows: Rows, dice: random.Random, now: Now) -> GossipMachine:
    return GossipMachine(KEYS[NODES.index(address)], NETWORK, rows, dice)


class Liar:
    """A member that forges, replays, forks, floods and claims what it does not have."""

    def __init__(self, team: Team, address: bytes, dice: random.Random) -> None:
        self._team, self._me, self._dice = team, address, dice
        self._key = KEYS[NODES.index(address)]
        self._heard: list[bytes] = []
        self._histories = [chain(self._key, 12, tag) for tag in (b"one ", b"two ")]

    def start(self, now: Now) -> list[Effect]:
        return [SetTimer("lie", now.boot + 0.5)]

    def handle_message(self, now: Now, peer: Any, message: Any) -> list[Effect]:
        if isinstance(message, Entries):
            self._heard.append(message.raw)
        return []

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        return []

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        lies = [self._forged, self._replayed, self._forked, self._foreign, self._claims, self._floods]
        message = self._dice.choice(lies)()
        return [Send(self._dice.choice(self._team.honest), message), SetTimer("lie", now.boot + 0.3)]

    def _victim(self) -> int:
        return self._dice.randrange(len(self._team.honest))

    def _forged(self) -> Any:
        """The next entry of an honest author, signed by the liar's key or by nobody."""
        victim = KEYS[self._victim()]
        seq = max((s for a, s in self._team.lines if a == victim.node), default=0) + 1
        raw = bytearray(signed(victim, seq, body=b"forged"))
        raw[-1] ^= 1
        return Entries(bytes(raw))

    def _replayed(self) -> Any:
        return Entries(self._dice.choice(self._heard)) if self._heard else self._claims()

    def _forked(self) -> Any:
        history = self._dice.choice(self._histories)
        return Entries(b"".join(history[: self._dice.randint(1, len(history))]))

    def _foreign(self) -> Any:
        return Entries(signed(KEYS[15], 1, body=b"no member"))

    def _claims(self) -> Any:
        """Far more of everybody than there is, with hashes of nothing."""
        many = 10**12
        if self._dice.random() < 0.5:
            return Held(TEAM, tuple((member, author, many) for member in NODES[:3] for author in NODES[:3]))
        heads = tuple(Head(node, self._dice.choice((1, 2, many)), bytes(8), True) for node in self._team.nodes)
        return Frontier(TEAM, heads)

    def _floods(self) -> Any:
        return Want(TEAM, NODES[self._victim()], 1, 10**12)


# -- random runs


def play(seed: int, plant: Plant) -> World:
    """One seeded life of a team, checked all the way. Raises Violation."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        return _live(seed).world


def _live(seed: int, seconds: float = 40.0) -> Team:
    dice = random.Random(f"gossip/{seed}")
    liars = dice.choice((0, 0, 1))
    size = dice.choice((3, 3, 4, 5, 6, 8, 12)) + liars
    weather = Weather(dice.choice((0, 0.05, 0.2)), dice.choice((0, 0.1)), (0.001, dice.choice((0.02, 0.3))))
    team = Team(seed, size, weather, liars)
    team.link_all()
    happenings = _happenings(team, dice)
    for _ in range(int(seconds * 1.5)):
        team.world.at(dice.uniform(0, seconds), dice.choice(happenings))
    team.world.run(seconds)
    team.heal()
    team.must_be_equal_within(HEAL_S)
    _forks_must_agree(team)
    return team


def _forks_must_agree(team: Team) -> None:
    """If one knows of a fork, all do, and all count the same entries."""

    def agree() -> bool:
        return len({tuple(forks.items()) for forks in team.forks.values()}) == 1

    if not team.world.run(HEAL_S, until=agree):
        raise Violation("C5", "members disagree on a fork")


def _happenings(team: Team, dice: random.Random) -> list[Callable[[], None]]:
    world = team.world

    def anybody() -> bytes:
        return dice.choice(team.honest)

    def say() -> None:
        team.say(anybody())

    def crash() -> None:
        node = anybody()
        if world.hosts[node].machine is not None:
            team.crash(node)
            world.after(dice.uniform(0.5, 15.0), lambda: team.restart(node))

    def cut() -> None:
        a, b = anybody(), anybody()
        world.cut(a, b)
        world.after(dice.uniform(1.0, 20.0), lambda: world.mend(a, b))

    def unlink() -> None:
        a, b = dice.sample(team.honest, 2)
        team.link(a, b, False)
        world.after(dice.uniform(1.0, 20.0), lambda: _relink(team, a, b))

    def split() -> None:
        nodes = dice.sample(team.nodes, len(team.nodes))
        half = dice.randrange(1, len(nodes))
        world.split(nodes[:half], nodes[half:])
        world.after(dice.uniform(3.0, 15.0), world.mend)

    return [*[say] * 14, crash, cut, unlink, unlink, split]


def _relink(team: Team, a: bytes, b: bytes) -> None:
    if team.world.hosts[a].machine is not None and team.world.hosts[b].machine is not None:
        team.link(a, b)
