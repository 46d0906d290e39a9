"""Directed worlds of teams within teams: each raises Violation or returns its world."""

from collections.abc import Callable
from typing import Any

from ioa_p2p.team.commands import Policy
from ioa_p2p.team.events import NestWanted, TaskChanged
from ioa_p2p.team.tasks import LAN
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import nested_team
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance, Spent
from tests.sim.estate import ASYNC, BELOW, CAST, SURVEY, SYNC, Estate
from tests.sim.jobs import TEAM
from tests.sim.nested import back, cancel, end, kill
from tests.sim.nested_checks import watch_nested
from tests.sim.scenario import Violation
from tests.sim.team import with_effect
from tests.sim.world import World

GOAL_S = 200


def all_well(part: Any) -> World:
    """Three levels, given out sync and async: each task is done once, at its level."""
    world = World(0)
    for goal, leaves in ((SYNC, 1), (ASYNC, 2)):
        estate = _launched(part, goal=goal)
        _ends(estate, "done")
        measured = [run for run in estate.effects if run.spec.skill == "tree.measure"]
        _expect(len(measured) == leaves, "once-each", f"{len(measured)} runs at the lowest level")
        world = estate.world
    return world


def coordinator_of_the_child_killed(part: Any) -> World:
    """Another leads the child; the team above hears nothing of it."""
    estate = _at_work(part, launchers_lead=False)
    child = _child(estate, "front")
    lead = next(iter(child.values())).coordinator
    assert lead is not None
    kill(estate, lead)
    _ends(estate, "done")
    moved = [one for one in estate.told(TaskChanged, estate.asker) if one.team == TEAM and one.spec.attempt > 1]
    _expect(not moved, "unseen", "the task above is still its first attempt")
    return estate.world


def launcher_killed(part: Any) -> World:
    """For good: its child dissolves within the lease, another member does the task, with a child of its own."""
    estate = _at_work(part, run_s=30.0)
    first = _root_task(estate)
    kill(estate, first.node)
    orphan = nested_team(first.key, first.node, first.attempt)
    moved = estate.world.run(2 * LAN.lease_s, until=lambda: _root_task(estate).attempt > 1)
    _expect(moved, "lease", "the task is another's after its lease")
    _expect(_is_over(estate, orphan), "N4", "the orphan dissolved before")
    _ends(estate, "done")
    _expect(_root_task(estate).node != first.node, "lease", "another member did it")
    return estate.world


def launcher_restarts_soon(part: Any) -> World:
    """Whatever the effect class: it goes on with the same child, and nothing is done twice."""
    for effect in ("pure", "once"):
        estate = _at_work(part, run_s=8.0, effect=effect)
        first = _root_task(estate)
        before = set(estate.nested())
        kill(estate, first.node, 2.0)
        _ends(estate, "done")
        _expect(set(estate.nested()) == before, "N3", "no other team was formed")
        _expect(len(estate.effects) == 1, "once-each", f"{len(estate.effects)} runs at the lowest level")
    return estate.world


def launcher_dies_before_the_launch(part: Any) -> World:
    """It had saved that it wants a child: after the restart it looks for the same one again."""
    estate = _launched(part, search_s=1.0)
    _until(estate, lambda: bool(estate.told(NestWanted)))
    estate.world.run(0.5)
    wanted: NestWanted = estate.told(NestWanted)[0]
    kill(estate, _root_task(estate).node, 1.0)
    _ends(estate, "done")
    _expect(wanted.team in estate.nested(), "N3", "the child has the id that was saved")
    return estate.world


def cancelled_in_the_middle(part: Any) -> World:
    """Every team below ends at once, and the runs at the lowest level with them."""
    estate = _at_work(part, run_s=100.0)
    cancel(estate)
    _expect(estate.world.run(5, until=estate.all_over), "cascade", "all teams end within seconds")
    _expect(all(run.over for run in estate.runs), "cascade", "nothing runs any more")
    return estate.world


def cancelled_while_it_searches(part: Any) -> World:
    """Nobody wants the child any more when it is found: it is not launched."""
    estate = _launched(part, search_s=3.0)
    _until(estate, lambda: bool(estate.told(NestWanted)))
    cancel(estate)
    _expect(estate.world.run(20, until=estate.all_over), "cascade", "the goal ends")
    estate.world.run(5)
    _expect(not estate.nested(), "cascade", "no team is formed after the end")
    return estate.world


def cancelled_while_the_launcher_is_down(part: Any) -> World:
    """It learns of it when it is back, and cancels its child then, whether or not that dissolved meanwhile."""
    estate = _at_work(part, run_s=100.0)
    first = _root_task(estate)
    kill(estate, first.node)
    estate.world.run(0.5)
    cancel(estate)
    estate.world.run(2.5)
    back(estate, first.node)
    child = nested_team(first.key, first.node, first.attempt)
    _expect(estate.world.run(5, until=lambda: _is_over(estate, child)), "cascade", "the child ends when it is told")
    end(estate, 60)
    return estate.world


def launcher_restarts_after_it_cancelled(part: Any) -> World:
    """It dies before its child heard of it: the wish is made again."""
    estate = _at_work(part, run_s=100.0)
    first = _root_task(estate)
    others = [node for node in estate.nodes if node not in (first.node, estate.asker)]
    child = nested_team(first.key, first.node, first.attempt)
    _cut_from(estate, first.node, _voters(estate, child))
    cancel(estate)
    _until(estate, lambda: estate.everything[TEAM][first.node].state.conclusion is not None)
    kill(estate, first.node)
    estate.world.mend()
    back(estate, first.node)
    _expect(estate.world.run(5, until=lambda: _is_over(estate, child)), "cascade", f"{len(others)} others hear of it")
    return estate.world


def cycle(part: Any) -> World:
    """What a front's team looks for is a front: nobody waits for itself, and the goal ends with a reason."""
    below = {**BELOW, "front": ("Survey a site", SURVEY)}
    estate = _launched(part, below=below)
    _ends(estate, "failed")
    paths = [next(iter(there.values())).state.roster.ancestors for there in estate.nested().values()]
    _expect(max(map(len, paths), default=0) <= 1, "N2", "one front asks the other, which has nobody left to ask")
    return estate.world


def too_deep(part: Any) -> World:
    """Each level asks the next: the fourth below the root is refused, with a reason that reaches the top."""
    skills = [Skill(f"level.{n}", f"Dig level {n}", (), (f"earth.{n}",)) for n in range(6)]
    agents = {"asker": (), **{f"digger{n}-x": (skill,) for n, skill in enumerate(skills)}}
    below = {f"digger{n}": (f"Dig level {n + 1}", skills[n + 1]) for n in range(5)}
    estate = _estate(part, agents=agents, homes={}, below=below, goal="Dig level 0", top=skills[0])
    estate.start()
    estate.launch()
    _ends(estate, "failed")
    depth = max(len(next(iter(there.values())).state.roster.ancestors) for there in estate.nested().values())
    _expect(depth == limits.ANCESTORS_MAX, "N1", f"{depth} teams above the deepest")
    answers = [team.state.conclusion.answer for team in estate.everything[TEAM].values() if team.state.conclusion]
    _expect(all("too-deep" in answer for answer in answers), "N1", f"the reason is told: {answers}")
    return estate.world


def few_agents(part: Any) -> World:
    """The root has agents for its own team and four more: two teams below, none at the third level."""
    budget = Allowance(agents=7)
    estate = _launched(part, policy=Policy(goal_s=GOAL_S, caps=Caps(budget=budget)), goal=ASYNC)
    end(estate, GOAL_S)
    return estate.world


def tight_budget(part: Any) -> World:
    """All that is given is spent, at every level; launchers die, and what nobody told of stays lost."""
    budget = Allowance(1_000, 500, 20, 64)
    for victim in (None, "front-a", "yard-a"):
        estate = _launched(part, policy=Policy(goal_s=GOAL_S, caps=Caps(budget=budget)), goal=ASYNC)
        estate.spends = lambda spec: Spent(spec.budget.tokens or 0, spec.budget.money or 0, 1)
        if victim is not None:
            _until(estate, lambda estate=estate: bool(estate.runs))
            kill(estate, estate.node(victim))
        end(estate, GOAL_S)
    return estate.world


def time_runs_out(part: Any) -> World:
    """The lowest level takes longer than there is: each team ends before the one above it."""
    estate = _launched(part, policy=Policy(goal_s=30))
    estate.run_s = lambda spec: 1_000.0
    end(estate, 60)
    states = {team: next(iter(there.values())).state for team, there in estate.everything.items()}
    for state in states.values():
        late_s = state.at - state.roster.deadline
        _expect(late_s <= LAN.beat_s, "N1", f"it ends {late_s} s after its deadline")
        for above in (states[team] for team in state.roster.ancestors):
            _expect(state.roster.deadline < above.roster.deadline, "N1", "its time is over before that of all above")
    return estate.world


SCHEDULES: dict[str, Callable[[Any], World]] = {
    schedule.__name__: schedule
    for schedule in (
        all_well,
        coordinator_of_the_child_killed,
        launcher_killed,
        launcher_restarts_soon,
        launcher_dies_before_the_launch,
        cancelled_in_the_middle,
        cancelled_while_it_searches,
        cancelled_while_the_launcher_is_down,
        launcher_restarts_after_it_cancelled,
        cycle,
        too_deep,
        few_agents,
        tight_budget,
        time_runs_out,
    )
}


# -- setting the stage


def _estate(part: Any, *, effect: Any = "pure", run_s: float = 2.0, top: Skill = SURVEY, **more: Any) -> Estate:
    more.setdefault("policy", Policy(goal_s=GOAL_S))
    if effect != "pure":
        more["agents"] = {name: tuple(with_effect(skill, effect) for skill in skills) for name, skills in CAST.items()}
        more["below"] = {agent: (goal, with_effect(skill, effect)) for agent, (goal, skill) in BELOW.items()}
        top = with_effect(top, effect)
    estate = Estate(3, machine=part, top=top, **more)
    estate.run_s = lambda spec: run_s
    watch_nested(estate)
    return estate


def _launched(part: Any, **more: Any) -> Estate:
    estate = _estate(part, **more)
    estate.start()
    estate.launch()
    return estate


def _at_work(part: Any, **more: Any) -> Estate:
    """The lowest level runs."""
    estate = _launched(part, **{"run_s": 6.0, **more})
    _until(estate, lambda: bool(estate.runs))
    estate.world.run(0.5)
    return estate


def _until(estate: Estate, holds: Callable[[], bool]) -> None:
    assert estate.world.run(60, until=holds), "the schedule does not come to its point"


def _root_task(estate: Estate) -> Any:
    """The spec of the root's only task, as its asker knows it."""
    (row,) = estate.everything[TEAM][estate.asker].state.tasks.values()
    return row.spec


def _child(estate: Estate, agent: str) -> dict[bytes, Any]:
    """The team that an agent of this kind launched."""
    for there in estate.nested().values():
        if estate.names[next(iter(there.values())).state.roster.launcher].startswith(agent):
            return there
    raise AssertionError(f"no team of {agent}")


def _voters(estate: Estate, team: bytes) -> frozenset[bytes]:
    return next(iter(estate.everything[team].values())).state.roster.voters


def _cut_from(estate: Estate, node: bytes, others: frozenset[bytes]) -> None:
    for other in others - {node}:
        estate.world.cut(node, other)


def _is_over(estate: Estate, team: bytes) -> bool:
    return all(one.state.conclusion is not None for one in estate.everything[team].values())


def _ends(estate: Estate, outcome: str) -> None:
    end(estate, GOAL_S)
    outcomes = {team.state.conclusion.outcome for team in estate.everything[TEAM].values() if team.state.conclusion}
    _expect(outcomes == {outcome}, "outcome", f"the goal ended as {outcomes}, not {outcome}")


def _expect(holds: bool, rule: str, what: str) -> None:
    if not holds:
        raise Violation(rule, what)
