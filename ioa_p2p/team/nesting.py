"""Teams within teams: a task whose worker forms a team of its own, which to the team above is one worker.

    StartTask of a skill that nests ── may it? ──> Link saved ──> NestWanted ── the node searches ──> Launch ──> child
                                          └──> TaskFailed: cycle, too deep, no agents left
    child: TaskChanged ──> TaskProgress      its end ──> NestEnded ── files fetched ──> TaskDone | TaskFailed
    the task is cancelled, fenced or late ──> CancelTeam of the child, or NestDropped while it is looked for

All of this happens at the child's launcher, whose node runs the task. The link is durable before anything is
launched (space "nest", key: the child's id), and the id follows from the task, so a start that is repeated after a
crash finds the same child. Terms are the link's, whatever the node asks for: the task's budget with its agents, a
deadline a tenth earlier, the path of teams above.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ioa_p2p.effects import Effect, Emit, Now, Rows, Save
from ioa_p2p.errors import UsageError
from ioa_p2p.team.commands import CancelTeam, Launch, TaskDone, TaskFailed, TaskProgress
from ioa_p2p.team.events import (
    CancelTask,
    Concluded,
    LaunchFailed,
    NestDropped,
    NestEnded,
    NestWanted,
    StartTask,
    TaskChanged,
)
from ioa_p2p.team.inputs import outputs_of
from ioa_p2p.team.state import TeamState
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.ids import nested_team
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import Outcome, TaskSpec

SPACE = "nest"
NestCommand = CancelTeam | TaskDone | TaskFailed | TaskProgress

_CHILD_SHARE = 0.9  # of the time that the task has; the rest is for telling the end
_HELPLESS = frozenset({"cap", "deadline"})  # ends that a second try would only repeat


class Link(Message, frozen=True):
    """What ties a child to its task. agent: of this node, that waits for it. ancestors: the child's path, its parent
    last. deadline: wall second by our clock. cancelled: nobody waits for it any more."""

    parent: bytes
    task: bytes
    attempt: int
    agent: str
    ancestors: tuple[bytes, ...]
    budget: Allowance
    deadline: int
    cancelled: bool = False


class Nesting:
    """teams: those of the machine. command: hands a command to it; raises UsageError."""

    def __init__(
        self, rows: Rows, teams: Mapping[bytes, Team], command: Callable[[Now, NestCommand], list[Effect]]
    ) -> None:
        self._teams = teams
        self._command = command
        self._links = {child: codec.decode(row, Link) for child, row in rows(SPACE)}

    def start(self, now: Now) -> list[Effect]:
        """After a restart: nobody waits any more for a child whose task was ended meanwhile."""
        return [effect for child in list(self._links) if self._is_over(child) for effect in self._cancel(now, child)]

    def waiting(self, path: Collection[bytes]) -> frozenset[str]:
        """Agents of ours that wait for one of these teams: to work below it they would wait for themselves."""
        return frozenset(self._links[team].agent for team in path if team in self._links)

    def on_event(self, now: Now, event: object) -> tuple[bool, list[Effect]]:
        """Whether the event is dealt with here and for nobody else, and what follows from it."""
        match event:
            case StartTask() if self._teams[event.team].state.nests(event.spec):
                return True, self._begin(now, event)
            case CancelTask():
                children = self._children(event.team, event.task, event.attempt)
                return bool(children), [effect for child in children for effect in self._cancel(now, child)]
            case TaskChanged(decided=True):
                return False, [*self._progress(now, event.team), *self._reconcile(now, event)]
            case Concluded() if event.team in self._links:
                return False, self._ended(event.team)
            case LaunchFailed() if event.team in self._links:
                return False, self._fail(now, self._links[event.team], f"no team: {event.code}", retry=True)
            case _:
                return False, []

    def on_terms(self, now: Now, launch: Launch) -> Launch:
        """The launch of a child, held to what its task allows; any other as it is. Raises UsageError('not-wanted')."""
        link = self._links.get(launch.team)
        if link is None:
            return launch
        goal_s = link.deadline - int(now.wall)
        if link.cancelled or goal_s < 1:
            raise UsageError("not-wanted", "the task ended before its team was formed")
        caps = codec.replace(launch.policy.caps, budget=link.budget)
        mine = tuple(skill for skill in launch.me.skills if not skill.nests)
        return replace(
            launch, me=codec.replace(launch.me, skills=mine), ancestors=link.ancestors,
            policy=replace(launch.policy, goal_s=goal_s, caps=caps),
        )  # fmt: skip

    def forget(self) -> list[Effect]:
        """A link stays as long as the team above is remembered."""
        gone = [child for child, link in self._links.items() if link.parent not in self._teams]
        for child in gone:
            del self._links[child]
        return [Save(SPACE, child, None) for child in gone]

    # -- the task begins

    def _begin(self, now: Now, start: StartTask) -> list[Effect]:
        spec, roster = start.spec, self._teams[start.team].state.roster
        child, path = child_of(spec), (*roster.ancestors, start.team)
        if child in self._links:
            return self._resume(now, child)
        link = Link(
            start.team, spec.id, spec.attempt, spec.agent, path, spec.budget,
            int(now.wall + _CHILD_SHARE * start.seconds_left),
        )  # fmt: skip
        if refusal := self._refusal(link):
            return self._fail(now, link, refusal, retry=refusal.startswith("cycle"))
        return [self._save(child, link), *self._want(now, child, spec)]

    def _refusal(self, link: Link) -> str:
        """Why this child may not be, for people; or an empty text."""
        if len(link.ancestors) > limits.ANCESTORS_MAX:
            return f"too-deep: {limits.ANCESTORS_MAX} teams stand above already"
        if link.agent in self.waiting(link.ancestors):
            return f"cycle: {link.agent} waits already for a team that this one would work for"
        return "" if link.budget.agents else "no-agents: the goal has none left for another team"

    def _want(self, now: Now, child: bytes, spec: TaskSpec) -> list[Effect]:
        link = self._links[child]
        told = self._tell(now, link, None, f"forms team {child.hex()[:8]}", Spent())
        left_s = link.deadline - now.wall
        return [Emit(NestWanted(child, link.parent, spec.id, spec.attempt, spec.agent, spec.goal, left_s)), *told]

    def _resume(self, now: Now, child: bytes) -> list[Effect]:
        """This node was away: the same child goes on, or is looked for anew if it was not launched yet."""
        team, link = self._teams.get(child), self._links[child]
        if team is None:
            return self._want(now, child, self._teams[link.parent].state.tasks[link.task].spec)
        if team.state.conclusion is not None:
            return self._ended(child)
        return self._progress(now, child)

    # -- the child goes on

    def _progress(self, now: Now, child: bytes) -> list[Effect]:
        if (link := self._links.get(child)) is None:
            return []
        state = self._teams[child].state
        over = sum(row.state.final for row in state.tasks.values())
        note = f"team {child.hex()[:8]}: {over} of {len(state.tasks)} tasks over"
        return self._tell(now, link, over / (len(state.tasks) + 1), note, state.budget.gone)

    def _tell(self, now: Now, link: Link, fraction: float | None, note: str, spent: Spent) -> list[Effect]:
        return self._to_parent(now, TaskProgress(link.parent, link.task, link.attempt, fraction, note, spent))

    def _ended(self, child: bytes) -> list[Effect]:
        link = self._links[child]
        parent = self._teams.get(link.parent)
        if link.cancelled or parent is None or not parent.runs(link.task, link.attempt):
            return []
        return [Emit(NestEnded(child, ending(link, parent.state, self._teams[child].state)))]

    # -- nobody waits any more

    def _reconcile(self, now: Now, changed: TaskChanged) -> list[Effect]:
        children = self._children(changed.team, changed.spec.id, limits.TASK_ATTEMPTS_MAX)
        over = [child for child in children if self._is_over(child)]
        return [effect for child in over for effect in self._cancel(now, child)]

    def _is_over(self, child: bytes) -> bool:
        """Its task is final, or another attempt's."""
        link = self._links[child]
        parent = self._teams.get(link.parent)
        row = parent.state.tasks.get(link.task) if parent is not None else None
        return row is None or row.state.final or row.spec.attempt > link.attempt

    def _cancel(self, now: Now, child: bytes) -> list[Effect]:
        """Also repeated after a restart: the wish alone does not outlive us."""
        link, team = self._links[child], self._teams.get(child)
        if team is not None and team.state.conclusion is not None:
            return []
        saved = [] if link.cancelled else [self._save(child, codec.replace(link, cancelled=True))]
        try:
            told = self._command(now, CancelTeam(child, reason="the task above it ended"))
        except UsageError:  # it is not launched yet
            told = [Emit(NestDropped(child))]
        return [*saved, *told]

    def _children(self, parent: bytes, task: bytes, attempt: int) -> list[bytes]:
        """Of every attempt up to this one."""
        return [
            child for child, link in self._links.items()
            if (link.parent, link.task) == (parent, task) and link.attempt <= attempt
        ]  # fmt: skip

    # -- small parts

    def _fail(self, now: Now, link: Link, reason: str, *, retry: bool) -> list[Effect]:
        if link.cancelled:
            return []
        return self._to_parent(now, TaskFailed(link.parent, link.task, link.attempt, reason, retry))

    def _to_parent(self, now: Now, command: TaskProgress | TaskFailed) -> list[Effect]:
        """The team above may be forgotten meanwhile: then nobody wants to know."""
        with suppress(UsageError):
            return self._command(now, command)
        return []

    def _save(self, child: bytes, link: Link) -> Save:
        self._links[child] = link
        return Save(SPACE, child, codec.encode(link))


def child_of(spec: TaskSpec) -> bytes:
    """The team that an attempt at a task forms at its worker: whoever knows the task knows its id."""
    return nested_team(spec.key, spec.node, spec.attempt)


def ending(link: Link, parent: TeamState, child: TeamState) -> TaskDone | TaskFailed:
    """The child's end as the end of its task."""
    end, spec = child.conclusion, parent.tasks[link.task].spec
    assert end is not None, "it has ended"
    if end.outcome not in ("done", "partial"):
        reason = _short(f"its team ended as {end.outcome}: {_cause(end.answer)}")
        retry = end.outcome not in _HELPLESS
        return TaskFailed(link.parent, link.task, link.attempt, reason, retry, child.budget.gone)
    outcomes = [outcome for task in end.result if (outcome := child.tasks[task].outcome) is not None]
    blobs = tuple(blob for outcome in outcomes for blob in outcome.blobs)[: limits.TASK_BLOBS_MAX]
    outputs, summary = _outputs(parent, spec, outcomes, end.answer), end.answer[: limits.SUMMARY_CHARS_MAX]
    return TaskDone(link.parent, link.task, link.attempt, outputs, blobs, summary, child.budget.gone)


def _cause(answer: str) -> str:
    """The first line that tells of something; what a person could do about it comes after."""
    lines = answer.splitlines() or [""]
    return next((line for line in lines if ": " in line), lines[0])


def _short(reason: str) -> str:
    """Its beginning and its end, where the first cause stands: each level above puts words before it."""
    over = len(reason) - limits.REASON_CHARS_MAX
    return reason if over <= 0 else f"{reason[:60]} … {reason[over + 63 :]}"


def _outputs(parent: TeamState, spec: TaskSpec, outcomes: Sequence[Outcome], answer: str) -> bytes:
    """What the tasks of the child's result put out; the answer stands for what the skill promised and none made."""
    member = parent.member(spec.node, spec.agent)
    skill = member.skill(spec.skill) if member is not None else None
    made = {name: value for outcome in outcomes for name, value in outputs_of(outcome).items()}
    there = {*made, *(blob.type for outcome in outcomes for blob in outcome.blobs)}
    promised = [each for each in (skill.outputs if skill is not None else ()) if each not in there]
    return _fitting({**made, **dict.fromkeys(promised, answer[: limits.LINE_CHARS_MAX])})


def _fitting(outputs: dict[str, Any]) -> bytes:
    """As many, the first ones, as a report has room for."""
    while len(encoded := codec.encode(outputs)) > limits.TASK_VALUE_BYTES_MAX:
        outputs.popitem()
    return encoded
