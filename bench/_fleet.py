"""Several processes, one member of a team in each, told what to do over pipes.

    Fleet ── (method, arguments) ──> process: Member.method ── answer ──> Fleet

A member class is constructed in its process as `Member(number)`; its methods are coroutines.
"""

import asyncio
import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

ANSWER_S_MAX = 180.0


class Fleet:
    """`with Fleet(Member, 10) as fleet: fleet.all("open")`."""

    def __init__(self, member: Callable[[int], Any], size: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        pairs = [spawn.Pipe() for _ in range(size)]
        self._pipes = [ours for ours, _ in pairs]
        self._processes = [
            spawn.Process(target=_serve, args=(member, number, theirs), daemon=True)
            for number, (_, theirs) in enumerate(pairs)
        ]

    def __enter__(self) -> "Fleet":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join(10)

    def all(self, method: str, *arguments: Any) -> list[Any]:
        """Every member at once; their answers in order. Raises what a member raised."""
        return self.some(range(len(self._pipes)), method, *arguments)

    def some(self, numbers: Sequence[int], method: str, *arguments: Any) -> list[Any]:
        """Likewise, these members only."""
        pipes = [self._pipes[number] for number in numbers]
        for pipe in pipes:
            pipe.send((method, arguments))
        return [_answer(pipe) for pipe in pipes]

    def one(self, number: int, method: str, *arguments: Any) -> Any:
        self._pipes[number].send((method, arguments))
        return _answer(self._pipes[number])

    def freeze(self, number: int) -> float:
        """SIGSTOP; returns when, on the clock of `time.monotonic`."""
        self._signal(number, signal.SIGSTOP)
        return time.monotonic()

    def thaw(self, number: int) -> None:
        self._signal(number, signal.SIGCONT)

    def cpu_s(self) -> float:
        """CPU time of all processes so far."""
        return sum(self.all("cpu_s"))

    def _signal(self, number: int, name: signal.Signals) -> None:
        pid = self._processes[number].pid
        assert pid is not None, "a fleet that is entered runs"
        os.kill(pid, name)


def _answer(pipe: Connection) -> Any:
    if not pipe.poll(ANSWER_S_MAX):
        raise TimeoutError("a member of the fleet does not answer")
    good, value = pipe.recv()
    if not good:
        raise RuntimeError(value)
    return value


def _serve(make: Callable[[int], Any], number: int, pipe: Connection) -> None:
    gc.freeze()
    asyncio.run(_answer_all(make, number, pipe))


async def _answer_all(make: Callable[[int], Any], number: int, pipe: Connection) -> None:
    member = make(number)
    loop = asyncio.get_running_loop()
    while True:
        asked = loop.create_future()
        loop.add_reader(pipe.fileno(), lambda asked=asked: asked.done() or asked.set_result(None))
        await asked
        loop.remove_reader(pipe.fileno())
        method, arguments = pipe.recv()
        try:
            answer = time.process_time() if method == "cpu_s" else await getattr(member, method)(*arguments)
            pipe.send((True, answer))
        except Exception as fault:
            pipe.send((False, f"member {number}: {type(fault).__name__}: {fault}"))
