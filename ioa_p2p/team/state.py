"""The replicated state of one team: a fold over committed entries, the same on every member.

    Found(roster) ──> TeamState ── apply(entry) ──> changes        refused entries change nothing, everywhere

The fold reads no clock: time is the entries' own (`at`, never going back), so all members agree even on
which task expired.
"""

from copy import copy
from dataclasses import dataclass, replace
from functools import singledispatchmethod

from ioa_p2p.errors import PeerError
from ioa_p2p.team.budget import Budget
from ioa_p2p.team.phases import Phase, Role, move_of, next_phase
from ioa_p2p.team.standing import Standing, changed, newcomer
from ioa_p2p.team.tasks import TaskEvent, TaskState, may_repeat, next_state
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import (
    Admit,
    Assign,
    Await,
    Cancel,
    Checkpoint,
    Conclude,
    Discuss,
    Elect,
    Hear,
    Outcome,
    Promote,
    Reassign,
    Remove,
    Resume,
    RosterStep,
    Spend,
    Step,
    TaskSpec,
    decode_step,
)


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed entry. at: wall seconds by its coordinator `node`."""

    index: int
    term: int
    node: bytes
    at: int
    step: Step


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task as decided. spec: as of the newest attempt, given in `term` at wall second `at`.
    state: OFFERED, or final with its outcome."""

    spec: TaskSpec
    state: TaskState
    at: int
    term: int
    outcome: Outcome | None = None
    reason: str = ""

    def given_in(self, term: int) -> "TaskRow":
        return replace(self, term=term)


@dataclass(frozen=True, slots=True)
class SaidLine:
    turn: int
    node: bytes
    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class PhaseMoved:
    before: Phase
    after: Phase


@dataclass(frozen=True, slots=True)
class TaskMoved:
    row: TaskRow


@dataclass(frozen=True, slots=True)
class TurnGiven:
    turn: int
    discuss: Discuss


@dataclass(frozen=True, slots=True)
class LineHeard:
    line: SaidLine


@dataclass(frozen=True, slots=True)
class Ended:
    conclusion: Conclude


@dataclass(frozen=True, slots=True)
class RosterMoved:
    """Who is in the team changed: `step` says how. members: the agents of the node that came, or left."""

    step: RosterStep
    node: bytes
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """The team's state at an index was decided to be this."""

    checkpoint: Checkpoint
    decided_at: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The entry broke a rule: the same on every member, so nobody needs to be told."""

    code: str


Change = PhaseMoved | TaskMoved | TurnGiven | LineHeard | Ended | RosterMoved | Checked | Refused


class TeamState:
    """Everything the team has decided. Read freely; changed by `apply` alone."""

    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self.standing = Standing(roster.voters, roster.candidates)
        self.phase = Phase.DISCUSSION
        self.index: int = 0
        self.term: int = 0
        self.at: int = roster.created
        self.tasks: dict[bytes, TaskRow] = {}
        self.budget = Budget.of(roster)
        self.turn = 0
        self.open_turn: Discuss | None = None
        self.lines: tuple[SaidLine, ...] = ()
        self.repeats = 0
        self.empty = 0
        self.waiting: Await | None = None
        self.conclusion: Conclude | None = None
        self.refused: dict[str, int] = {}
        self.said: set[str] = set()

    def apply(self, entry: Committed) -> list[Change]:
        """Fold one entry. An entry that breaks a rule is counted in `refused` and changes nothing."""
        assert entry.index == self.index + 1, "entries are applied in order"
        self.index, self.term, self.at = entry.index, entry.term, max(self.at, entry.at)
        expired = self._expire()
        try:
            phase = next_phase(Role.COORDINATOR, self.phase, move_of(entry.step))
            changes = self._take(entry.step, entry)
        except PeerError as fault:
            self.refused[fault.code] = self.refused.get(fault.code, 0) + 1
            return [*expired, Refused(fault.code)]
        moved: list[Change] = [] if phase is self.phase else [PhaseMoved(self.phase, phase)]
        self.phase = phase
        return [*expired, *moved, *changes]

    def refusal(self, entry: Committed) -> str:
        """Why `apply` would refuse this entry now, or an empty text."""
        probe = self.copy()
        return next((each.code for each in probe.apply(entry) if isinstance(each, Refused)), "")

    def copy(self) -> "TeamState":
        """One to try things on."""
        other = copy(self)
        other.tasks, other.refused, other.said = dict(self.tasks), dict(self.refused), set(self.said)
        return other

    @property
    def open_tasks(self) -> list[TaskRow]:
        return [row for row in self.tasks.values() if not row.state.final]

    @property
    def blobs(self) -> frozenset[bytes]:
        """Hashes of the files that its results name."""
        outcomes = (row.outcome for row in self.tasks.values())
        return frozenset(blob.hash for outcome in outcomes if outcome for blob in outcome.blobs)

    @property
    def waiting_over(self) -> bool:
        """What the phase waits for is there (its deadline apart)."""
        if self.waiting is None:
            return True
        final = [self.tasks[task].state.final for task in self.waiting.tasks]
        return all(final) if self.waiting.mode == "all" else any(final)

    def member(self, node: bytes, agent: str) -> Member | None:
        return next((one for one in self.roster.members if (one.node, one.agent) == (node, agent)), None)

    def nests(self, spec: TaskSpec) -> bool:
        """Its worker does it by a team of its own."""
        member = self.member(spec.node, spec.agent)
        skill = member.skill(spec.skill) if member is not None else None
        return skill is not None and skill.nests

    def cap(self, wall: float) -> str:
        """The cap that ends the talk now, or an empty text."""
        caps = self.roster.caps
        if wall >= self.roster.deadline:
            return "deadline"
        if self.turn >= caps.turns:
            return "turns"
        if self.repeats > caps.repeats:
            return "repeats"
        return "empty" if self.empty > caps.empty else ""

    # -- one rule set a step

    @singledispatchmethod
    def _take(self, step: Step, entry: Committed) -> list[Change]:
        raise AssertionError(f"no rule for {step!r}")

    @_take.register
    def _(self, step: Elect, entry: Committed) -> list[Change]:
        return []

    @_take.register
    def _(self, step: Discuss, entry: Committed) -> list[Change]:
        self._need(self.open_turn is None, "turn-open")
        self._need(self.member(step.node, step.agent) is not None, "not-a-member")
        self._need(not step.text or step.node == entry.node, "words-in-anothers-mouth")
        self.turn += 1
        self.open_turn = step
        return [self._hear(step.text)] if step.text else [TurnGiven(self.turn, step)]

    @_take.register
    def _(self, step: Hear, entry: Committed) -> list[Change]:
        self._need(self.open_turn is not None and step.turn == self.turn, "no-such-turn")
        return [self._hear(step.text)]

    @_take.register
    def _(self, step: Assign, entry: Committed) -> list[Change]:
        self._need(step.mode == "async" or len(step.tasks) == 1, "sync-is-one")
        self._need(len(self.tasks) + len(step.tasks) <= limits.TEAM_TASKS_MAX, "too-many-tasks")
        self._need(len({spec.id for spec in step.tasks}) == len(step.tasks), "task-exists")
        budget = self.budget
        for spec in step.tasks:
            self._check_spec(spec)
            budget = budget.reserve(spec.id, spec.budget)
        self.budget = budget
        if step.mode == "sync":
            self.waiting = Await((step.tasks[0].id,), "all", step.tasks[0].deadline)
        return [self._put(TaskRow(spec, TaskState.OFFERED, self.at, entry.term)) for spec in step.tasks]

    @_take.register
    def _(self, step: Await, entry: Committed) -> list[Change]:
        self._need(all(task in self.tasks for task in step.tasks), "no-such-task")
        self._need(any(not self.tasks[task].state.final for task in step.tasks), "nothing-runs")
        self.waiting = step
        return []

    @_take.register
    def _(self, step: Resume, entry: Committed) -> list[Change]:
        late = self.waiting is not None and self.at >= self.waiting.deadline
        self._need(self.waiting_over or late, "still-waiting")
        self.waiting = None
        return []

    @_take.register
    def _(self, step: Reassign, entry: Committed) -> list[Change]:
        row = self._row(step.task)
        spec = row.spec
        self._need(step.attempt == spec.attempt + 1, "wrong-attempt")
        self._need(may_repeat(spec.effect), "not-repeatable")
        self._need(not spec.pinned or (step.node, step.agent) == (spec.node, spec.agent), "pinned")
        state = next_state(row.state, TaskEvent.REASSIGN)  # first: what is final holds no budget
        budget = self.budget.write_off(spec.id) if step.begun else self.budget.release(spec.id)
        again = replace_spec(spec, step, budget.fitting(spec.budget))
        self._check_worker(again)
        self.budget = budget.reserve(spec.id, again.budget)
        return [self._put(TaskRow(again, state, self.at, entry.term, reason=step.reason))]

    @_take.register
    def _(self, step: Outcome, entry: Committed) -> list[Change]:
        row = self._row(step.task)
        self._need(step.attempt == row.spec.attempt, "wrong-attempt")
        state = next_state(row.state, TaskEvent(step.state))
        self._settle(step.task, step.spent)
        return [self._put(replace(row, state=state, outcome=step, reason=step.reason))]

    @_take.register
    def _(self, step: Cancel, entry: Committed) -> list[Change]:
        for task in step.tasks:
            self._row(task)
        rows = [row for row in self.open_tasks if not step.tasks or row.spec.id in step.tasks]
        return [self._finish(row, TaskEvent.CANCEL, step.reason) for row in rows]

    @_take.register
    def _(self, step: Conclude, entry: Committed) -> list[Change]:
        self._need(not self.open_tasks, "tasks-run")
        self._need(all(task in self.tasks for task in step.result), "no-such-task")
        self.conclusion = step
        return [Ended(step)]

    @_take.register(Admit | Promote | Remove)
    def _(self, step: RosterStep, entry: Committed) -> list[Change]:
        self.standing = changed(self.standing, step)
        if isinstance(step, Admit):
            new = newcomer(step)
            self._seat((*self.roster.members, *new.members)[: limits.TEAM_MEMBERS_MAX])
            return [RosterMoved(step, new.node, new.members)]
        members = tuple(member for member in self.roster.members if member.node == step.node)
        if isinstance(step, Remove):
            self._seat(tuple(member for member in self.roster.members if member.node != step.node))
        return [RosterMoved(step, step.node, members)]

    @_take.register
    def _(self, step: Checkpoint, entry: Committed) -> list[Change]:
        self._need(step.index < entry.index, "checkpoint-ahead")
        return [Checked(step, entry.index)]

    @_take.register
    def _(self, step: Spend, entry: Committed) -> list[Change]:
        self.budget = self.budget.spend(step.spent)
        return []

    # -- the rules they share

    def _seat(self, members: tuple[Member, ...]) -> None:
        self.roster = codec.replace(self.roster, members=members)
        self.budget = self.budget.seat(len(members))

    def _check_spec(self, spec: TaskSpec) -> None:
        self._need(spec.id not in self.tasks and spec.attempt == 1, "task-exists")
        self._need(spec.deadline <= self.roster.deadline, "deadline-too-late")
        self._check_worker(spec)
        for task in (task for each in spec.inputs for task in each.tasks):
            self._need(task in self.tasks and self.tasks[task].state is TaskState.SUCCEEDED, "input-missing")

    def _check_worker(self, spec: TaskSpec) -> None:
        member = self.member(spec.node, spec.agent)
        skill = member.skill(spec.skill) if member else None
        self._need(skill is not None and skill.effect == spec.effect, "no-such-skill")

    def _row(self, task: bytes) -> TaskRow:
        row = self.tasks.get(task)
        if row is None:
            raise PeerError("no-such-task")
        return row

    def _hear(self, text: str) -> LineHeard:
        assert self.open_turn is not None
        line = " ".join(text.lower().split())
        self.empty += not line
        self.repeats += bool(line) and line in self.said
        self.said.add(line)
        said = SaidLine(self.turn, self.open_turn.node, self.open_turn.agent, text)
        self.lines = (*self.lines, said)[-limits.LINES_KEPT_MAX :]
        self.open_turn = None
        return LineHeard(said)

    def _expire(self) -> list[Change]:
        """A committed deadline needs no further decision."""
        late = [row for row in self.open_tasks if row.spec.deadline < self.at]
        return [self._finish(row, TaskEvent.EXPIRE, "deadline passed") for row in late]

    def _finish(self, row: TaskRow, event: TaskEvent, reason: str) -> TaskMoved:
        state = next_state(row.state, event)
        self._settle(row.spec.id, None)
        return self._put(replace(row, state=state, reason=reason))

    def _settle(self, task: bytes, told: Spent | None) -> None:
        self.budget = self.budget.settle(task, told) if told is not None else self.budget.write_off(task)

    def _put(self, row: TaskRow) -> TaskMoved:
        self.tasks[row.spec.id] = row
        return TaskMoved(row)

    @staticmethod
    def _need(holds: bool, code: str) -> None:
        if not holds:
            raise PeerError(code)


def replace_spec(spec: TaskSpec, step: Reassign, budget: Allowance) -> TaskSpec:
    """The spec of the next attempt: same task, same key, another (or the same) worker."""
    return codec.replace(spec, node=step.node, agent=step.agent, attempt=step.attempt, budget=budget)


def step_of(data: bytes) -> Step:
    """An entry's step; a term's first entry is empty, and one that we cannot read changes nothing here."""
    try:
        return decode_step(data) if data else Elect()
    except PeerError:
        return Elect()
