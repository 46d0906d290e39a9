"""A whole team under random faults, then under none: the job ends, whatever happened.

0 s ── launch, kills of coordinator, worker, launcher, freezes, cuts, bad weather ──> 40 s ── calm ──> the end, L2
"""

import random
from collections.abc import Callable
from typing import Any

from ioa_p2p.team.events import Policy
from ioa_p2p.team.machine import Teams
from ioa_p2p.wire.records import Skill
from tests.sim.jobs import CAST, Jobs
from tests.sim.scenario import Violation
from tests.sim.team_checks import watch_team
from tests.sim.world import Weather, World

STORM_S = 40.0
GOAL_S = 240
LATE_S = 60.0  # L2: every task is final by its deadline and this


def play(seed: int, part: Any = Teams) -> World:
    """One seed. Raises Violation."""
    dice = random.Random(f"team {seed}")
    jobs = Jobs(seed, _cast(dice), machine=part, policy=Policy(goal_s=GOAL_S))
    longest_s = dice.choice([2.0, 8.0, 25.0])
    jobs.run_s = lambda spec: 0.5 + longest_s * (spec.id[0] / 255)
    jobs.dies = lambda spec: spec.id[1] < 12
    jobs.repeats_plans = dice.random() < 0.3
    watch_team(jobs)
    jobs.start()
    for host in jobs.world.hosts.values():
        host.wall_offset_s, host.boot_rate = dice.uniform(-250, 250), dice.uniform(0.99, 1.01)
    jobs.world.on_power_loss.append(lambda world, node: _back_later(jobs, node, dice.uniform(0.1, 3)))
    jobs.launch()
    _storm(jobs, dice)
    jobs.world.run(STORM_S)
    calm(jobs)
    finish(jobs)
    return jobs.world


def _cast(dice: random.Random) -> dict[str, tuple[Skill, ...]]:
    """The usual job with one or two of each; effects of all classes."""
    effects = {skill.name: dice.choice(["pure", "pure", "idempotent", "once"]) for (skill,) in list(CAST.values())[1:]}
    cast: dict[str, tuple[Skill, ...]] = {"asker": ()}
    for name, skills in list(CAST.items())[1:]:
        mine = tuple(with_effect(skill, effects[skill.name]) for skill in skills)
        cast[name] = mine
        if not name.startswith("device") and dice.random() < 0.3:
            cast[f"{name}-b"] = mine
    return cast


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
    seconds, side = dice.uniform(0.1, 14), dice.sample(jobs.nodes, dice.randint(1, 3))
    weather = Weather(dice.uniform(0, 0.3), dice.uniform(0, 0.2), (0.001, dice.choice([0.02, 0.2])), 0.0005)
    match dice.randrange(9):
        case 0:
            return lambda: kill(jobs, node, seconds)
        case 1 | 2:
            return lambda: kill(jobs, jobs.coordinator() or node, seconds)
        case 3:
            return lambda: kill(jobs, _working(jobs) or node, seconds)
        case 4:
            return lambda: kill(jobs, jobs.asker, seconds)
        case 5:
            return lambda: freeze(jobs, node, seconds)
        case 6:
            return lambda: _cut(jobs, node, other, seconds)
        case 7:
            return lambda: _split(jobs, side, seconds)
        case _:
            return lambda: setattr(world, "weather", weather)


def kill(jobs: Jobs, node: bytes, seconds: float) -> None:
    """Crash, and start again after a while."""
    if jobs.world.hosts[node].machine is not None:
        _thaw(jobs, node)
        jobs.crash(node)
        _back_later(jobs, node, seconds)


def freeze(jobs: Jobs, node: bytes, seconds: float) -> None:
    if not jobs.world.hosts[node].frozen:
        jobs.world.freeze(node)
        jobs.world.after(seconds, lambda: _thaw(jobs, node))


def calm(jobs: Jobs) -> None:
    """All faults end: every cut is mended, every node runs."""
    jobs.world.weather = Weather()
    jobs.world.mend()
    for node in jobs.nodes:
        _thaw(jobs, node)
        _back(jobs, node)
    jobs.launch()


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
    if jobs.world.hosts[node].machine is None:
        jobs.restart(node)
        if node == jobs.asker:
            jobs.launch()


def _thaw(jobs: Jobs, node: bytes) -> None:
    if jobs.world.hosts[node].frozen:
        jobs.world.thaw(node)


def _cut(jobs: Jobs, source: bytes, target: bytes, seconds: float) -> None:
    jobs.world.cut(source, target)
    jobs.world.after(seconds, lambda: jobs.world.mend(source, target))


def _split(jobs: Jobs, side: list[bytes], seconds: float) -> None:
    jobs.world.split(side, [node for node in jobs.nodes if node not in side])
    jobs.world.after(seconds, jobs.world.mend)
