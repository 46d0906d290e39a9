"""A planner for goals that nobody who was found serves: somebody who forms teams for any goal is asked to. Else another
planner plans.

    wants: the other's roles ── none ──> search skill:team.form ──> that role
    next_step: the other gives up at once ──> FormTeam for the whole goal ── failed ──> another, once ──> Conclude

Only whole goals, and only where there is no other way: a part that a named skill's team does is planned as any part.
"""

from collections.abc import Sequence
from dataclasses import replace

from ioa_p2p.mind.planner import Planner
from ioa_p2p.steps import (
    Candidate,
    Conclude,
    FormTeam,
    FoundAgent,
    MemberView,
    Order,
    Planned,
    Role,
    Speak,
    Step,
    TaskView,
    Turn,
    View,
    Wants,
)
from ioa_p2p.wire.ids import node_short
from ioa_p2p.wire.roster import ANY_GOAL, SkillBrief

QUERY = f"skill:{ANY_GOAL}"
_TRIES_MAX = 2  # the first and another's


class Delegating:
    """A `Planner` before another one."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    async def wants(self, goal: str, found: Sequence[FoundAgent], searched: frozenset[str]) -> Wants:
        """As the other's, unless that has nobody and has searched everything."""
        others = tuple(each for each in found if all(skill.name != ANY_GOAL for skill in each.card.skills))
        wants = await self._planner.wants(goal, others, searched)
        if wants.roles or not searched.issuperset(wants.queries):
            return wants
        role = _role([each for each in found if each not in others])
        return replace(wants, queries=(*wants.queries, QUERY), roles=role, done=bool(role) and QUERY in searched)

    async def next_step(self, view: View) -> Planned:
        """As the other's, who sees no brokers, unless that gives up with nothing tried."""
        brokers = [member for member in view.members if any(map(_is_form, member.skills))]
        planned = await self._planner.next_step(_without_brokers(view) if brokers else view)
        gives_up = isinstance(planned.step, Conclude) and planned.step.outcome == "failed"
        if brokers and gives_up and all(task.skill == ANY_GOAL for task in view.tasks):
            return Planned(_delegate(view, brokers))
        return planned

    async def speak(self, turn: Turn) -> str:
        return await self._planner.speak(turn)


def _role(brokers: Sequence[FoundAgent]) -> tuple[Role, ...]:
    candidates = tuple(Candidate(each.node, each.card.name, each.addresses) for each in brokers)
    return (Role(ANY_GOAL, (ANY_GOAL,), candidates),) if candidates else ()


def _is_form(skill: SkillBrief) -> bool:
    return skill.name == ANY_GOAL


def _without_brokers(view: View) -> View:
    members = tuple(
        replace(member, skills=tuple(skill for skill in member.skills if not _is_form(skill)))
        for member in view.members
    )
    return replace(view, members=members, tasks=tuple(task for task in view.tasks if task.skill != ANY_GOAL))


def _delegate(view: View, brokers: Sequence[MemberView]) -> Step:
    done = [task for task in view.tasks if task.state == "succeeded"]
    if done:
        return Conclude("done", done[0].summary or "Done.", ((done[0].id, done[0].summary),), (done[0].id,))
    tried = {(task.node, task.agent) for task in view.tasks}
    left = [each for each in brokers if (each.node, each.agent) not in tried]
    left.sort(key=lambda member: (not member.here, member.cost))
    if not left or len(tried) >= _TRIES_MAX or not all(task.retry for task in view.tasks):
        return Conclude("failed", f"The goal could not be met. {'; '.join(map(_lack, view.tasks))}")
    if not view.lines:
        text = f"Nobody here can do it: {left[0].agent} forms a team for it. Goal: {view.goal}"
        return Speak(*view.me, text=text)
    return FormTeam(Order(left[0].node, left[0].agent, ANY_GOAL, view.goal), "sync")


def _lack(task: TaskView) -> str:
    return f"{task.skill} by {task.agent}@{node_short(task.node)}: {task.reason or task.state}"
