"""Tasks of this node's own agents: from the team machine to an adapter and back.

StartTask ── inputs decoded, blobs fetched ──> Worker ──> adapter
TaskProgress | TaskDone | TaskFailed | WorkerDied <── outputs packed, files put as blobs ── Began | Told | Ended
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ioa_p2p.adapters.base import Adapter, Attachment, Failed, Result, Task
from ioa_p2p.errors import IoaError
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.worker import Began, Busy, Ended, Job, Told, Worker, WorkerEvent
from ioa_p2p.team import commands, events
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.spending import NOTHING
from ioa_p2p.wire.step import Blob, TaskSpec

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
        self._worker = Worker(agents, self._report, concurrency, self._take)
        self._on_load = on_load
        self._starting: dict[tuple[bytes, int], asyncio.Task[None]] = {}
        self._inputs: dict[tuple[bytes, int], Path] = {}  # folders with the files that go in
        self._cleaning: set[asyncio.Task[None]] = set()
        self._files: dict[Job, tuple[Blob, ...]] = {}  # those that came out, put as blobs

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
        await asyncio.gather(*self._cleaning)
        for task, attempt in list(self._inputs):
            await self._forget_inputs(task, attempt)

    async def _start(self, event: events.StartTask) -> None:
        spec = event.spec
        try:
            task = await self._task(event)
        except (IoaError, OSError) as fault:
            await self._forget_inputs(spec.id, spec.attempt)
            code = fault.code if isinstance(fault, IoaError) else "no-scratch"
            self._tell(commands.TaskFailed(event.team, spec.id, spec.attempt, f"{code}: {fault}"[:300]))
            return
        self._worker.start(task, spec.agent, event.team, own=event.own)
        self._on_load()

    async def _task(self, event: events.StartTask) -> Task:
        """The adapter's view of the task. Raises PeerError for inputs that cannot be had or read, OSError when there is
        no room for their files."""
        inputs: dict[str, list[Any]] = {}
        attachments: list[Attachment] = []
        for one in event.inputs:
            values = inputs.setdefault(one.type, [])
            values += [codec.read_any(value) for value in one.values]
            for blob in one.blobs:
                if blob.type:
                    values.append(codec.read_any(await self._blobs.get(event.team, blob.hash)))
                else:
                    path = await self._input_file(event.spec, len(attachments))
                    await self._blobs.get_file(event.team, blob.hash, path)
                    attachments.append(Attachment(blob.name, blob.media_type, path))
        spec = event.spec
        left_s = max(1.0, event.seconds_left)
        return Task(
            spec.id, spec.key, spec.attempt, spec.skill, spec.goal, inputs, tuple(attachments), left_s, spec.budget
        )

    async def _input_file(self, spec: TaskSpec, number: int) -> Path:
        """A path in the attempt's private folder, which is made with the first."""
        folder = self._inputs.get((spec.id, spec.attempt))
        if folder is None:
            made = await asyncio.to_thread(tempfile.mkdtemp, prefix="ioa-in-")
            folder = self._inputs[spec.id, spec.attempt] = Path(made)
        return folder / str(number)

    async def _forget_inputs(self, task: bytes, attempt: int) -> None:
        folder = self._inputs.pop((task, attempt), None)
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    # -- what the worker tells

    async def _take(self, job: Job, result: Result) -> None:
        """A result's files become blobs while they are there. Raises IoaError, OSError."""
        if len(result.attachments) > limits.TASK_BLOBS_MAX:
            raise IoaError("too-many-files", f"{len(result.attachments)} files, at most {limits.TASK_BLOBS_MAX}")
        self._files[job] = tuple([await self._put(file) for file in result.attachments])

    async def _put(self, file: Attachment) -> Blob:
        content = file.content
        named = self._blobs.put(content) if isinstance(content, bytes) else await self._blobs.put_file(content)
        return Blob(file.name[: limits.BLOB_NAME_CHARS_MAX], file.media_type[:64], named, file.size)

    def _report(self, event: WorkerEvent) -> None:
        job = event.job
        if isinstance(event, Busy | Ended):
            cleaning = asyncio.create_task(self._forget_inputs(job.task, job.attempt))
            self._cleaning.add(cleaning)
            cleaning.add_done_callback(self._cleaning.discard)
        match event:
            case Began():
                self._tell(commands.TaskProgress(job.team, job.task, job.attempt))
            case Told(_, progress, text):
                fraction = progress.fraction if progress else None
                said = (progress.note if progress else "") or text.strip()[-limits.REASON_CHARS_MAX :]
                note = _sayable(said, limits.REASON_CHARS_MAX)
                spent = progress.spent if progress else NOTHING
                end = _sayable(text[-limits.SUMMARY_CHARS_MAX :], limits.SUMMARY_CHARS_MAX)
                self._tell(commands.TaskProgress(job.team, job.task, job.attempt, fraction, note, spent, end))
            case Busy():
                self._tell(commands.TaskFailed(job.team, job.task, job.attempt, "busy: the agent's queue is full"))
            case Ended(_, outcome, _):
                self._ended(job, outcome)

    def _ended(self, job: Job, outcome: Result | Failed) -> None:
        if isinstance(outcome, Result):
            self._done(job, outcome)
        else:
            self._failed(job, outcome)
        self._files.pop(job, None)
        self._on_load()

    def _done(self, job: Job, result: Result) -> None:
        try:
            outputs, blobs = self._pack(result, self._files.get(job, ()))
        except IoaError as fault:
            self._failed(job, Failed(fault.code, str(fault), retry=False, spent=result.spent))
            return
        except Exception as fault:  # a stranger's adapter may hand over anything
            self._failed(job, Failed("bad-output", f"{type(fault).__name__}: {fault}", False, result.spent))
            return
        summary = _sayable(result.summary or _only_text(result.outputs), limits.SUMMARY_CHARS_MAX)
        self._tell(commands.TaskDone(job.team, job.task, job.attempt, outputs, blobs, summary, result.spent))

    def _failed(self, job: Job, failed: Failed) -> None:
        reason = _sayable(f"{failed.code}: {failed.message}".rstrip(": "), limits.REASON_CHARS_MAX)
        if failed.code == "worker-died":
            self._tell(commands.WorkerDied(job.team, job.task, job.attempt, reason))
        else:
            self._tell(commands.TaskFailed(job.team, job.task, job.attempt, reason, failed.retry, failed.spent))

    def _pack(self, result: Result, files: tuple[Blob, ...]) -> tuple[bytes, tuple[Blob, ...]]:
        """Small outputs inline, large ones and files as blobs. Raises IoaError for too many or too large ones, and
        PeerError for what no peer would read."""
        codec.check_nesting(result.outputs)
        inline: dict[str, Any] = {}
        blobs = list(files)
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
