"""Teams that lose their majority, or their launcher's reach, and are formed anew; then all come back.

0 s ── work ──> majority gone: killed, cut off, frozen ── loss, the launcher dies in the middle, asked by hand ──> 45 s
45 s ── calm: who was gone learns it and yields ──> L2: the end, in one incarnation
"""

import random
from collections.abc import Callable
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.team.commands import ReformTeam
from ioa_p2p.team.events import Concluded, LeftBehind, Reformed, Reforming
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.tasks import LAN
from tests.sim.checks import watch_election
from tests.sim.jobs import TEAM, Jobs
from tests.sim.scenario import Violation
from tests.sim.team import GOAL_S, LATE_S, SIZES, calm, kill, short_checkpoints, team_jobs
from tests.sim.team_checks import watch_team
from tests.sim.world import Weather, World

GONE_S = 45.0  # lease, grace, and a few tries
PATIENCE_S = LAN.lease_s + LAN.grace_s


def play(seed: int, part: Any = Teams) -> World:
    """One seed. Raises Violation."""
    with short_checkpoints("reform", seed):
        return _play(seed, part)


def _play(seed: int, part: Any) -> World:
    dice = random.Random(f"reform {seed}")
    jobs = team_jobs(seed, dice, SIZES[seed % len(SIZES)], part, spares=0)
    jobs.run_s = lambda spec: 0.5 + 30.0 * (spec.id[0] / 255)
    watch_team(jobs)
    watch_election(jobs.world, jobs.timing)
    jobs.world.weather = Weather(dice.uniform(0, 0.25), dice.uniform(0, 0.2), (0.001, dice.choice([0.02, 0.2])))
    jobs.start()
    jobs.launch()
    jobs.world.run(dice.uniform(2, 12))
    _lose_majority(jobs, dice)
    _disturb(jobs, dice)
    jobs.world.run(GONE_S)
    calm(jobs)
    end(jobs)
    return jobs.world


def _lose_majority(jobs: Jobs, dice: random.Random) -> None:
    """Killed (a disk may be lost too), cut off together, or each cut off alone; now and then some come back early."""
    others = [node for node in jobs.nodes if node != jobs.asker]
    gone = dice.sample(others, dice.randint(len(jobs.nodes) // 2 + 1, len(others)) if len(others) > 2 else 2)
    rest = [node for node in jobs.nodes if node not in gone]
    match dice.randrange(4):
        case 0:
            jobs.world.split(rest, gone)
        case 1:
            jobs.world.split(rest, *[[node] for node in gone])
        case _:
            lost = dice.choice([None, *gone])
            for node in gone:
                jobs.world.after(dice.uniform(0, 3), lambda node=node: jobs.crash(node, lose_disk=node == lost))
    for node in gone[: dice.randint(0, len(gone) // 2)]:
        at = dice.uniform(PATIENCE_S - 2, GONE_S)
        jobs.world.after(at, lambda node=node: _back(jobs, node))


def _disturb(jobs: Jobs, dice: random.Random) -> None:
    """The launcher dies in the middle, its owner is impatient, a member freezes, one forgets what it signed."""
    if dice.random() < 0.4:
        at = PATIENCE_S + dice.uniform(-1, 6)
        jobs.world.after(at, lambda: jobs.crash(jobs.asker))
        jobs.world.after(at + dice.uniform(0.1, 8), lambda: _back(jobs, jobs.asker))
    for _ in range(dice.randint(0, 3)):
        jobs.world.after(dice.uniform(4, GONE_S), lambda: by_hand(jobs))
    if dice.random() < 0.2:
        forgets, at = dice.choice([node for node in jobs.nodes if node != jobs.asker]), dice.uniform(0, GONE_S)
        jobs.world.after(at, lambda: kill(jobs, forgets, 2.0, lose_disk=True))
    if dice.random() < 0.3:
        node, at = dice.choice(jobs.nodes), dice.uniform(0, 25)
        jobs.world.after(at, lambda: jobs.world.freeze(node))
        jobs.world.after(at + dice.uniform(1, 15), lambda: jobs.world.thaw(node))


def by_hand(jobs: Jobs) -> None:
    """`ioa-p2p team reform`; what is refused is refused."""
    try:
        jobs.world.command(jobs.asker, ReformTeam(TEAM))
    except UsageError as fault:
        if fault.code not in ("led", "team-ended", "no-such-team"):
            raise


def _back(jobs: Jobs, node: bytes) -> None:
    if jobs.world.hosts[node].machine is None:
        jobs.restart(node)


def end(jobs: Jobs) -> None:
    """L2: the launcher's team concludes; all that run follow its incarnation, or were left behind by it."""
    if not jobs.world.run(GOAL_S + LATE_S, until=jobs.settled):
        raise Violation("L2", "no end")
    if not jobs.world.run(40, until=lambda: _agree(jobs)):
        places = {jobs.names[node]: team.election.incarnation for node, team in jobs.teams().items()}
        raise Violation("one-team", f"incarnations after the calm: {places}")


def _agree(jobs: Jobs) -> bool:
    """Or somebody is in an old incarnation that has ended, and asks nobody any more."""
    teams = jobs.teams()
    newest = max((team.election.incarnation for team in teams.values()), default=0)
    return all(
        team.left or team.election.incarnation == newest or (team.asleep and team.state.conclusion is not None)
        for team in teams.values()
    )


# -- directed worlds


def _working(part: Any, size: int = 5, seed: int = 3) -> Jobs:
    """A team at work on tasks that take long."""
    jobs = team_jobs(seed, random.Random("directed"), size, part, spares=0)
    jobs.run_s = lambda spec: 25.0
    jobs.dies = lambda spec: False
    watch_team(jobs)
    watch_election(jobs.world, jobs.timing)
    jobs.start()
    jobs.launch()
    _expect(jobs.world.run(20, until=lambda: len(jobs.runs) >= 2), "L2", "it works")
    jobs.world.run(1)
    return jobs


def killed_for_good(part: Any) -> World:
    """Three of five die for good: two go on with what ran there, and the goal ends."""
    jobs = _working(part)
    stays = next(run.node for run in jobs.runs if run.node != jobs.asker)
    gone = [node for node in _others(jobs) if node != stays]
    before = {run.spec.id for run in jobs.runs if run.node not in gone}
    for node in gone:
        jobs.crash(node)
    _expect(jobs.world.run(2 * PATIENCE_S, until=lambda: bool(jobs.told(Reformed))), "L2", "it is formed anew")
    _expect(jobs.world.run(GOAL_S + LATE_S, until=jobs.concluded), "L2", "it ends")
    again = [run for run in jobs.runs if run.spec.id in before]
    _expect(len(again) == len(before), "once-each", "what ran goes on, and does not run again")
    return jobs.world


def majority_lives_unreached(part: Any) -> World:
    """The launcher alone is cut off for long, the others decide on: it forms the team anew, alone; when all is well
    again they yield, and what they decided is not in it: the trade."""
    jobs = _working(part)
    rest = _others(jobs)
    jobs.world.split([jobs.asker], rest)
    jobs.world.run(3 * PATIENCE_S)
    _expect({event.incarnation for event in jobs.told(Reformed)} == {1}, "L2", "the launcher went on alone")
    _expect(jobs.coordinator() is not None, "L1", "the others went on too")
    calm(jobs)
    end(jobs)
    _expect(bool(jobs.told(LeftBehind)), "one-team", "the others learned it")
    return jobs.world


def majority_lives_reached_by_one(part: Any) -> World:
    """The launcher reaches one member that the living majority reaches too: nothing is formed anew."""
    jobs = _working(part)
    lead = jobs.coordinator()
    _expect(lead != jobs.asker, "led", "the launcher does not lead")
    bridge = next(node for node in _others(jobs) if node != lead)
    jobs.world.split([jobs.asker], [node for node in _others(jobs) if node != bridge])
    jobs.world.run(3 * PATIENCE_S)
    _expect(bool(jobs.told(Reforming)), "led", "the launcher finds nobody who leads")
    _expect(not jobs.told(Reformed), "led", "a majority that one of us hears is not lost")
    calm(jobs)
    end(jobs)
    return jobs.world


def longest_log_elsewhere(part: Any) -> World:
    """One member holds what two that die had decided with it, and the launcher does not: it is adopted."""
    jobs = _working(part)
    jobs.world.run(19)
    holder, one, two, other = _others(jobs)
    for node in (jobs.asker, other):
        jobs.world.split([node], [peer for peer in jobs.nodes if peer != node])
    decided = jobs.teams()[holder].election.commit_index
    more = jobs.world.run(10, until=lambda: jobs.teams()[holder].election.commit_index > decided + 1)
    _expect(more, "L1", "they decide")
    held = jobs.teams()[holder].election.commit_index
    for node in (one, two, other):
        jobs.crash(node)
    jobs.world.run(3)  # until the holder leads no more, or it would bring the entries itself
    jobs.world.mend()
    _expect(jobs.world.run(3 * PATIENCE_S, until=lambda: bool(jobs.told(Reformed))), "L2", "it is formed anew")
    adopted = jobs.told(Reformed)[0].roster.adopted
    _expect(adopted is not None and adopted.index >= held, "I2", f"{held} are decided, {adopted.index} adopted")
    calm(jobs)
    end(jobs)
    return jobs.world


def launcher_dies_in_the_middle(part: Any) -> World:
    """At every half second of a try the launcher dies, and comes back: one incarnation 1, never two."""
    world = World(0)
    for step in range(8):
        jobs = _working(part)
        for node in _others(jobs)[:3]:
            jobs.crash(node)
        jobs.world.run(PATIENCE_S - 1 + 0.55 * step)
        jobs.crash(jobs.asker)
        jobs.world.run(1)
        jobs.restart(jobs.asker)
        _expect(jobs.world.run(3 * PATIENCE_S, until=lambda jobs=jobs: bool(jobs.told(Reformed))), "L2", "formed anew")
        calm(jobs)
        end(jobs)
        world = jobs.world
    return world


def asleep_with_all(part: Any) -> World:
    """The launcher's machine sleeps for an hour: it wakes, asks, and follows; nothing is formed anew."""
    jobs = _working(part)
    jobs.world.freeze(jobs.asker, deaf=True)
    jobs.world.run(60)
    jobs.world.thaw(jobs.asker)
    jobs.world.run(20)
    _expect(not jobs.told(Reforming), "led", "that nobody was heard in its sleep says nothing")
    calm(jobs)
    end(jobs)
    return jobs.world


def all_asleep(part: Any) -> World:
    """Every machine sleeps for two minutes, mail and all, while tasks run: they wake, links come up again, somebody is
    elected, and the work goes on; nobody was lost."""
    jobs = _working(part)
    for node in jobs.nodes:
        jobs.world.freeze(node, deaf=True)
    jobs.world.run(120)
    for node in jobs.nodes:
        jobs.world.after(jobs.world.rng.uniform(0, 2), lambda node=node: jobs.world.thaw(node))
    jobs.world.run(3)
    for node in jobs.nodes:
        jobs.notice(node, up=True)
    _expect(jobs.world.run(3 * jobs.timing.wait_s_max, until=lambda: jobs.coordinator() is not None), "L1", "one leads")
    jobs.world.run(PATIENCE_S)
    _expect(not jobs.told(Reforming), "led", "that all slept says nothing")
    calm(jobs)
    end(jobs)
    return jobs.world


def worker_asleep(part: Any) -> World:
    """A worker sleeps over its task, which moves: awake it hears so before it does anything, and its late result is
    apart."""
    jobs = _working(part)
    run = next(run for run in jobs.runs if run.node not in (jobs.asker, jobs.coordinator()))
    jobs.world.freeze(run.node, deaf=True)
    jobs.notice(run.node, up=False)
    jobs.world.run(60)
    jobs.world.thaw(run.node)
    jobs.notice(run.node, up=True)
    calm(jobs)
    end(jobs)
    return jobs.world


def pair_parted(part: Any) -> World:
    """Of two members one is gone for good: the launcher goes on alone, and the goal ends."""
    jobs = _working(part, size=2)
    (other,) = _others(jobs)
    jobs.crash(other)
    _expect(jobs.world.run(2 * PATIENCE_S, until=lambda: bool(jobs.told(Reformed))), "L2", "it is formed anew")
    _expect(len(jobs.told(Reformed)[0].roster.voters) == 1, "one-team", "of one")
    _expect(jobs.world.run(GOAL_S + LATE_S, until=lambda: bool(jobs.told(Concluded, jobs.asker))), "L2", "it ends")
    jobs.restart(other)
    end(jobs)
    _expect(bool(jobs.told(LeftBehind, other)), "one-team", "the other learns it")
    return jobs.world


SCHEDULES: dict[str, Callable[[Any], World]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        killed_for_good,
        majority_lives_unreached,
        majority_lives_reached_by_one,
        longest_log_elsewhere,
        launcher_dies_in_the_middle,
        asleep_with_all,
        all_asleep,
        worker_asleep,
        pair_parted,
    )
}


def _others(jobs: Jobs) -> list[bytes]:
    return [node for node in jobs.nodes if node != jobs.asker]


def _expect(holds: bool, rule: str, what: str) -> None:
    if not holds:
        raise Violation(rule, what)
