"""The election and its log under random faults, then under none; and directed schedules.

0 ── proposals, crashes, lost disks, freezes, cuts, splits, bad weather ──> 60 beats ── calm, L1 ──> all know all
"""

import random
from collections.abc import Callable
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import LinkPeer, Propose, StepDown
from ioa_p2p.team.role import Role
from ioa_p2p.team.timing import BATTERY, LAN, WAN, Timing
from tests.sim.checks import watch_election
from tests.sim.scenario import Violation
from tests.sim.teams import Cast, coordinator, members
from tests.sim.world import Weather, World

STORM_BEATS = 60
Part = Callable[..., Election]


class Trial:
    """One world with a team in it, proposals that flow, and faults on demand."""

    def __init__(
        self, seed: int, part: Part, size: int, leads: int | None = None, timing: Timing = LAN, spares: int = 0
    ) -> None:
        self.world = World(seed)
        self.cast = Cast(size, leads=leads, timing=timing, election=part, spares=spares)
        self._proposals = 0
        watch_election(self.world, timing)
        self.world.on_power_loss.append(lambda world, node: self._back_later(node))

    @property
    def nodes(self) -> list[bytes]:
        return self.cast.nodes

    def start(self) -> None:
        for node in self.nodes:
            self.world.add(node, self.cast.make)

    def propose(self, node: bytes, step: bytes = b"step") -> bool:
        """True if `node` took it."""
        self._proposals += 1
        number = self._proposals.to_bytes(4, "big")
        try:
            self.world.command(node, Propose(step + number, number))
        except UsageError:
            return False
        return self.world.hosts[node].machine is not None

    def propose_often(self, every_s: tuple[float, float]) -> None:
        """Whoever believes to coordinate is given work."""
        for node, member in members(self.world).items():
            if member.role is Role.COORDINATOR and not self.world.hosts[node].frozen:
                self.propose(node)
        self.world.after(self.world.rng.uniform(*every_s), lambda: self.propose_often(every_s))

    def decided(self) -> int:
        """The highest index that any member knows to be decided."""
        return max((member.commit_index for member in members(self.world).values()), default=0)

    # -- faults

    def crash(self, node: bytes, *, lose_disk: bool = False) -> None:
        self.world.crash(node, lose_disk=lose_disk)
        if lose_disk:
            self.cast.lost.add(node)
        self._notice(node, up=False)

    def restart(self, node: bytes) -> None:
        self.world.hosts[node].boot_offset_s = self.world.rng.uniform(1, 5_000)
        self.world.restart(node)
        self._notice(node, up=True)

    def freeze(self, node: bytes, seconds: float) -> None:
        if not self.world.hosts[node].frozen:
            self.world.freeze(node)
            self.world.after(seconds, lambda: self._thaw(node))

    def calm(self) -> None:
        """All faults end: every cut is mended, every member runs."""
        self.world.weather = Weather()
        self.world.mend()
        for node in self.nodes:
            self._thaw(node)
            if self.world.hosts[node].machine is None:
                self.restart(node)

    def _thaw(self, node: bytes) -> None:
        if self.world.hosts[node].frozen:
            self.world.thaw(node)

    def _back_later(self, node: bytes) -> None:
        self._notice(node, up=False)
        self.world.after(self.world.rng.uniform(0.1, 4), lambda: self._back(node))

    def _back(self, node: bytes) -> None:
        if self.world.hosts[node].machine is None:
            self.restart(node)

    def _notice(self, node: bytes, *, up: bool) -> None:
        """Half the peers see a link come or go, some milliseconds later; the others never do."""
        for peer in self.nodes:
            if peer != node and self.world.rng.random() < 0.5:
                delay_s = self.world.rng.uniform(0.001, 0.05)
                self.world.after(delay_s, lambda peer=peer: self._link(peer, node, up))

    def _link(self, peer: bytes, node: bytes, up: bool) -> None:
        if not self.world.hosts[peer].frozen:
            self.world.command(peer, LinkPeer(node, up))


def play(seed: int, part: Any = Election) -> World:
    """One seed. Raises Violation."""
    dice = random.Random(f"election {seed}")
    size = dice.randint(3, 7)
    lose_disks = dice.random() < 0.5
    leads = None if lose_disks else dice.choice([None, max(2, size - 2)])
    timing = dice.choice([LAN, LAN, LAN, LAN, WAN, BATTERY])
    trial = Trial(seed, part, size, leads, timing)
    trial.start()
    for host in trial.world.hosts.values():
        host.boot_rate, host.wall_offset_s = dice.uniform(0.99, 1.01), dice.uniform(-600, 600)
    trial.propose_often((0.2 * timing.beat_s, 1.2 * timing.beat_s))
    storm_s = STORM_BEATS * timing.beat_s
    begin_storm(trial, dice, storm_s, (size - 1) // 2 if lose_disks else 0)
    trial.world.run(storm_s)
    check_recovery(trial)
    return trial.world


def begin_storm(trial: Trial, dice: random.Random, seconds: float, disks: int = 0) -> None:
    """Faults drawn until the calm. disks: how many may be lost; a majority must remember, or none may vote."""
    beat_s = trial.cast.timing.beat_s
    at, beats = dice.uniform(1, 6), seconds / beat_s
    while at < beats:
        trial.world.at(at * beat_s, _fault(trial, dice, disks))
        at += dice.uniform(0.4, 5)


def _fault(trial: Trial, dice: random.Random, disks: int) -> Callable[[], None]:
    world, node, other = trial.world, *dice.sample(trial.nodes, 2)
    seconds, share = dice.uniform(0.2, 12) * trial.cast.timing.beat_s, dice.randint(1, len(trial.nodes) - 1)
    weather = Weather(dice.uniform(0, 0.3), dice.uniform(0, 0.2), (0.001, dice.choice([0.02, 0.3])), 0.002)
    match dice.randrange(10):
        case 0 | 1:
            return lambda: _crash(trial, node, seconds, lose_disk=False)
        case 2:
            return lambda: _crash(trial, node, seconds, lose_disk=len(trial.cast.lost | {node}) <= disks)
        case 3:
            return lambda: _crash_coordinator(trial, seconds)
        case 4:
            return lambda: trial.freeze(node, seconds)
        case 5:
            return lambda: _cut(trial, node, other, seconds)
        case 6:
            return lambda: _split(trial, dice.sample(trial.nodes, share), seconds)
        case 7:
            return lambda: setattr(world, "weather", weather)
        case 8:
            return lambda: setattr(world.hosts[node], "wall_offset_s", seconds * 1000)
        case _:
            return lambda: world.hosts[node].frozen or world.command(node, StepDown())


def _crash(trial: Trial, node: bytes, seconds: float, *, lose_disk: bool) -> None:
    trial._thaw(node)
    trial.crash(node, lose_disk=lose_disk)
    trial.world.after(seconds, lambda: trial._back(node))


def _crash_coordinator(trial: Trial, seconds: float) -> None:
    lead = coordinator(trial.world)
    if lead is not None and lead.coordinator is not None:
        _crash(trial, lead.coordinator, seconds, lose_disk=False)


def _cut(trial: Trial, source: bytes, target: bytes, seconds: float) -> None:
    trial.world.cut(source, target)
    trial.world.after(seconds, lambda: trial.world.mend(source, target))


def _split(trial: Trial, side: list[bytes], seconds: float) -> None:
    trial.world.split(side, [node for node in trial.nodes if node not in side])
    trial.world.after(seconds, trial.world.mend)


def check_recovery(trial: Trial, refused: frozenset[str] = frozenset()) -> None:
    """L1: a new commit within three election timeouts after the last fault; then all members know it. No honest
    word was ever taken for a lie; refused: codes of what may be honest and still unheard."""
    trial.calm()
    before, timeout_s = trial.decided(), trial.cast.timing.wait_s_max
    if not trial.world.run(3 * timeout_s, until=lambda: trial.decided() > before):
        raise Violation("L1", f"no commit after {before} within three election timeouts")
    trial.world.run(timeout_s)
    lead = coordinator(trial.world)
    inside = lead.electorate.nodes if lead is not None else ()
    commits = {member.commit_index for node, member in members(trial.world).items() if node in inside}
    if not commits or max(commits) - min(commits) > 2:
        raise Violation("L1", f"members know {sorted(commits)}")
    if set(trial.world.faults) - refused:
        raise Violation("honest", f"members refused each other: {trial.world.faults}")
