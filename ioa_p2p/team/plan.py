"""Between planner and log: what the planner is shown, and what its answer becomes.

TeamState ── view_of ──> View ── planner ──> Step ── log_step ──> entry of the decision log | UsageError
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from ioa_p2p import steps
from ioa_p2p.effects import Now
from ioa_p2p.errors import UsageError
from ioa_p2p.steps import LineView, MemberView, TaskView, View
from ioa_p2p.team.inputs import outputs_of
from ioa_p2p.team.state import TaskRow, TeamState
from ioa_p2p.team.tasks import TaskState
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.roster import SkillBrief
from ioa_p2p.wire.spending import NOTHING
from ioa_p2p.wire.step import Assign, Await, Conclude, Credit, Discuss, Evidence, Input, Step, TaskSpec

Agent = tuple[bytes, str]
Forced = Literal["cap", "cancelled", "deadline"]


def view_of(
    state: TeamState, me: Agent, now: Now, here: Callable[[bytes], bool], reported: dict[bytes, str], problem: str
) -> View:
    """here: is the node linked. reported: the state of open tasks as their workers told it."""
    members = tuple(
        MemberView(each.node, each.agent, each.description, each.skills, each.cost, here(each.node))
        for each in state.roster.members
        if not each.witness
    )
    return View(
        team=state.roster.team,
        version=state.index,
        goal=state.roster.goal,
        me=me,
        members=members,
        phase=state.phase.value,
        tasks=tuple(_task_view(row, reported.get(row.spec.id, "")) for row in state.tasks.values()),
        lines=tuple(LineView(line.node, line.agent, line.text) for line in state.lines),
        turns_left=state.roster.caps.turns - state.turn,
        seconds_left=max(0.0, state.roster.deadline - now.wall),
        problem=problem,
        left=state.budget.free,
        spent=state.budget.spent,
    )


def _task_view(row: TaskRow, reported: str) -> TaskView:
    outcome = row.outcome
    outputs = () if outcome is None else (*outputs_of(outcome), *(blob.type for blob in outcome.blobs if blob.type))
    return TaskView(
        id=row.spec.id,
        node=row.spec.node,
        agent=row.spec.agent,
        skill=row.spec.skill,
        state=row.state.value if row.state.final else reported or row.state.value,
        attempt=row.spec.attempt,
        inputs=tuple(task for each in row.spec.inputs for task in each.tasks),
        outputs=outputs,
        summary="" if outcome is None else outcome.summary,
        reason=row.reason,
        retry=outcome.retry if outcome is not None else row.state is not TaskState.CANCELLED,
        spent=(outcome and outcome.spent) or NOTHING,
    )


def log_step(step: steps.Step, state: TeamState, me: Agent, now: Now, rng: random.Random) -> Step:
    """The entry a planner's step becomes. Raises UsageError('bad-plan') for what no entry can say."""
    match step:
        case steps.Speak():
            return Discuss(step.node, step.agent, _cut(step.text), _cut(step.prompt))
        case steps.Assign():
            return _assign(step.mode, step.orders, state, now, rng)
        case steps.Await():
            return _bounded(Await(step.tasks, step.mode, _deadline(state, now, step.seconds)))
        case steps.Conclude():
            return _conclude(step, state)
        case steps.FormTeam():
            if not _skill(step.order, state).nests:
                raise UsageError("bad-plan", f"{step.order.agent} forms no team for {step.order.skill}", "assign it")
            return _assign(step.mode, (step.order,), state, now, rng)


def _assign(
    mode: Literal["sync", "async"], orders: Sequence[steps.Order], state: TeamState, now: Now, rng: random.Random
) -> Step:
    return _bounded(Assign(mode, tuple(_spec(order, len(orders), state, now, rng) for order in orders)))


def _skill(order: steps.Order, state: TeamState) -> SkillBrief:
    member = state.member(order.node, order.agent)
    skill = member.skill(order.skill) if member else None
    if skill is None:
        raise UsageError("bad-plan", f"{order.agent} has no skill {order.skill}", "choose from the members' skills")
    return skill


def _spec(order: steps.Order, orders: int, state: TeamState, now: Now, rng: random.Random) -> TaskSpec:
    """orders: how many are given out together."""
    skill = _skill(order, state)
    inputs = tuple(Input(each.type.rstrip("*"), each.tasks, each.value) for each in order.inputs)
    return TaskSpec(
        id=rng.randbytes(16),
        key=rng.randbytes(16),
        node=order.node,
        agent=order.agent,
        skill=order.skill,
        goal=order.goal[: limits.GOAL_CHARS_MAX],
        inputs=inputs,
        effect=skill.effect,
        deadline=_deadline(state, now, order.seconds),
        pinned=order.pinned,
        budget=state.budget.share(orders, agents=skill.nests) if order.budget is None else order.budget,
    )


def _conclude(step: steps.Conclude, state: TeamState) -> Conclude:
    evidence = tuple(Evidence(task, _cut(text, 200)) for task, text in step.evidence[: limits.EVIDENCE_MAX])
    return _fitting(
        Conclude(
            outcome=step.outcome,
            answer=step.answer[: limits.ANSWER_CHARS_MAX],
            result=step.results[: limits.RESULTS_MAX],
            evidence=evidence,
            credits=credits_of(state),
            spent=state.budget.spent,
        )
    )


def forced_conclusion(state: TeamState, outcome: Forced, reason: str, texts: Mapping[bytes, str]) -> Conclude:
    """The end that nobody planned: what there is, and why it stops here. texts: what unfinished tasks put out."""
    done = [row for row in state.tasks.values() if row.state is TaskState.SUCCEEDED and row.outcome is not None]
    parts = {row.spec.id: text for row in state.tasks.values() if row not in done and (text := _part(row, texts))}
    evidence = (
        *(Evidence(task, _cut(f"unfinished: {text}", 200)) for task, text in parts.items()),
        *(Evidence(row.spec.id, _cut(row.outcome.summary, 200)) for row in done if row.outcome),
    )
    left = f" {len(parts)} unfinished left a part." if parts else ""
    answer = f"Stopped before the end: {reason}. {len(done)} of {len(state.tasks)} tasks succeeded.{left}"
    return _fitting(Conclude(outcome, answer, (), evidence[-16:], credits_of(state), state.budget.spent))


def _part(row: TaskRow, texts: Mapping[bytes, str]) -> str:
    """The end of what a task that did not succeed put out."""
    return (row.outcome.summary if row.outcome is not None else "") or texts.get(row.spec.id, "")


def credits_of(state: TeamState) -> tuple[Credit, ...]:
    """Who did what, from the log."""
    counts: dict[tuple[bytes, str, str, str], int] = {}
    for row in state.tasks.values():
        key = (row.spec.node, row.spec.agent, row.spec.skill, row.state.value)
        counts[key] = counts.get(key, 0) + 1
    return tuple(Credit(*key, tasks=count) for key, count in counts.items())[: limits.TEAM_MEMBERS_MAX]


def _deadline(state: TeamState, now: Now, seconds: int) -> int:
    return min(state.roster.deadline, int(now.wall) + seconds) if seconds else state.roster.deadline


def _cut(text: str, size: int = limits.LINE_CHARS_MAX) -> str:
    return text[:size]


def _fitting(end: Conclude) -> Conclude:
    """An end must always be an entry: without the last of its evidence, then of its answer."""
    while _is_large(end) and end.evidence:
        end = codec.replace(end, evidence=end.evidence[:-1])
    while _is_large(end) and end.answer:
        end = codec.replace(end, answer=end.answer[: len(end.answer) * 3 // 4])
    return end


def _is_large(step: Step) -> bool:
    return len(codec.encode(step)) > limits.DECISION_STEP_BYTES_MAX


def _bounded(step: Step) -> Step:
    if _is_large(step):
        raise UsageError("bad-plan", "the step is too large", "fewer tasks at once, or large values as blobs")
    return step
