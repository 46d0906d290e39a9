"""Tasks of this node's own agents: from the team machine to an adapter and back.

StartTask ── inputs decoded, blobs fetched ──> Worker ──> adapter
TaskProgress | TaskDone | TaskFailed | WorkerDied <── outputs packed, files put as blobs ── Began | Told | Ended
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ioa_p2p.adapters.base import Adapter, Attachment, Failed, Result, Task
from ioa_p2p.errors import IoaError
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.worker import Began, Busy, Ended, Job, Told, Worker, WorkerEvent
from ioa_p2p.team import events
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.spending import NOTHING
from ioa_p2p.wire.step import Blob

INLINE_BYTES = limits.TASK_VALUE_BYTES_MAX // 2  # one value inline; the rest of the map must fit too


class Jobs:
    """teams: driver of the team machine. agents: name -> adapter. on_load: called when the load changed."""

    def __init__(
        self,
        teams: Driver,
        blobs: Blobs,
        agents: Mapping[str, Adapter],
        concurrency: Mapping[str, int],
        on_load: Callable[[], None],
    ) -> None:
        self._teams = teams
        self._blobs = blobs
        self._worker = Worker(agents, self._report, concurrency)
        self._on_load = on_load
        self._starting: dict[tuple[bytes, int], asyncio.Task[None]] = {}

    @property
    def load(self) -> dict[str, int]:
        """Agent name -> jobs that run or wait."""
        return self._worker.load

    def start(self, event: events.StartTask) -> None:
        key = (event.spec.id, event.spec.attempt)
        if key not in self._starting:
            task = self._starting[key] = asyncio.create_task(self._start(event))
            task.add_done_callback(lambda _: self._starting.pop(key, None))

    def cancel(self, event: events.CancelTask) -> None:
        """Every attempt up to this one: fetching its inputs, waiting, or running."""
        for (task, attempt), starting in list(self._starting.items()):
            if task == event.task and attempt <= event.attempt:
                starting.cancel()
        self._worker.cancel(event.task)

    async def aclose(self) -> None:
        for starting in list(self._starting.values()):
            starting.cancel()
        await self._worker.aclose()

    async def _start(self, event: events.StartTask) -> None:
        spec = event.spec
        try:
            task = await self._task(event)
        except IoaError as fault:
            self._tell(events.TaskFailed(event.team, spec.id, spec.attempt, f"{fault.code}: {fault}"[:300]))
            return
        self._worker.start(task, spec.agent, event.team, own=event.own)
        self._on_load()

    async def _task(self, event: events.StartTask) -> Task:
        """The adapter's view of the task. Raises PeerError for inputs that cannot be had or read."""
        inputs: dict[str, list[Any]] = {}
        attachments: list[Attachment] = []
        for one in event.inputs:
            values = inputs.setdefault(one.type, [])
            values += [codec.read_any(value) for value in one.values]
            for blob in one.blobs:
                data = await self._blobs.get(event.team, blob.hash)
                if blob.type:
                    values.append(codec.read_any(data))
                else:
                    attachments.append(Attachment(blob.name, blob.media_type, data))
        spec = event.spec
        left_s = max(1.0, event.seconds_left)
        return Task(
            spec.id, spec.key, spec.attempt, spec.skill, spec.goal, inputs, tuple(attachments), left_s, spec.budget
        )

    # -- what the worker tells

    def _report(self, event: WorkerEvent) -> None:
        job = event.job
        match event:
            case Began():
                self._tell(events.TaskProgress(job.team, job.task, job.attempt))
            case Told(_, progress, text):
                fraction = progress.fraction if progress else None
                said = (progress.note if progress else "") or text.strip()[-limits.REASON_CHARS_MAX :]
                note = _sayable(said, limits.REASON_CHARS_MAX)
                spent = progress.spent if progress else NOTHING
                end = _sayable(text[-limits.SUMMARY_CHARS_MAX :], limits.SUMMARY_CHARS_MAX)
                self._tell(events.TaskProgress(job.team, job.task, job.attempt, fraction, note, spent, end))
            case Busy():
                self._tell(events.TaskFailed(job.team, job.task, job.attempt, "busy: the agent's queue is full"))
            case Ended(_, outcome, _):
                self._ended(job, outcome)

    def _ended(self, job: Job, outcome: Result | Failed) -> None:
        if isinstance(outcome, Result):
            self._done(job, outcome)
        else:
            self._failed(job, outcome)
        self._on_load()

    def _done(self, job: Job, result: Result) -> None:
        try:
            outputs, blobs = self._pack(result)
        except IoaError as fault:
            self._failed(job, Failed(fault.code, str(fault), retry=False, spent=result.spent))
            return
        except Exception as fault:  # a stranger's adapter may hand over anything
            self._failed(job, Failed("bad-output", f"{type(fault).__name__}: {fault}", False, result.spent))
            return
        summary = _sayable(result.summary or _only_text(result.outputs), limits.SUMMARY_CHARS_MAX)
        self._tell(events.TaskDone(job.team, job.task, job.attempt, outputs, blobs, summary, result.spent))

    def _failed(self, job: Job, failed: Failed) -> None:
        reason = _sayable(f"{failed.code}: {failed.message}".rstrip(": "), limits.REASON_CHARS_MAX)
        if failed.code == "worker-died":
            self._tell(events.WorkerDied(job.team, job.task, job.attempt, reason))
        else:
            self._tell(events.TaskFailed(job.team, job.task, job.attempt, reason, failed.retry, failed.spent))

    def _pack(self, result: Result) -> tuple[bytes, tuple[Blob, ...]]:
        """Small outputs inline, large ones and files as blobs. Raises IoaError for too many or too large ones, and
        PeerError for what no peer would read."""
        codec.check_nesting(result.outputs)
        inline: dict[str, Any] = {}
        blobs = [
            Blob(
                file.name[: limits.BLOB_NAME_CHARS_MAX],
                file.media_type[:64],
                self._blobs.put(file.data),
                len(file.data),
            )
            for file in result.attachments
        ]
        room = INLINE_BYTES
        for name, value in result.outputs.items():
            encoded = codec.encode(value)
            if len(encoded) <= room:
                inline[name] = value
                room -= len(encoded) + len(name) + 8
            else:
                media = "application/msgpack"
                blobs.append(Blob(name, media, self._blobs.put(encoded), len(encoded), name))
        if len(blobs) > limits.TASK_BLOBS_MAX:
            raise IoaError("too-many-files", f"{len(blobs)} files and large outputs, at most {limits.TASK_BLOBS_MAX}")
        return codec.encode(inline), codec.decode(codec.encode(blobs), tuple[Blob, ...])

    def _tell(self, command: Any) -> None:
        """The team may have ended meanwhile: then nobody wants to know."""
        try:
            self._teams.command(command)
        except IoaError:
            return


def _sayable(text: str, chars_max: int) -> str:
    """An agent's text as the wire can carry it: half a surrogate pair becomes '?'."""
    return text[:chars_max].encode("utf-8", "replace").decode()


def _only_text(outputs: Mapping[str, Any]) -> str:
    """A result that is one text is its own summary, so that people read it as the answer."""
    values = list(outputs.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else ""
