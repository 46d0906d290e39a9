"""Real member processes, killed and frozen while clients append and read: what they answered is one history."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from examples.mesh import free_ports
from ioa_p2p.wire import codec
from tests.linear import Recorder, linearizable
from tests.live.voter import pack, unpack

MEMBERS = 3
OPERATIONS = 30  # answered appends, before the end
WAIT_S = 120.0
ANSWER_S = 2.0
CLIENTS = 3
PACE_S = 0.02


class Members:
    """The processes. Each fault leaves a majority that runs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.ports = folder, free_ports(MEMBERS)
        self._processes = [self._start(number) for number in range(MEMBERS)]

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tests.live.voter", str(self._folder), str(number), *map(str, self.ports)]
        return subprocess.Popen(command)

    def kill(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait()
        self._processes[number] = self._start(number)

    async def pause(self, number: int, seconds: float) -> None:
        os.kill(self._processes[number].pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(self._processes[number].pid, signal.SIGCONT)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


class Client:
    """Asks one member after the other, whoever answers."""

    def __init__(self, name: str, ports: list[int], recorder: Recorder) -> None:
        self._name, self._ports, self._recorder = name, ports, recorder
        self._dice = random.Random(name)
        self.answered = 0

    async def run(self, count: int) -> None:
        tried = 0
        while self.answered < count:
            tried += 1
            port = self._dice.choice(self._ports)
            if self._dice.random() < 0.6:
                await self._append(port, f"{self._name} {tried}".encode())
            else:
                await self._read(port)
            await asyncio.sleep(PACE_S)

    async def _append(self, port: int, value: bytes) -> None:
        handle = self._recorder.invoke("append", value, time.monotonic())
        kind, _ = await _ask(port, "append", value)
        if kind == "ok":
            self._recorder.ok(handle, time.monotonic())
            self.answered += 1
        elif kind == "fail":
            self._recorder.fail(handle)

    async def _read(self, port: int) -> None:
        handle = self._recorder.invoke("read", None, time.monotonic())
        kind, body = await _ask(port, "read", b"")
        if kind == "ok":
            self._recorder.ok(handle, time.monotonic(), codec.decode(body, tuple[bytes, ...]))


async def _ask(port: int, kind: str, body: bytes) -> tuple[str, bytes]:
    """The answer; ("unknown", b"") when the question may have been heard, ("fail", b"") when it was not."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), ANSWER_S)
    except (OSError, TimeoutError):
        return "fail", b""
    try:
        writer.write(pack(b"", kind, body))
        _, answer, told = await asyncio.wait_for(unpack(reader), ANSWER_S)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return "unknown", b""
    finally:
        writer.close()
    return answer, told


async def _life(members: Members, recorder: Recorder) -> None:
    """Clients until each has its answers; meanwhile a kill and a pause of every member in turn, over and over."""
    clients = [Client(f"client-{number}", members.ports, recorder) for number in range(CLIENTS)]
    trouble = asyncio.create_task(_trouble(members))
    try:
        await asyncio.wait_for(asyncio.gather(*(client.run(OPERATIONS // CLIENTS) for client in clients)), WAIT_S)
    finally:
        trouble.cancel()
        await asyncio.gather(trouble, return_exceptions=True)


async def _trouble(members: Members) -> None:
    while True:
        for number in range(MEMBERS):
            await asyncio.sleep(1.0)
            members.kill(number)
            await asyncio.sleep(3.0)
            await members.pause((number + 1) % MEMBERS, 3.0)


def test_what_killed_and_frozen_members_answered_is_one_history(tmp_path: Path) -> None:
    members, recorder = Members(tmp_path), Recorder()
    try:
        asyncio.run(_life(members, recorder))
    finally:
        members.end()
    history = recorder.history
    assert linearizable(history)
    assert sum(each.kind == "append" and each.end_s is not None for each in history) >= OPERATIONS
    assert any(each.kind == "read" and each.value for each in history)
