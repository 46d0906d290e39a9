"""Where tasks run: a bounded set of worker processes, each with one run at a time.

    run(task) ── slot ── a free process or a new one ── Run ──┬─ the agent ended it: the process is free again
                                                              └─ cancelled, dead, late, too much: ask, TERM, KILL

A process that dies is not started again at once: the wait doubles up to `limits.ADAPTER_BACKOFF_S_MAX` and is
forgotten with the first run that ends well.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any

from ioa_p2p.adapters.base import Event, Failed, Task
from ioa_p2p.adapters.child import Child
from ioa_p2p.adapters.run import Run
from ioa_p2p.adapters.scratch import Scratch
from ioa_p2p.errors import AdapterError
from ioa_p2p.wire import limits

Spawn = Callable[[Task | None], Awaitable[Child]]
"""Start a process that is ready for tasks (for this very task, if each run has its own). Raises AdapterError."""

MakeRun = Callable[[Child, Scratch, float], Run]

BACKOFF_S = 0.5  # wait after the first death


class Stage:
    """`keep`: a process serves run after run; otherwise each run has its own. cancel_s: grace of each step."""

    def __init__(self, spawn: Spawn, concurrency: int, cancel_s: float, *, keep: bool, run: MakeRun = Run) -> None:
        self._spawn, self._keep, self._make_run, self._cancel_s = spawn, keep, run, cancel_s
        self._slots = asyncio.Semaphore(concurrency)
        self._free: list[Child] = []
        self._busy: set[Child] = set()
        self._ends: set[asyncio.Task[None]] = set()
        self._deaths, self._not_before = 0, 0.0
        self._closed = False

    async def warm(self) -> None:
        """Have one process ready. Raises AdapterError as `spawn` does."""
        self._free.append(await self._new(None))

    async def run(self, task: Task) -> AsyncGenerator[Event, None]:
        """The events of one run; closing the iterator cancels and returns when the process is dealt with."""
        deadline, holdings = asyncio.get_running_loop().time() + task.deadline_s, contextlib.AsyncExitStack()
        try:
            try:
                async with asyncio.timeout_at(deadline):
                    run = await self._begin(task, deadline, holdings)
            except TimeoutError:
                yield Failed("deadline", f"not started within {task.deadline_s:g} s")
                return
            except AdapterError as fault:
                yield Failed(fault.code, str(fault))
                return
            async for event in run.events(task):
                yield event
        finally:
            await self._to_the_end(holdings.aclose())

    async def aclose(self) -> None:
        """End all runs and processes. Idempotent."""
        self._closed = True
        processes, self._free = [*self._free, *self._busy], []
        await asyncio.gather(*(process.stop(self._cancel_s) for process in processes))
        await asyncio.gather(*self._ends)

    async def _begin(self, task: Task, deadline: float, holdings: contextlib.AsyncExitStack) -> Run:
        """Slot, folder, process: whatever was had is in `holdings`, to be given back."""
        await holdings.enter_async_context(self._slots)
        scratch = await Scratch.open()
        holdings.push_async_callback(scratch.aclose)
        child = await self._take(task)
        self._busy.add(child)
        run = self._make_run(child, scratch, deadline)
        holdings.push_async_callback(self._give_back, child, run)
        return run

    async def _take(self, task: Task) -> Child:
        while self._free:
            child = self._free.pop()
            if child.alive:
                return child
            await child.stop(0)  # it died while it was idle: end what it started
        await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
        return await self._new(task)

    async def _new(self, task: Task | None) -> Child:
        if self._closed:
            raise AdapterError("closed", "the adapter is closed")
        try:
            return await self._spawn(task)
        except AdapterError:
            self._count_death()
            raise

    async def _give_back(self, child: Child, run: Run) -> None:
        await run.cancel(self._cancel_s)
        self._busy.discard(child)
        if run.ended:
            self._deaths, self._not_before = 0, 0.0
        elif run.died:
            self._count_death()
        if self._keep and run.ended and child.alive and not self._closed:
            self._free.append(child)
        else:
            await child.stop(self._cancel_s, in_peace=run.ended)

    def _count_death(self) -> None:
        wait_s = min(BACKOFF_S * 2.0**self._deaths, limits.ADAPTER_BACKOFF_S_MAX)
        self._deaths, self._not_before = self._deaths + 1, asyncio.get_running_loop().time() + wait_s

    async def _to_the_end(self, ending: Coroutine[Any, Any, None]) -> None:
        """Goes on when the caller is cancelled again: no process is left behind."""
        task = asyncio.create_task(ending)
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        await asyncio.shield(task)
