"""The worker's side of a team: what this node took on, durably.

    decided state ── reconcile ──> accept (Save, then Report, then StartTask) | fence (CancelTask)
    run's outcome ── TaskDone ... ──> Save the result, Report it every beat until its Outcome is committed

A worker acts on the committed log alone. Its journal (space "task/<team hex>", one row a task) survives
everything: an accepted attempt, how often it was started and how often it killed its process, its result, and after
the end the highest attempt seen, which fences every lower one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.effects import Emit, Now, Rows, Save
from ioa_p2p.team.budget import exceeds, plus, rest
from ioa_p2p.team.commands import TaskDone, TaskFailed, TaskProgress, WorkerDied
from ioa_p2p.team.events import CancelTask, Orphan, StartTask
from ioa_p2p.team.inputs import resolve
from ioa_p2p.team.life import Life
from ioa_p2p.team.queue import Queue
from ioa_p2p.team.state import TaskRow, TeamState
from ioa_p2p.team.tasks import Profile, may_repeat
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.spending import NOTHING, Spent
from ioa_p2p.wire.step import ReportState, TaskSpec
from ioa_p2p.wire.team import Report

Deed = Save | Emit | Report
"""What the worker wants done; the team sends a Report to the coordinator and the launcher."""

_FENCE = b"fence"


class Job(Message, frozen=True):
    """A journal row. spec is dropped when the job is closed. starts: times the run was begun, those not counted that
    ended with this node on purpose or with its machine. report: the result, kept until its Outcome is committed.
    deaths: of the worker process while this node lived. boot: the OS boot in which the run was begun; until_s: its
    deadline in that boot's seconds. spent: by all runs of this attempt, as far as they told."""

    attempt: int
    starts: int = 0
    spec: TaskSpec | None = None
    report: Report | None = None
    deaths: int = 0
    boot: bytes = b""
    until_s: float = 0.0
    spent: Spent = NOTHING


@dataclass(slots=True)
class Run:
    """What is known of a run only while this node lives. before: spent by earlier runs of the attempt.
    text: the end of what it put out; that of the run before until there is some."""

    percent: int = -1
    note: str = ""
    running: bool = False
    reported_at: float = 0.0
    before: Spent = NOTHING
    text: str = ""
    silent: bool = True

    def hear(self, text: str) -> None:
        if text:
            self.text = ("" if self.silent else self.text) + text
            self.text, self.silent = self.text[-limits.SUMMARY_CHARS_MAX :], False


class Worker:
    def __init__(
        self,
        node: bytes,
        team: bytes,
        requester: bytes,
        rows: Rows,
        profile: Profile,
        queue: Queue,
        life: Life | None = None,
        *,
        lost_disk: bool = False,
    ) -> None:
        """lost_disk: what it ran in this team before is not known any more."""
        self._life = life or Life()
        self._node = node
        self._team = team
        self._requester = requester
        self._profile = profile
        self._queue = queue
        self._lost_disk = lost_disk
        self.space = f"task/{team.hex()}"
        self._jobs: dict[bytes, Job] = {}
        self._incarnation = 0
        self._fence = (0, 0)
        self._runs: dict[bytes, Run] = {}
        self._busy_until_s: dict[bytes, float] = {}
        for key, value in rows(self.space):
            if key == _FENCE:
                self._fence = codec.decode(value, tuple[int, int])
            elif len(key) == 16:
                self._jobs[key] = codec.decode(value, Job)
        for job in self._jobs.values():
            if job.spec is not None:
                self._queue.hold(requester)

    # -- the log decides

    def serve(self, incarnation: int) -> None:
        """What it takes on from now on is given in this one."""
        self._incarnation = incarnation

    def move(self, incarnation: int, state: TeamState) -> list[Deed]:
        """The team was formed anew, from `state`: attempts that this does not know never were, and may come again;
        those that it knows go on."""
        self.serve(incarnation)
        deeds: list[Deed] = []
        for task, job in list(self._jobs.items()):
            row = state.tasks.get(task)
            attempt = row.spec.attempt if row is not None else 0
            if job.attempt <= attempt:
                continue
            if job.spec is not None:
                deeds += self._drop(job.spec, job, "decided by a majority that was lost")
            deeds.append(self._save(task, Job(max(0, attempt - 1))))
        return deeds

    def reconcile(self, now: Now, state: TeamState, *, new: bool) -> list[Deed]:
        """Make our jobs agree with the decided state: let go of what is not ours, take on what is.

        new: take on. False while no coordinator is heard, for then the log may be behind (after a restart)
        and what it gives us may long be fenced.
        """
        deeds: list[Deed] = []
        for row in state.tasks.values():
            job = self._jobs.get(row.spec.id)
            if job is not None and job.spec is not None and self._is_over(row, job):
                deeds += self._close(job.spec, row)
            job = self._jobs.get(row.spec.id)
            mine = row.spec.node == self._node and not row.state.final
            if new and mine and (self._incarnation, row.term) >= self._fence:
                deeds += self._take_on(now, state, row, job)
        return deeds

    def _is_over(self, row: TaskRow, job: Job) -> bool:
        return row.state.final or row.spec.attempt > job.attempt or row.spec.node != self._node

    def _take_on(self, now: Now, state: TeamState, row: TaskRow, job: Job | None) -> list[Deed]:
        if job is None or job.attempt < row.spec.attempt:
            return self._accept(now, state, row)
        if job.spec is not None and job.report is None and row.spec.id not in self._runs:
            return self._resume(now, state, job.spec, job)
        return []

    def _accept(self, now: Now, state: TeamState, row: TaskRow) -> list[Deed]:
        spec = row.spec
        if now.wall > spec.deadline or now.boot < self._busy_until_s.get(spec.id, 0.0):
            return []
        if not self._queue.take(self._requester):
            return [self._busy(now, spec)]
        self._busy_until_s.pop(spec.id, None)
        saves: list[Deed] = []
        if (self._incarnation, row.term) > self._fence:
            self._fence = (self._incarnation, row.term)
            saves.append(Save(self.space, _FENCE, codec.encode(self._fence)))
        job = self._jobs[spec.id] = Job(spec.attempt, 0, spec)
        if self._lost_disk and not may_repeat(spec.effect):  # it may have run before the disk was lost
            return [*saves, *self._finish(spec, self._report(spec, "unknown", note="the worker lost its memory"))]
        return [*saves, self._report(spec, "accepted"), *self._start(now, state, spec, job)]

    def _start(self, now: Now, state: TeamState, spec: TaskSpec, job: Job) -> list[Deed]:
        """The start is counted, durably, before it happens. Within one OS boot the deadline is by boot time, so that
        no jump of the wall clock moves it."""
        last = self._runs.get(spec.id)
        nests = state.nests(spec)  # then all starts of an attempt are one run, that tells its whole sum
        before = NOTHING if nests else job.spent
        self._runs[spec.id] = Run(reported_at=now.boot, before=before, text=last.text if last else "")
        until_s = job.until_s if job.until_s and job.boot == self._life.boot else now.boot + spec.deadline - now.wall
        counted = Job(job.attempt, job.starts + 1, spec, None, job.deaths, self._life.boot, until_s, job.spent)
        left = codec.replace(spec, budget=rest(spec.budget, before))
        start = StartTask(self._team, left, resolve(spec, state), max(0.0, until_s - now.boot), self._is_own(state))
        return [self._save(spec.id, counted), Emit(start)]

    def _resume(self, now: Now, state: TeamState, spec: TaskSpec, job: Job) -> list[Deed]:
        """This node ended while it ran. If that was on purpose, or with the whole machine, the task is not to blame;
        if the node alone crashed it may be, and some time it is enough. After a reboot the old lease is lost: the
        coordinator must hear that we have the task. A team that it formed went on without us."""
        if not may_repeat(spec.effect) and not state.nests(spec):
            return self._finish(spec, self._report(spec, "unknown", "the worker's node ended while it ran"))
        if self._life.clean or job.boot != self._life.boot:
            job = codec.replace(job, starts=max(0, job.starts - 1))
        if job.starts >= limits.TASK_STARTS_MAX:
            note = f"the worker's node crashed {job.starts} times while it ran"
            return self._finish(spec, self._report(spec, "dead-letter", note))
        return [self._report(spec, "accepted"), *self._start(now, state, spec, job)]

    def _close(self, spec: TaskSpec, row: TaskRow) -> list[Deed]:
        """Not ours any more, or final. What stays is the highest attempt seen."""
        job = self._jobs[spec.id]
        accepted = row.outcome is not None and row.outcome.attempt == job.attempt
        deeds = self._drop(spec, job, row.reason, accepted=accepted)
        return [self._save(spec.id, Job(max(job.attempt, row.spec.attempt - 1))), *deeds]

    def _drop(self, spec: TaskSpec, job: Job, reason: str, *, accepted: bool = False) -> list[Deed]:
        """Its place is free again. A result that was not accepted is kept, to be seen."""
        deeds: list[Deed] = []
        if spec.id in self._runs:
            deeds.append(Emit(CancelTask(self._team, spec.id, job.attempt, reason)))
        if job.report is not None and not accepted:
            deeds += self._orphan(job.report)
        self._runs.pop(spec.id, None)
        self._queue.give(self._requester)
        return deeds

    # -- the run tells

    def hear(self, now: Now, state: TeamState, told: TaskProgress | TaskDone | TaskFailed | WorkerDied) -> list[Deed]:
        match told:
            case TaskProgress():
                return self.progress(now, told)
            case TaskDone():
                return self.done(told)
            case TaskFailed():
                return self.failed(told)
            case WorkerDied():
                return self.died(now, state, told)

    def progress(self, now: Now, told: TaskProgress) -> list[Deed]:
        run, spec = self._runs.get(told.task), self._running(told.task, told.attempt)
        if run is None or spec is None:
            return []
        first, run.running = not run.running, True
        run.percent = -1 if told.fraction is None else round(100 * min(max(told.fraction, 0.0), 1.0))
        run.note = told.note[: limits.REASON_CHARS_MAX]
        run.hear(told.text)
        saves = self._count(spec, run, told.spent)
        if over := exceeds(self._jobs[spec.id].spent, spec.budget):
            return [*saves, *self._stop(spec, "failed", f"over budget: its {over} are spent", retry=False)]
        if not first and now.boot < run.reported_at + self._profile.beat_s / 4:
            return saves
        return [*saves, self._beat_of(now, spec, run)]

    def done(self, told: TaskDone) -> list[Deed]:
        """The result is durable before anybody hears of it."""
        report = Report(
            self._team, told.task, told.attempt, "succeeded", 100, "", 0, told.outputs, told.blobs,
            told.summary[: limits.SUMMARY_CHARS_MAX], spent=self._total(told.task, told.spent),
        )  # fmt: skip
        return self._finish_or_orphan(report)

    def failed(self, told: TaskFailed) -> list[Deed]:
        reason = told.reason[: limits.REASON_CHARS_MAX]
        part, spent = self._text(told.task), self._total(told.task, told.spent)
        return self._finish_or_orphan(
            Report(
                self._team, told.task, told.attempt, "failed", note=reason, summary=part, retry=told.retry, spent=spent
            )
        )

    def died(self, now: Now, state: TeamState, told: WorkerDied) -> list[Deed]:
        """The worker process, while this node lives: the second time it is the task's fault."""
        spec = self._running(told.task, told.attempt)
        if spec is None:
            return []
        job = self._jobs[told.task]
        job = self._jobs[told.task] = codec.replace(job, deaths=job.deaths + 1)
        if not may_repeat(spec.effect):
            return self._finish(spec, self._report(spec, "unknown", "the worker died while it ran"))
        if job.deaths >= limits.TASK_DEATHS_MAX:
            return self._finish(spec, self._report(spec, "dead-letter", f"the worker died twice. {told.reason}"))
        return self._start(now, state, spec, job)

    def beat(self, now: Now) -> list[Deed]:
        """Every beat: what runs is alive, what is done is told again, what is late is stopped."""
        deeds: list[Deed] = []
        for task, job in list(self._jobs.items()):
            if job.spec is None:
                continue
            if job.report is not None:
                deeds.append(job.report)
            elif self._is_late(now, job.spec, job):
                deeds += self._stop(job.spec, "expired", "deadline passed")
            elif task in self._runs:
                deeds.append(self._beat_of(now, job.spec, self._runs[task]))
        return deeds

    def abandon(self) -> list[Deed]:
        """Nobody is left to take the results: they stay here to be seen, and the places are free."""
        deeds: list[Deed] = []
        for task, job in list(self._jobs.items()):
            if job.spec is None:
                continue
            if job.report is None:
                deeds += self._stop(job.spec, "expired", "its team is gone")
            kept = self._jobs[task].report
            assert kept is not None, "what is stopped has a report"
            self._queue.give(self._requester)
            deeds = [deed for deed in deeds if not isinstance(deed, Report)]
            deeds += [self._save(task, Job(job.attempt)), *self._orphan(kept)]
        return deeds

    @property
    def busy(self) -> bool:
        """Something runs here, or a result is not yet committed."""
        return any(job.spec is not None for job in self._jobs.values())

    def open_reports(self) -> Sequence[Report]:
        """Results that no Outcome has answered yet."""
        return [job.report for job in self._jobs.values() if job.spec is not None and job.report is not None]

    def runs(self, task: bytes, attempt: int) -> bool:
        """This attempt is ours and has no result yet."""
        return self._running(task, attempt) is not None

    # -- small parts

    def _running(self, task: bytes, attempt: int) -> TaskSpec | None:
        job = self._jobs.get(task)
        return job.spec if job is not None and job.attempt == attempt and job.report is None else None

    def _finish_or_orphan(self, report: Report) -> list[Deed]:
        spec = self._running(report.task, report.attempt)
        if spec is not None:
            return self._finish(spec, report)
        job = self._jobs.get(report.task)
        repeated = job is not None and job.report is not None and job.attempt == report.attempt
        return [] if repeated else self._orphan(report)

    def _stop(self, spec: TaskSpec, state: ReportState, note: str, *, retry: bool = True) -> list[Deed]:
        """End it from here: its processes are told to go."""
        report = codec.replace(self._report(spec, state, note), retry=retry)
        return [Emit(CancelTask(self._team, spec.id, spec.attempt, note)), *self._finish(spec, report)]

    def _finish(self, spec: TaskSpec, report: Report) -> list[Deed]:
        self._runs.pop(spec.id, None)
        job = codec.replace(self._jobs[spec.id], report=report, spent=report.spent)
        return [self._save(spec.id, job), report]

    def _is_late(self, now: Now, spec: TaskSpec, job: Job) -> bool:
        if job.boot == self._life.boot and job.until_s:
            return now.boot > job.until_s
        return now.wall > spec.deadline

    def _is_own(self, state: TeamState) -> bool:
        """For our owner; a team that we formed for another's task is not."""
        return self._requester == self._node and not state.roster.ancestors

    # -- what a run used and put out

    def _count(self, spec: TaskSpec, run: Run, told: Spent) -> list[Deed]:
        """Durable as soon as it grew: a crash must not make spent things free again."""
        job, spent = self._jobs[spec.id], plus(run.before, told)
        return [self._save(spec.id, codec.replace(job, spent=spent))] if told != NOTHING and spent != job.spent else []

    def _total(self, task: bytes, told: Spent) -> Spent:
        """Of all runs of this attempt; a run that ends without a word of it spent what it told last."""
        job, run = self._jobs.get(task), self._runs.get(task)
        if job is None or told == NOTHING:
            return job.spent if job else told
        return plus(run.before if run else NOTHING, told)

    def _text(self, task: bytes) -> str:
        run = self._runs.get(task)
        return run.text if run else ""

    def _orphan(self, report: Report) -> list[Deed]:
        """Kept visible, never applied."""
        key = report.task + bytes([report.attempt])
        told = Orphan(self._team, report.task, report.attempt, report.state, report.summary or report.note)
        return [Save(self.space, key, codec.encode(report)), Emit(told)]

    def _beat_of(self, now: Now, spec: TaskSpec, run: Run) -> Report:
        run.reported_at = now.boot
        state, spent = "running" if run.running else "accepted", self._jobs[spec.id].spent
        return Report(self._team, spec.id, spec.attempt, state, run.percent, run.note, summary=run.text, spent=spent)

    def _busy(self, now: Now, spec: TaskSpec) -> Report:
        """It is not looked at again before the time it names: another may have it by then."""
        retry_s = int(self._profile.beat_s) + 1
        self._busy_until_s[spec.id] = now.boot + retry_s
        return Report(self._team, spec.id, spec.attempt, "busy", retry_s=retry_s)

    def _report(self, spec: TaskSpec, state: ReportState, note: str = "") -> Report:
        job = self._jobs.get(spec.id)
        spent = job.spent if job and job.attempt == spec.attempt else NOTHING
        note, part = note[: limits.REASON_CHARS_MAX], self._text(spec.id)
        return Report(self._team, spec.id, spec.attempt, state, -1, note, summary=part, spent=spent)

    def _save(self, task: bytes, job: Job) -> Save:
        self._jobs[task] = job
        return Save(self.space, task, codec.encode(job))
