"""Planted faults of the team machines: each is one plausible mistake, and must be caught by the rules beside it."""

from dataclasses import replace
from typing import Any

from ioa_p2p import steps
from ioa_p2p.effects import Effect, Now, Save
from ioa_p2p.team.commands import TaskDone
from ioa_p2p.team.coordinator import Coordinator
from ioa_p2p.team.election import Election
from ioa_p2p.team.leases import Leases
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.post import Post
from ioa_p2p.team.row import SPACE
from ioa_p2p.team.state import Committed, TaskMoved, TaskRow, TeamState
from ioa_p2p.team.team import Team
from ioa_p2p.team.worker import Deed, Job, Worker
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import Entry
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.spending import NOTHING, Spent
from ioa_p2p.wire.step import Cancel, Conclude, Reassign, Step, TaskSpec, decode_step
from ioa_p2p.wire.team import Report
from tests.sim.mutants import DecidesEarly, ForgetsVote, SkipsCheckQuorum
from tests.sim.scenario import Mutant


def _teams_of(team: type[Team]) -> type[Teams]:
    """A node all of whose teams are of this class."""

    class Planted(Teams):
        def _make(self, team_id: bytes, row: Any, **options: Any) -> Team:
            return team(self._ground, team_id, row, **options)

    return Planted


def with_worker(worker: type[Worker]) -> type[Teams]:
    class Planted(Team):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._worker.__class__ = worker

    return _teams_of(Planted)


def with_election(election: type[Election]) -> type[Teams]:
    """Whole nodes whose elections are of this class."""

    class Planted(Team):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._election.__class__ = election

    return _teams_of(Planted)


def _with_state(state: type[TeamState]) -> type[Teams]:
    class Planted(Team):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.state.__class__ = state

    return _teams_of(Planted)


def with_coordinator(coordinator: type[Coordinator], leases: type[Leases] = Leases) -> type[Teams]:
    class Planted(Team):
        def _on_committed(self, now: Now, entry: Entry, frame: bytes) -> list[Effect]:
            effects = super()._on_committed(now, entry, frame)
            if self._coordinator is not None:
                self._coordinator.__class__ = coordinator
                self._coordinator._leases.__class__ = leases
            return effects

    return _teams_of(Planted)


# -- the worker


class ForgetsAccept(Worker):
    """An accept is not saved, nor is the start counted."""

    def reconcile(self, now: Now, state: TeamState, *, new: bool) -> list[Deed]:
        return [deed for deed in super().reconcile(now, state, new=new) if not self._is_open(deed)]

    def _is_open(self, deed: Deed) -> bool:
        if not isinstance(deed, Save) or len(deed.key) != 16 or deed.value is None:
            return False
        job = codec.decode(deed.value, Job)
        return job.spec is not None and job.report is None


class ForgetsResult(Worker):
    """A result is told, not saved."""

    def done(self, told: TaskDone) -> list[Deed]:
        return [deed for deed in super().done(told) if not isinstance(deed, Save)]


class TellsResultOnce(Worker):
    """A result is not told again until it is committed."""

    def beat(self, now: Now) -> list[Deed]:
        return [deed for deed in super().beat(now) if not (isinstance(deed, Report) and deed.state == "succeeded")]

    def open_reports(self) -> list[Report]:
        return []


class RepeatsOnce(Worker):
    """Starts a ONCE task again after a crash."""

    def _resume(self, now: Now, state: TeamState, spec: TaskSpec, job: Job) -> list[Deed]:
        return self._start(now, state, spec, job)


class ForgetsFence(Worker):
    """Keeps no trace of a task that was moved or ended."""

    def _close(self, spec: TaskSpec, row: TaskRow) -> list[Deed]:
        deeds = super()._close(spec, row)
        del self._jobs[spec.id]
        return [Save(each.space, each.key, None) if _is_job(each, spec) else each for each in deeds]


class ForgetsThatItForgot(Worker):
    """Starts a ONCE task though its disk, and the journal with it, was lost."""

    def reconcile(self, now: Now, state: TeamState, *, new: bool) -> list[Deed]:
        self._lost_disk = False
        return super().reconcile(now, state, new=new)


class _WaitsForNews(Team):
    """Who may not stand for election does not ask what became of the team."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._post.__class__ = _AsksNothing


class _AsksNothing(Post):
    def ask_for_news(self, state: TeamState, me: bytes) -> list[Effect]:
        return []


class _EntryByEntry(Team):
    """Acts on each decided entry at once, also while the log is told again after a restart."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._worker.__class__ = ForgetsFence

    def _on_committed(self, now: Now, entry: Entry, frame: bytes) -> list[Effect]:
        effects = super()._on_committed(now, entry, frame)
        return [*effects, *self._carry(self._worker.reconcile(now, self.state, new=True))]


class _BeforeCommit(Team):
    """Acts on entries as soon as it holds them."""

    def handle_message(self, now: Now, peer: bytes, message: Any) -> list[Effect]:
        effects = super().handle_message(now, peer, message)
        ahead = self.state.copy()
        for index in range(self.state.index + 1, self._election.last_index + 1):
            held = self._election.entry_at(index)
            assert held is not None
            entry = held.entry
            if entry.step:
                ahead.apply(Committed(index, entry.term, entry.node, entry.at, decode_step(entry.step)))
        if ahead.index == self.state.index:
            return effects
        return [*effects, *self._carry(self._worker.reconcile(now, ahead, new=True))]


class _OwnClock(Team):
    """Counts deadlines by its own clock."""

    def _ours(self, now: Now) -> Now:
        return now


# -- the decided state


class NewKeys(TeamState):
    """A new idempotency key for every attempt."""

    def _put(self, row: TaskRow) -> TaskMoved:
        if row.spec.attempt > 1 and not row.state.final:
            key = blake(row.spec.key + bytes([row.spec.attempt]), 16)
            row = replace(row, spec=codec.replace(row.spec, key=key))
        return super()._put(row)


class ForgetsWhatWasLost(TeamState):
    """The part of a worker that vanished is given out again, though it may be spent."""

    def apply(self, entry: Committed) -> list[Any]:
        if isinstance(entry.step, Reassign):
            entry = replace(entry, step=codec.replace(entry.step, begun=False))
        return super().apply(entry)


class _AppliesFenced(Team):
    """Takes the result of any attempt."""

    def _on_report(self, now: Now, peer: bytes, report: Report) -> list[Effect]:
        row = self.state.tasks.get(report.task)
        if row is not None and report.attempt < row.spec.attempt:
            report = codec.replace(report, attempt=row.spec.attempt)
            peer = row.spec.node
        return super()._on_report(now, peer, report)


class ConcludesEarly(TeamState):
    """Takes a conclusion while tasks run."""

    @property
    def open_tasks(self) -> list[TaskRow]:
        return [] if self._closing else super().open_tasks

    def apply(self, entry: Committed) -> list[Any]:
        self._closing = isinstance(entry.step, Conclude)
        try:
            return super().apply(entry)
        finally:
            self._closing = False

    _closing = False


class _ConcludesEarly(Coordinator):
    """Does not cancel first."""

    def _end(self, now: Now) -> Step:
        step = super()._end(now)
        return Conclude("cancelled", "stop") if isinstance(step, Cancel) else step


class _EndsEarly(with_coordinator(_ConcludesEarly)):
    def _make(self, team_id: bytes, row: Any) -> Team:
        team = super()._make(team_id, row)
        team.state.__class__ = ConcludesEarly
        return team


# -- the coordinator


class TakesStalePlans(Coordinator):
    """A planner's answer counts whenever it comes."""

    def on_plan(self, now: Now, version: int, step: steps.Step, spent: Spent = NOTHING) -> str:
        if self._asked is None and self._planned is None:
            self._asked = version
        return super().on_plan(now, self._asked or version, step, spent)


class IgnoresBeats(Leases):
    """A beat does not renew the lease."""

    def on_report(self, now: Now, peer: bytes, report: Report) -> None:
        lease = self._of(now, self._state.tasks[report.task])
        until_s = lease.until_s
        super().on_report(now, peer, report)
        lease.until_s = until_s


class IgnoresSilence(Leases):
    """A lease never ends."""

    def due(self, now: Now, row: TaskRow) -> Step | None:
        self._of(now, row).until_s = now.boot + 1
        return super().due(now, row)


# -- the node


class ForgetsFounding(Teams):
    """The founding entry is not saved."""

    def _join(self, now: Now, team: Team, row: Any) -> list[Effect]:
        return [each for each in super()._join(now, team, row) if not (isinstance(each, Save) and each.space == SPACE)]


def _is_job(deed: Deed, spec: TaskSpec) -> bool:
    return isinstance(deed, Save) and deed.key == spec.id


MUTANTS = (
    Mutant("accept-not-saved", with_worker(ForgetsAccept), frozenset({"I7", "counted"})),
    Mutant("result-not-saved", with_worker(ForgetsResult), frozenset({"kept"})),
    Mutant("result-told-once", with_worker(TellsResultOnce), frozenset({"kept", "lease"})),
    Mutant("once-repeated", with_worker(RepeatsOnce), frozenset({"I7", "counted"})),
    Mutant("once-after-lost-disk", with_worker(ForgetsThatItForgot), frozenset({"I7"})),
    Mutant("waits-for-news", _teams_of(_WaitsForNews), frozenset({"L2"})),
    Mutant("fence-forgotten", _teams_of(_EntryByEntry), frozenset({"I6"})),
    Mutant("assigned-before-commit", _teams_of(_BeforeCommit), frozenset({"I10"})),
    Mutant("new-key-each-attempt", _with_state(NewKeys), frozenset({"I7"})),
    Mutant("lost-part-given-again", _with_state(ForgetsWhatWasLost), frozenset({"I12"})),
    Mutant("fenced-result-applied", _teams_of(_AppliesFenced), frozenset({"I6"})),
    Mutant("concluded-while-tasks-run", _EndsEarly, frozenset({"final"})),
    Mutant("stale-plan-taken", with_coordinator(TakesStalePlans), frozenset({"I7", "once-each", "outcome"})),
    Mutant("beats-ignored", with_coordinator(Coordinator, IgnoresBeats), frozenset({"lease"})),
    Mutant("silence-ignored", with_coordinator(Coordinator, IgnoresSilence), frozenset({"lease"})),
    Mutant("own-clock", _teams_of(_OwnClock), frozenset({"outcome"})),
    Mutant("team-vote-not-saved", with_election(ForgetsVote), frozenset({"I5"})),
    Mutant("team-decides-early", with_election(DecidesEarly), frozenset({"I2", "I8", "I10"})),
    Mutant("team-no-check-quorum", with_election(SkipsCheckQuorum), frozenset({"I8"})),
    Mutant("founding-not-saved", ForgetsFounding, frozenset({"one-team"})),
)
