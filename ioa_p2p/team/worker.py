"""The worker's side of a team: what this node took on, durably.

    decided state ── reconcile ──> accept (Save, then Report, then StartTask) | fence (CancelTask)
    run's outcome ── TaskDone ... ──> Save the result, Report it every beat until its Outcome is committed

A worker acts on the committed log alone. Its journal (space "task/<team hex>", one row a task) survives
everything: an accepted attempt, how often it was started, its result, and after the end the highest attempt
seen, which fences every lower one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.effects import Emit, Now, Rows, Save
from ioa_p2p.team.events import (
    CancelTask,
    Orphan,
    StartTask,
    TaskDone,
    TaskFailed,
    TaskProgress,
    WorkerDied,
)
from ioa_p2p.team.inputs import resolve
from ioa_p2p.team.state import TaskRow, TeamState
from ioa_p2p.team.tasks import Profile, may_repeat
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.step import ReportState, TaskSpec
from ioa_p2p.wire.team import Report

Deed = Save | Emit | Report
"""What the worker wants done; the team sends a Report to the coordinator and the launcher."""

_FENCE = b"fence"


class Job(Message, frozen=True):
    """A journal row. spec is dropped when the job is closed. starts: times the run was begun.
    report: the result, kept until its Outcome is committed."""

    attempt: int
    starts: int = 0
    spec: TaskSpec | None = None
    report: Report | None = None


class Queue:
    """How much this node has taken on, all teams together, and how much it may: in all, and of one requester."""

    def __init__(self, most: int = limits.QUEUE_MAX, most_each: int = limits.QUEUE_PER_REQUESTER_MAX) -> None:
        self.resize(most, most_each)
        self._taken: dict[bytes, int] = {}

    def resize(self, most: int, most_each: int) -> None:
        """What was taken before stays, also beyond the new measure."""
        self._most, self._most_each = most, most_each

    def take(self, requester: bytes) -> bool:
        """Room for one more? False is BUSY."""
        mine = self._taken.get(requester, 0)
        if mine >= self._most_each or sum(self._taken.values()) >= self._most:
            return False
        self._taken[requester] = mine + 1
        return True

    def give(self, requester: bytes) -> None:
        self._taken[requester] -= 1
        if not self._taken[requester]:
            del self._taken[requester]


@dataclass(slots=True)
class Run:
    """What is known of a run only while the process lives."""

    percent: int = -1
    note: str = ""
    running: bool = False
    reported_at: float = 0.0


class Worker:
    def __init__(
        self,
        node: bytes,
        team: bytes,
        requester: bytes,
        rows: Rows,
        profile: Profile,
        queue: Queue,
        *,
        lost_disk: bool = False,
    ) -> None:
        """lost_disk: what it ran in this team before is not known any more."""
        self._node = node
        self._team = team
        self._requester = requester
        self._profile = profile
        self._queue = queue
        self._lost_disk = lost_disk
        self.space = f"task/{team.hex()}"
        self._jobs: dict[bytes, Job] = {}
        self._fence = 0
        self._runs: dict[bytes, Run] = {}
        for key, value in rows(self.space):
            if key == _FENCE:
                self._fence = codec.decode(value, int)
            elif len(key) == 16:
                self._jobs[key] = codec.decode(value, Job)
        for job in self._jobs.values():
            if job.spec is not None:
                self._queue.take(requester)

    # -- the log decides

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
            if new and mine and row.term >= self._fence:
                deeds += self._take_on(now, state, row, job)
        return deeds

    def _is_over(self, row: TaskRow, job: Job) -> bool:
        return row.state.final or row.spec.attempt > job.attempt or row.spec.node != self._node

    def _take_on(self, now: Now, state: TeamState, row: TaskRow, job: Job | None) -> list[Deed]:
        if job is None or job.attempt < row.spec.attempt:
            return self._accept(now, state, row)
        if job.spec is not None and job.report is None and row.spec.id not in self._runs:
            return self._start_again(now, state, job.spec, job)
        return []

    def _accept(self, now: Now, state: TeamState, row: TaskRow) -> list[Deed]:
        spec = row.spec
        if now.wall > spec.deadline:
            return []
        if not self._queue.take(self._requester):
            return [self._report(spec, "busy", retry_s=int(self._profile.beat_s) + 1)]
        saves: list[Deed] = []
        if row.term > self._fence:
            self._fence = row.term
            saves.append(Save(self.space, _FENCE, codec.encode(row.term)))
        job = self._jobs[spec.id] = Job(spec.attempt, 0, spec)
        if self._lost_disk and not may_repeat(spec.effect):  # it may have run before the disk was lost
            return [*saves, *self._finish(spec, self._report(spec, "unknown", note="the worker lost its memory"))]
        return [*saves, self._report(spec, "accepted"), *self._start(now, state, spec, job)]

    def _start(self, now: Now, state: TeamState, spec: TaskSpec, job: Job) -> list[Deed]:
        """The start is counted, durably, before it happens."""
        self._runs[spec.id] = Run(reported_at=now.boot)
        counted = Job(job.attempt, job.starts + 1, spec)
        start = StartTask(self._team, spec, resolve(spec, state), max(0.0, spec.deadline - now.wall))
        return [self._save(spec.id, counted), Emit(start)]

    def _start_again(self, now: Now, state: TeamState, spec: TaskSpec, job: Job) -> list[Deed]:
        """After a crash of the worker process or of this node."""
        if not may_repeat(spec.effect):
            return self._finish(spec, self._report(spec, "unknown", note="the worker died while it ran"))
        if job.starts >= limits.TASK_STARTS_MAX:
            return self._finish(spec, self._report(spec, "dead-letter", note="the worker died twice"))
        return self._start(now, state, spec, job)

    def _close(self, spec: TaskSpec, row: TaskRow) -> list[Deed]:
        """Not ours any more, or final. What stays is the highest attempt seen."""
        job = self._jobs[spec.id]
        deeds: list[Deed] = []
        if spec.id in self._runs:
            deeds.append(Emit(CancelTask(self._team, spec.id, job.attempt, row.reason)))
        accepted = row.outcome is not None and row.outcome.attempt == job.attempt
        if job.report is not None and not accepted:
            deeds += self._orphan(job.report)
        self._runs.pop(spec.id, None)
        self._queue.give(self._requester)
        return [self._save(spec.id, Job(max(job.attempt, row.spec.attempt - 1))), *deeds]

    # -- the run tells

    def progress(self, now: Now, told: TaskProgress) -> list[Deed]:
        run, spec = self._runs.get(told.task), self._running(told.task, told.attempt)
        if run is None or spec is None:
            return []
        first, run.running = not run.running, True
        run.percent = -1 if told.fraction is None else round(100 * min(max(told.fraction, 0.0), 1.0))
        run.note = told.note[: limits.REASON_CHARS_MAX]
        if not first and now.boot < run.reported_at + self._profile.beat_s / 4:
            return []
        return [self._beat_of(now, spec, run)]

    def done(self, told: TaskDone) -> list[Deed]:
        """The result is durable before anybody hears of it."""
        report = Report(
            self._team, told.task, told.attempt, "succeeded", 100, "", 0, told.outputs, told.blobs,
            told.summary[: limits.SUMMARY_CHARS_MAX],
        )  # fmt: skip
        return self._finish_or_orphan(report)

    def failed(self, told: TaskFailed) -> list[Deed]:
        reason = told.reason[: limits.REASON_CHARS_MAX]
        return self._finish_or_orphan(
            Report(self._team, told.task, told.attempt, "failed", note=reason, retry=told.retry)
        )

    def died(self, now: Now, state: TeamState, told: WorkerDied) -> list[Deed]:
        spec = self._running(told.task, told.attempt)
        return [] if spec is None else self._start_again(now, state, spec, self._jobs[told.task])

    def beat(self, now: Now) -> list[Deed]:
        """Every beat: what runs is alive, what is done is told again, what is late is stopped."""
        deeds: list[Deed] = []
        for task, job in list(self._jobs.items()):
            if job.spec is None:
                continue
            if job.report is not None:
                deeds.append(job.report)
            elif now.wall > job.spec.deadline:
                deeds.append(Emit(CancelTask(self._team, task, job.attempt, "deadline passed")))
                deeds += self._finish(job.spec, self._report(job.spec, "expired", note="deadline passed"))
            elif task in self._runs:
                deeds.append(self._beat_of(now, job.spec, self._runs[task]))
        return deeds

    @property
    def busy(self) -> bool:
        """Something runs here, or a result is not yet committed."""
        return any(job.spec is not None for job in self._jobs.values())

    def open_reports(self) -> Sequence[Report]:
        """Results that no Outcome has answered yet."""
        return [job.report for job in self._jobs.values() if job.spec is not None and job.report is not None]

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

    def _finish(self, spec: TaskSpec, report: Report) -> list[Deed]:
        self._runs.pop(spec.id, None)
        return [self._save(spec.id, Job(spec.attempt, self._jobs[spec.id].starts, spec, report)), report]

    def _orphan(self, report: Report) -> list[Deed]:
        """Kept visible, never applied."""
        key = report.task + bytes([report.attempt])
        told = Orphan(self._team, report.task, report.attempt, report.state, report.summary or report.note)
        return [Save(self.space, key, codec.encode(report)), Emit(told)]

    def _beat_of(self, now: Now, spec: TaskSpec, run: Run) -> Report:
        run.reported_at = now.boot
        state = "running" if run.running else "accepted"
        return Report(self._team, spec.id, spec.attempt, state, run.percent, run.note)

    def _report(self, spec: TaskSpec, state: ReportState, note: str = "", retry_s: int = 0) -> Report:
        return Report(self._team, spec.id, spec.attempt, state, -1, note, retry_s)

    def _save(self, task: bytes, job: Job) -> Save:
        self._jobs[task] = job
        return Save(self.space, task, codec.encode(job))
