"""Directed worlds of a whole team: what random dice make too rarely. Each raises Violation or returns its world."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ioa_p2p.errors import StorageError
from ioa_p2p.team.commands import CancelTeam, Policy
from ioa_p2p.team.events import Concluded, Orphan
from ioa_p2p.team.tasks import LAN
from ioa_p2p.wire import limits
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import TaskSpec
from tests.sim.jobs import CAST, TEAM, Jobs, Run
from tests.sim.scenario import Violation
from tests.sim.team import calm, finish, with_effect
from tests.sim.team_checks import watch_team
from tests.sim.world import Weather, World


def all_well(part: Any) -> World:
    """Nothing goes wrong: everybody works once."""
    jobs = _launched(part)
    _end(jobs)
    _expect(len(jobs.runs) == 6, "once-each", "six agents, six runs")
    return jobs.world


def coordinator_killed(part: Any) -> World:
    """Killed while three tasks run, and long away: the others go on, and what they ran is not run twice."""
    jobs = _launched(part, run_s=lambda spec: 6.0)
    _until(jobs, lambda: len(jobs.runs) >= 3)
    lead = jobs.coordinator()
    assert lead is not None
    jobs.crash(lead)
    survivors = [run for run in jobs.runs if run.node != lead]
    before = jobs.teams()[survivors[0].node].election.term
    _expect(jobs.world.run(4, until=lambda: jobs.coordinator() is not None), "L1", "another leads within 4 s")
    _expect(jobs.teams()[survivors[0].node].election.term > before, "L1", "in a new term")
    jobs.world.run(8)
    jobs.restart(lead)
    _end(jobs)
    again = [run for run in jobs.runs if run.spec.id in {one.spec.id for one in survivors}]
    _expect(len(again) == len(survivors), "once-each", "what survived is not run again")
    return jobs.world


def worker_silent_after_accept(part: Any) -> World:
    """goclaw#506: the worker vanishes after its accept; the task does not stay "running" for ever."""
    jobs = _launched(part, spare="analyst")
    run = _first_run(jobs, "metrics.analyse")
    jobs.world.crash(run.node)
    lost_s = LAN.lease_s + 2 * LAN.beat_s
    _expect(jobs.world.run(lost_s, until=lambda: _newest(jobs, run).node != run.node), "lease", "it moves in time")
    _end(jobs)
    return jobs.world


def long_job(part: Any) -> World:
    """celery#5935: a job of three leases, with beats, runs once though another could do it."""
    jobs = _launched(
        part, spare="analyst", run_s=lambda spec: 3 * LAN.lease_s if spec.skill == "metrics.analyse" else 2.0
    )
    finish(jobs)
    _expect(len(jobs.runs) == 6, "lease", f"{len(jobs.runs)} runs of six tasks")
    _end(jobs)
    return jobs.world


def launcher_killed_at_any_time(part: Any) -> World:
    """A2A#928: the launcher dies between sending and answer, comes back and launches again: still one team."""
    world = World(0)
    for step in range(12):
        jobs = _started(part)
        jobs.launch()
        jobs.world.run(0.008 * step)
        jobs.crash(jobs.asker)
        jobs.world.run(1.5)
        try:
            jobs.restart(jobs.asker)
            jobs.launch()
            _end(jobs)
        except StorageError as fault:
            raise Violation("one-team", f"it founds over what it founded: {fault}") from None
        _expect(len({run.spec.id for run in jobs.runs}) == 6, "once-each", "one job, six tasks")
        _expect(jobs.teams()[jobs.asker].election.may_vote, "one-team", "it remembers what it founded")
        world = jobs.world
    return world


def result_lost(part: Any) -> World:
    """The worker's result is lost on the way: it is told again, and the task is not run again."""
    jobs = _launched(part, spare="analyst")
    run = _first_run(jobs, "metrics.analyse")
    _until(jobs, lambda: run.over, lambda: _cut_off(jobs, run.node), after_s=1.8)
    jobs.world.run(0.5)
    jobs.world.mend()
    _end(jobs)
    _expect(len(jobs.runs) == 6, "kept", "the result was kept and told again")
    return jobs.world


def worker_restarts_after_its_result(part: Any) -> World:
    """It dies with a result that nobody heard yet: after the start it tells it, and does not work again."""
    jobs = _launched(part)
    run = _first_run(jobs, "metrics.analyse")
    _until(jobs, lambda: run.over, lambda: _cut_off(jobs, run.node), after_s=1.8)
    jobs.world.crash(run.node)
    jobs.world.mend()
    jobs.world.run(1)
    jobs.restart(run.node)
    _end(jobs)
    return jobs.world


def worker_restarts_while_it_works(part: Any) -> World:
    """Its starts are counted, so that a task that takes its node down ends; ONCE it never starts again: unknown."""
    for effect in ("pure", "once"):
        jobs = _launched(part, effect=effect, run_s=lambda spec: 5.0)
        run = _first_run(jobs, "metrics.analyse")
        for _ in range(limits.TASK_STARTS_MAX + 1):
            jobs.world.run(1)
            jobs.crash(run.node)
            jobs.world.run(1)
            jobs.restart(run.node)
        _end(jobs, ended=("done", "failed"))
        _expect(_state(jobs, run) == {"pure": "dead-letter", "once": "unknown"}[effect], "counted", _state(jobs, run))
    return jobs.world


def once_is_not_repeated(part: Any) -> World:
    """The only run of a ONCE task is lost: its state is unknown, though another member could do it."""
    jobs = _launched(part, spare="analyst", effect="once")
    run = _first_run(jobs, "metrics.analyse")
    jobs.crash(run.node)
    _end(jobs, ended=("failed",))
    _expect(_state(jobs, run) == "unknown", "I7", _state(jobs, run))
    return jobs.world


def disk_lost_with_a_task(part: Any) -> World:
    """The disk of a worker is lost while it runs a ONCE task: it joins again, and does not run it again."""
    jobs = _launched(part, effect="once", run_s=lambda spec: 5.0)
    run = _first_run(jobs, "metrics.analyse")
    jobs.world.run(1)
    jobs.crash(run.node, lose_disk=True)
    jobs.world.run(0.5)
    jobs.restart(run.node)
    _end(jobs, ended=("failed",))
    _expect(_state(jobs, run) == "unknown", "I7", _state(jobs, run))
    return jobs.world


def end_missed_by_one_that_may_not_stand(part: Any) -> World:
    """A member whose disk was lost is away when the others end and fall asleep; it wakes them, to learn the end."""
    jobs = _launched(part)
    run = _first_run(jobs, "metrics.analyse")
    _until(jobs, lambda: run.over)
    jobs.crash(run.node, lose_disk=True)
    jobs.restart(run.node)
    _until(jobs, lambda: run.node in jobs.teams())
    _cut_off(jobs, run.node)
    others = [node for node in jobs.nodes if node != run.node]
    _until(jobs, lambda: all(team.asleep for node, team in jobs.teams().items() if node in others))
    jobs.world.mend()
    _end(jobs)
    return jobs.world


def part_lost_with_a_worker(part: Any) -> World:
    """All runs spend all they are given; one that vanishes has spent its part as well, and the team ends earlier."""
    jobs = _started(part, spare="analyst")
    jobs.policy = replace(jobs.policy, caps=Caps(budget=Allowance(1_024, agents=16)))
    jobs.spends = lambda spec: Spent(spec.budget.tokens or 0, calls=1)
    jobs.launch()
    run = _first_run(jobs, "metrics.analyse")
    jobs.world.crash(run.node)
    _end(jobs, ended=("done", "partial", "failed", "cap"))
    return jobs.world


def moved_as_it_ends(part: Any) -> World:
    """All lose their link to a worker just as it is done: its result and its move cross each other."""
    world = World(0)
    for step in range(12):
        jobs = _launched(part, spare="analyst")
        jobs.world.weather = Weather(delay_s=(0.03, 0.05))
        run = _first_run(jobs, "metrics.analyse")
        jobs.world.run(1.7 + 0.02 * step)
        jobs.notice(run.node, up=False)
        _end(jobs)
        world = jobs.world
    return world


def late_result_is_an_orphan(part: Any) -> World:
    """A worker cut off works on; its task was moved meanwhile. Its result is shown, never applied."""
    jobs = _launched(part, spare="analyst", run_s=lambda spec: 16.0 if spec.skill == "metrics.analyse" else 2.0)
    run = _first_run(jobs, "metrics.analyse")
    _cut_off(jobs, run.node)
    jobs.world.run(15.5)
    jobs.world.at(jobs.world.time_s + 1.0, jobs.world.mend)
    _until(jobs, lambda: run.over)
    _end(jobs)
    _expect(bool(jobs.told(Orphan, run.node)), "kept", "the late result is visible where it was made")
    return jobs.world


def assignment_not_committed(part: Any) -> World:
    """The coordinator reaches one member only: what it assigns is not decided, so nothing starts."""
    jobs = _launched(part)
    _until(jobs, lambda: jobs.coordinator() is not None)
    lead = jobs.coordinator()
    assert lead is not None
    near = next(
        node for name, node in ((name, jobs.node(name)) for name in CAST) if name[:6] == "device" and node != lead
    )
    for node in jobs.nodes:
        if node not in (lead, near):
            jobs.world.cut(lead, node)
    jobs.world.run(4)
    calm(jobs)
    _end(jobs)
    return jobs.world


def member_lags(part: Any) -> World:
    """A worker that was down while its task was moved comes back with an old log."""
    jobs = _launched(part, spare="analyst", run_s=lambda spec: 8.0)
    run = _first_run(jobs, "metrics.analyse")
    jobs.crash(run.node)
    _until(jobs, lambda: _newest(jobs, run).node != run.node)
    jobs.restart(run.node)
    _end(jobs)
    jobs.crash(run.node)
    jobs.restart(run.node)
    jobs.world.run(5)
    return jobs.world


def plans_come_twice(part: Any) -> World:
    """A planner's answer is delivered again after the log moved on: it is stale."""
    jobs = _started(part)
    jobs.repeats_plans = True
    jobs.launch()
    _end(jobs)
    _expect(len(jobs.runs) == 6, "once-each", f"{len(jobs.runs)} runs of six tasks")
    return jobs.world


def cancelled_while_tasks_run(part: Any) -> World:
    """Asked to stop, the team cancels what runs, then concludes."""
    jobs = _launched(part, run_s=lambda spec: 30.0)
    _until(jobs, lambda: len(jobs.runs) >= 3)
    jobs.tell(jobs.asker, CancelTeam(TEAM))
    _end(jobs, ended=("cancelled",))
    _expect(jobs.world.time_s < 20, "cancel", "it does not wait for what it cancels")
    return jobs.world


def split_and_healed(part: Any) -> World:
    """The coordinator's side is the smaller one: the larger goes on, and after the healing all agree."""
    jobs = _launched(part, run_s=lambda spec: 5.0)
    _until(jobs, lambda: len(jobs.runs) >= 3)
    lead = jobs.coordinator()
    assert lead is not None
    side = [lead, next(node for node in jobs.nodes if node != lead)]
    jobs.world.split(side, [node for node in jobs.nodes if node not in side])
    jobs.world.run(20)
    jobs.world.mend()
    _end(jobs, ended=("done", "partial", "failed"))
    return jobs.world


def clocks_differ(part: Any) -> World:
    """Wall clocks up to nine minutes apart, a goal of one minute: deadlines are by the launcher's clock."""
    jobs = _started(part)
    jobs.policy = replace(jobs.policy, goal_s=60)
    for number, node in enumerate(jobs.nodes):
        jobs.world.hosts[node].wall_offset_s = (number - 3) * 90.0
    jobs.launch()
    _end(jobs)
    return jobs.world


def rough_weather(part: Any) -> World:
    """A third of everything is lost, some comes twice, late and out of order."""
    jobs = _started(part)
    jobs.world.weather = Weather(0.33, 0.2, (0.001, 0.3))
    jobs.launch()
    _end(jobs)
    return jobs.world


SCHEDULES: dict[str, Callable[[Any], World]] = {
    play.__name__.replace("_", "-"): play
    for play in (
        all_well,
        coordinator_killed,
        worker_silent_after_accept,
        long_job,
        launcher_killed_at_any_time,
        result_lost,
        worker_restarts_after_its_result,
        worker_restarts_while_it_works,
        once_is_not_repeated,
        part_lost_with_a_worker,
        disk_lost_with_a_task,
        end_missed_by_one_that_may_not_stand,
        moved_as_it_ends,
        late_result_is_an_orphan,
        assignment_not_committed,
        member_lags,
        plans_come_twice,
        cancelled_while_tasks_run,
        split_and_healed,
        clocks_differ,
        rough_weather,
    )
}


# -- small parts


def _started(part: Any, spare: str = "", effect: str = "pure") -> Jobs:
    cast = {name: tuple(with_effect(skill, effect) for skill in skills) for name, skills in CAST.items()}
    if spare:
        cast[f"{spare}-b"] = cast[spare]
    jobs = Jobs(0, cast, machine=part, policy=Policy(goal_s=240))
    watch_team(jobs)
    jobs.start()
    return jobs


def _launched(
    part: Any, spare: str = "", effect: str = "pure", run_s: Callable[[TaskSpec], float] = lambda spec: 2.0
) -> Jobs:
    jobs = _started(part, spare, effect)
    jobs.run_s = run_s
    jobs.launch()
    return jobs


def _until(jobs: Jobs, holds: Callable[[], bool], then: Callable[[], None] | None = None, after_s: float = 0.0) -> None:
    """Run until it holds; `then`, if given, happens `after_s` from now."""
    if then is not None:
        jobs.world.after(after_s, then)
    _expect(jobs.world.run(60, until=holds), "L2", "it never came to that")


def _first_run(jobs: Jobs, skill: str) -> Run:
    _until(jobs, lambda: any(run.spec.skill == skill for run in jobs.runs))
    return next(run for run in jobs.runs if run.spec.skill == skill)


def _cut_off(jobs: Jobs, node: bytes) -> None:
    jobs.world.split([node], [other for other in jobs.nodes if other != node])


def _newest(jobs: Jobs, run: Run) -> TaskSpec:
    """The task as the member with the longest log knows it."""
    state = max((team.state for team in jobs.teams().values()), key=lambda state: state.index)
    return state.tasks[run.spec.id].spec


def _state(jobs: Jobs, run: Run) -> str:
    state = max((team.state for team in jobs.teams().values()), key=lambda state: state.index)
    return state.tasks[run.spec.id].state.value


def _end(jobs: Jobs, ended: tuple[str, ...] = ("done", "partial")) -> None:
    finish(jobs)
    outcomes = {event.conclusion.outcome for event in jobs.told(Concluded)}
    _expect(bool(outcomes) and outcomes <= set(ended), "outcome", f"ended {sorted(outcomes)}")


def _expect(holds: bool, rule: str, what: str) -> None:
    if not holds:
        raise Violation(rule, what)
