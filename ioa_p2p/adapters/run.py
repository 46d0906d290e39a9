"""One run of one task on one child process: its lines in, events out, every way to end.

    Run.events ── task line ──> child ── lines ──> Progress | Delta, ..., Result | Failed
                                  │ dies: worker-died     silent past the deadline: deadline
                                  │ too much: flooded     a line or file too large: oversized
                                  └ nonsense: bad-output

`ended`: the agent itself ended the run, so its process may serve again. `broken`: no use to ask it for anything.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from ioa_p2p.adapters import lines
from ioa_p2p.adapters.base import Event, Failed, Result, Task
from ioa_p2p.adapters.child import Child
from ioa_p2p.adapters.scratch import Scratch
from ioa_p2p.errors import AdapterError
from ioa_p2p.wire import limits


class Run:
    """`deadline`: in the loop's time, seconds. The owner closes the scratch and stops the child."""

    def __init__(self, child: Child, scratch: Scratch, deadline: float) -> None:
        self.ended = self.died = self.broken = False
        self._child, self._scratch, self._deadline = child, scratch, deadline
        self._events = self._bytes = 0

    async def events(self, task: Task) -> AsyncGenerator[Event, None]:
        """Ends with exactly one Result or Failed; never raises for the agent's fault."""
        try:
            await self._start(task)
            while not self.ended:
                yield await self._event()
        except TimeoutError:
            yield Failed("deadline", f"no result within {task.deadline_s:g} s")
        except AdapterError as fault:
            self.broken, self.died = True, fault.code == "worker-died"
            yield Failed(fault.code, str(fault))

    async def cancel(self, grace_s: float) -> None:
        """Ask the agent to end by itself; `ended` tells whether it did. Never raises for its fault."""
        if self.ended or self.broken or not self._child.alive:
            return
        self._child.send(lines.CANCEL)
        self._deadline = asyncio.get_running_loop().time() + grace_s
        with contextlib.suppress(AdapterError, TimeoutError):
            while not self.ended:
                await self._event()

    async def _start(self, task: Task) -> None:
        files = await self._scratch.put(task.attachments)
        self._child.send(lines.write_task(task, str(self._scratch.folder), files))

    async def _event(self) -> Event:
        """The next event. Raises AdapterError and TimeoutError."""
        line = await self._read()
        if not line.endswith(b"\n"):  # a last line without its end was cut short
            raise AdapterError("worker-died", await self._child.death())
        event = lines.read_event(line)
        self.ended = isinstance(event, lines.Answer | Failed)
        if isinstance(event, lines.Answer):
            files = await self._scratch.take(event.files)
            return Result(event.outputs, files, event.summary, event.spent)
        return event

    async def _read(self) -> bytes:
        """One line, counted; b"" at the end."""
        async with asyncio.timeout_at(self._deadline):
            line = await self._child.line()
        self._events, self._bytes = self._events + 1, self._bytes + len(line)
        if self._events > limits.ADAPTER_EVENTS_MAX or self._bytes > limits.ADAPTER_OUTPUT_BYTES_MAX:
            raise AdapterError("flooded", f"{self._events} lines, {self._bytes} bytes in one run")
        return line
