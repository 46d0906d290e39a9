"""A whole team under random faults, then under none: the job ends, whatever happened.

0 s ── launch, kills of coordinator, worker, launcher, lost disks, freezes, sleeps, cuts, bridges, jumping clocks, bad
weather ──> 40 s ── calm ──> L1: led again ──> L2: the end
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from ioa_p2p.team.commands import Policy
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.timing import LAN, WAN
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance, Spent
from tests.sim.checks import watch_election
from tests.sim.jobs import CAST, Jobs
from tests.sim.scenario import Violation
from tests.sim.team_checks import watch_team
from tests.sim.world import Weather, World

SIZES = (3, 5, 7)
STORM_S = 40.0
GOAL_S = 240
LATE_S = 60.0  # L2: every task is final by its deadline and this


def play(seed: int, part: Any = Teams) -> World:
    """One seed; a third of them for each size. Raises Violation."""
    with short_checkpoints("team", seed):
        return _play(seed, part)


@contextmanager
def short_checkpoints(scenario: str, seed: int) -> Iterator[None]:
    """In every fifth seed a checkpoint every few entries, so that who was away needs a snapshot."""
    dice = random.Random(f"checkpoints of {scenario} {seed}")
    entries = dice.randint(2, 9) if seed % 5 == 1 else limits.CHECKPOINT_ENTRIES
    with mock.patch.object(limits, "CHECKPOINT_ENTRIES", entries):
        yield


def _play(seed: int, part: Any) -> World:
    dice = random.Random(f"team {seed}")
    jobs = team_jobs(seed, dice, SIZES[seed % len(SIZES)], part)
    watch_team(jobs)
    watch_election(jobs.world, jobs.timing)
    jobs.world.weather = _weather(dice)
    jobs.start()
    for host in jobs.world.hosts.values():
        host.wall_offset_s, host.boot_rate = dice.uniform(-250, 250), dice.uniform(0.99, 1.01)
    jobs.world.on_power_loss.append(lambda world, node: _back_later(jobs, node, dice.uniform(0.1, 3)))
    jobs.launch()
    _storm(jobs, dice)
    jobs.world.run(STORM_S)
    calm(jobs)
    recover(jobs)
    finish(jobs)
    return jobs.world


def team_jobs(seed: int, dice: random.Random, size: int, part: Any, spares: float = 0.3) -> Jobs:
    """The usual job with one or two of each agent, at `size` nodes; effects of all classes. spares: how often two."""
    effects = {skill.name: dice.choice(["pure", "pure", "idempotent", "once"]) for (skill,) in list(CAST.values())[1:]}
    cast = {name: tuple(with_effect(skill, effects[skill.name]) for skill in skills) for name, skills in CAST.items()}
    own, others = list(cast)[:size], list(cast)[size:]
    spares = {f"{name}-b": cast[name] for name in ("analyst", "charter", "writer") if dice.random() < spares}
    homes = {name: dice.choice(own) for name in (*others, *spares)}
    caps = Caps(budget=Allowance(dice.choice([None, 1_000]), calls=dice.choice([None, None, 12]), agents=16))
    jobs = Jobs(seed, cast | spares, homes, machine=part, policy=Policy(goal_s=GOAL_S, caps=caps))
    jobs.spends = lambda spec: Spent((spec.budget.tokens or 0) * spec.id[2] // 255, calls=1)
    longest_s = dice.choice([2.0, 8.0, 25.0])
    jobs.run_s = lambda spec: 0.5 + longest_s * (spec.id[0] / 255)
    jobs.dies = lambda spec: spec.id[1] < 12
    jobs.repeats_plans = dice.random() < 0.3
    jobs.timing = dice.choice([LAN, LAN, LAN, LAN, LAN, WAN])
    return jobs


def with_effect(skill: Skill, effect: Any) -> Skill:
    return Skill(skill.name, skill.description, skill.inputs, skill.outputs, effect=effect)


# -- faults


def _storm(jobs: Jobs, dice: random.Random) -> None:
    at = dice.uniform(0.05, 3)
    while at < STORM_S - 0.1:
        jobs.world.at(at, _fault(jobs, dice))
        at += dice.uniform(0.3, 5)


def _fault(jobs: Jobs, dice: random.Random) -> Callable[[], None]:
    world, (node, other) = jobs.world, dice.sample(jobs.nodes, 2)
    seconds, shuffled = dice.uniform(0.1, 14), dice.sample(jobs.nodes, len(jobs.nodes))
    share, step_s, weather = dice.randrange(1, len(shuffled)), dice.uniform(-3, 3), _weather(dice)
    match dice.randrange(13):
        case 0:
            return lambda: kill(jobs, node, seconds)
        case 1 | 2:
            return lambda: kill(jobs, jobs.coordinator() or node, seconds)
        case 3:
            return lambda: kill(jobs, _working(jobs) or node, seconds)
        case 4:
            return lambda: kill(jobs, jobs.asker, seconds)
        case 5:
            return lambda: kill(jobs, node, seconds, lose_disk=True)
        case 6:
            return lambda: freeze(jobs, node, seconds)
        case 7:
            return lambda: freeze(jobs, jobs.coordinator() or node, seconds, deaf=True)
        case 8:
            return lambda: _cut(jobs, node, other, seconds)
        case 9:
            return lambda: _split(jobs, shuffled[:share], shuffled[share:], seconds)
        case 10:
            return lambda: _split(jobs, shuffled[1 : share + 1], shuffled[share + 1 :], seconds)
        case 11:
            return lambda: step_clock(jobs, node, step_s)
        case _:
            return lambda: setattr(world, "weather", weather)


def _weather(dice: random.Random) -> Weather:
    delay_s, sync_s = (0.001, dice.choice([0.02, 0.2])), (0.0, dice.choice([0.0, 0.02]))
    return Weather(dice.uniform(0, 0.3), dice.uniform(0, 0.2), delay_s, 0.0005, sync_s)


def kill(jobs: Jobs, node: bytes, seconds: float, *, lose_disk: bool = False) -> None:
    """Crash, and start again after a while. Disks are lost only as long as a majority remembers; the launcher's
    never, for its goal would be lost with it."""
    host = jobs.world.hosts[node]
    if host.machine is not None:
        _thaw(jobs, node)
        jobs.crash(node, lose_disk=lose_disk and _may_lose_disk(jobs, node))
        _back_later(jobs, node, seconds)


def _may_lose_disk(jobs: Jobs, node: bytes) -> bool:
    voters = next((team.state.roster.voters for team in jobs.teams().values()), frozenset())
    lost = {other for other in voters if jobs.world.hosts[other].disks} | {node}
    return node != jobs.asker and len(lost) <= (len(voters) - 1) // 2


def freeze(jobs: Jobs, node: bytes, seconds: float, *, deaf: bool = False) -> None:
    """SIGSTOP; `deaf`: suspend, where mail is lost as well."""
    host = jobs.world.hosts[node]
    if not host.frozen and host.machine is not None:
        jobs.world.freeze(node, deaf=deaf)
        jobs.world.after(seconds, lambda: _thaw(jobs, node))


def step_clock(jobs: Jobs, node: bytes, step_s: float) -> None:
    """Its wall clock is set by somebody."""
    jobs.world.hosts[node].wall_offset_s += step_s


def calm(jobs: Jobs) -> None:
    """All faults end: every cut is mended, every node runs."""
    jobs.world.weather = Weather()
    jobs.world.mend()
    for node in jobs.nodes:
        _thaw(jobs, node)
        _back(jobs, node)
    jobs.launch()


def recover(jobs: Jobs) -> None:
    """L1: within three election timeouts there is a coordinator that decides and that a majority follows."""
    if not jobs.world.run(3 * jobs.timing.wait_s_max, until=lambda: _is_led(jobs)):
        raise Violation("L1", "nobody leads three election timeouts after the calm")


def _is_led(jobs: Jobs) -> bool:
    """Also when the end is known, or there is no team yet that could be led."""
    teams, lead = jobs.teams(), jobs.coordinator()
    if not teams or any(team.state.conclusion is not None for team in teams.values()):
        return True
    if lead is None:
        return False
    election = teams[lead].election
    newest = election.entry_at(election.commit_index)
    following = sum(team.election.fence == election.fence and team.coordinator == lead for team in teams.values())
    decides = newest is not None and newest.entry.term == election.term
    return decides and following >= election.electorate.majority


def finish(jobs: Jobs) -> None:
    """L2, and the conclusion at every member that was founded with."""
    if not jobs.world.run(GOAL_S + LATE_S, until=jobs.settled):
        open_tasks = [row.spec.skill for team in jobs.teams().values() for row in team.state.open_tasks]
        raise Violation("L2", f"no end: {len(open_tasks)} tasks open")


def _working(jobs: Jobs) -> bytes | None:
    """A node with a run in progress."""
    return next((run.node for run in reversed(jobs.runs) if not run.over), None)


def _back_later(jobs: Jobs, node: bytes, seconds: float) -> None:
    jobs.world.after(seconds, lambda: _back(jobs, node))


def _back(jobs: Jobs, node: bytes) -> None:
    """Half of the starts follow a reboot; no boot clock shows less than a second."""
    host = jobs.world.hosts[node]
    if host.machine is None:
        host.boot_offset_s += jobs.world.rng.choice([0.0, jobs.world.rng.uniform(-900, 900)])
        host.boot_offset_s = max(host.boot_offset_s, 1.0 - jobs.world.time_s * host.boot_rate)
        jobs.restart(node)
        if node == jobs.asker:
            jobs.launch()


def _thaw(jobs: Jobs, node: bytes) -> None:
    if jobs.world.hosts[node].frozen:
        jobs.world.thaw(node)


def _cut(jobs: Jobs, source: bytes, target: bytes, seconds: float) -> None:
    jobs.world.cut(source, target)
    jobs.world.after(seconds, lambda: jobs.world.mend(source, target))


def _split(jobs: Jobs, one: list[bytes], other: list[bytes], seconds: float) -> None:
    """Who is on neither side is a bridge between both."""
    jobs.world.split(one, other)
    jobs.world.after(seconds, jobs.world.mend)
