"""Voter processes (voter.py) that are killed and frozen while clients append and read: what came of it, as a history.

    clients ── append, read ──> any voter ──> ok | fail | no answer: unknown ──> Recorder
    killing:  after some more answers, kill -9 ──> started again at once; the last one hits all voters together
    freezing: after some more answers, SIGSTOP ──> as many as the dice say are decided by the others ──> SIGCONT
    alone:    in the end the coordinator is asked while all others are frozen; all die, the others go on first

No fault waits for a clock: each waits for answers, so that a thawed coordinator knows less than is decided.
"""

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.mesh import ROOT
from ioa_p2p.wire import codec
from tests.linear import Operation, Recorder
from tests.live.voter import pack, unpack

CLIENTS = 8
PATIENCE_S = 0.25  # of the first client; each next one waits so much longer: some hear what a thawed voter says
PACE_S = 0.01
WAIT_S = 60.0  # for the next answer, whatever fails
ANSWERS_BETWEEN = 12  # at most, from one fault to the next
APPEND_SHARE = 0.6  # of what clients ask; the rest reads
LEADER_SHARE = 0.6  # of the faults hit the voter that last took an append


@dataclass(frozen=True)
class Play:
    """What happened. deposed: coordinators that were frozen until another one had decided something."""

    history: list[Operation]
    kills: int
    freezes: int
    deposed: int


async def play(folder: Path, seed: int, size: int, faults: int) -> Play:
    """One life of `size` voters with so many kills, and so many freezes or more; when it ends every client has read
    once more. Raises TimeoutError when nothing is answered any more."""
    voters, clients = Voters(folder, size), Clients(seed, size)
    try:
        clients.start(voters.ports)
        await clients.more(1)
        _, (freezes, deposed) = await asyncio.gather(
            killing(voters, clients, random.Random(f"killing {seed}"), faults),
            freezing(voters, clients, random.Random(f"freezing {seed}"), faults),
        )
        await alone(voters, clients)
        await clients.end()
    finally:
        voters.end()
    return Play(clients.recorder.history, faults, freezes, deposed)


async def killing(voters: "Voters", clients: "Clients", dice: random.Random, faults: int) -> None:
    """One voter after another, and then all of them together."""
    for _ in range(faults - 1):
        await clients.more(dice.randint(1, ANSWERS_BETWEEN))
        voters.restart(clients.victim(dice))
    await clients.more(1)
    voters.restart(*range(voters.size))


async def freezing(voters: "Voters", clients: "Clients", dice: random.Random, faults: int) -> tuple[int, int]:
    """How many voters were frozen, and how many of them deposed; goes on until that is one at least."""
    frozen = deposed = 0
    while frozen < faults or not deposed:
        await clients.more(dice.randint(1, ANSWERS_BETWEEN))
        victim, leader = clients.victim(dice), clients.leader
        voters.freeze(victim)
        await clients.more(dice.randint(1, ANSWERS_BETWEEN))
        voters.thaw(victim)
        frozen, deposed = frozen + 1, deposed + (victim == leader != clients.leader)
    return frozen, deposed


async def alone(voters: "Voters", clients: "Clients") -> None:
    """The coordinator is asked while all others are frozen; then all die, and only they come back: what is left of
    what it said before must hold. (Merely thawed, they would still find its messages in their sockets.)"""
    leader = clients.leader
    others = [number for number in range(voters.size) if number != leader]
    for number in others:
        voters.freeze(number)
    await clients.more_ended(2 * CLIENTS)
    voters.kill(leader)
    voters.restart(*others)
    await clients.more(1)
    voters.restart(leader)


class Voters:
    """The processes; a voter is its number. Their listening sockets are ours: no life finds its port taken, and what
    comes between two lives waits for the next one."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self.size = folder, size
        self._sockets = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(size)]
        self.ports = [each.getsockname()[1] for each in self._sockets]
        self._processes = [self._start(number) for number in range(size)]

    def restart(self, *numbers: int) -> None:
        self.kill(*numbers)
        for number in numbers:
            self._processes[number] = self._start(number)

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            self._processes[number].kill()
        for number in numbers:
            self._processes[number].wait()

    def freeze(self, number: int) -> None:
        os.kill(self._processes[number].pid, signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        os.kill(self._processes[number].pid, signal.SIGCONT)

    def end(self) -> None:
        self.kill(*range(self.size))
        for each in self._sockets:
            each.close()

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        door = self._sockets[number].fileno()
        words = [str(each) for each in (self._folder, number, door, *self.ports)]
        return subprocess.Popen([sys.executable, "-m", "tests.live.voter", *words], cwd=ROOT, pass_fds=[door])


class Clients:
    """Each asks one voter after the other, at random; all write into one history."""

    def __init__(self, seed: int, size: int) -> None:
        self.recorder = Recorder()
        self.leader = 0  # who last took an append
        self._dice = random.Random(f"clients {seed}")
        self._size, self._appended, self._decided, self._ended, self._ending = size, 0, 0, 0, False

    def start(self, ports: list[int]) -> None:
        self._ports = ports
        self._tasks = [asyncio.create_task(self._run(PATIENCE_S * number)) for number in range(1, CLIENTS + 1)]

    def victim(self, dice: random.Random) -> int:
        return self.leader if dice.random() < LEADER_SHARE else dice.randrange(self._size)

    async def more(self, count: int) -> None:
        """Wait until so many more appends are decided."""
        await _wait(lambda: self._decided, self._decided + count)

    async def more_ended(self, count: int) -> None:
        """Likewise, so many more appends and reads, whatever came of them."""
        await _wait(lambda: self._ended, self._ended + count)

    async def end(self) -> None:
        """No appends any more; every client reads until it is told."""
        self._ending = True
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*self._tasks)

    async def _run(self, patience_s: float) -> None:
        while not self._ending:
            number = self._dice.randrange(self._size)
            appends = self._dice.random() < APPEND_SHARE
            await (self._append(number, patience_s) if appends else self._read(number, patience_s))
            self._ended += 1
            await asyncio.sleep(PACE_S)
        while not await self._read(self._dice.randrange(self._size), patience_s):
            await asyncio.sleep(PACE_S)

    async def _append(self, number: int, patience_s: float) -> None:
        self._appended += 1
        value = b"value %d" % self._appended
        handle = self.recorder.invoke("append", value, time.monotonic())
        answer, _ = await ask(self._ports[number], "append", value, patience_s)
        if answer == "ok":
            self.recorder.ok(handle, time.monotonic())
            self._decided, self.leader = self._decided + 1, number
        elif answer == "fail":
            self.recorder.fail(handle)

    async def _read(self, number: int, patience_s: float) -> bool:
        handle = self.recorder.invoke("read", None, time.monotonic())
        answer, body = await ask(self._ports[number], "read", b"", patience_s)
        if answer == "ok":
            self.recorder.ok(handle, time.monotonic(), codec.decode(body, tuple[bytes, ...]))
        return answer == "ok"


async def _wait(count: Callable[[], int], until: int) -> None:
    async with asyncio.timeout(WAIT_S):
        while count() < until:
            await asyncio.sleep(PACE_S)


async def ask(port: int, kind: str, body: bytes, patience_s: float) -> tuple[str, bytes]:
    """The answer; ("unknown", b"") when the question may have been heard, ("fail", b"") when it was not."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), patience_s)
    except (OSError, TimeoutError):
        return "fail", b""
    try:
        writer.write(pack(b"", kind, body))
        _, answer, told = await asyncio.wait_for(unpack(reader), patience_s)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return "unknown", b""
    finally:
        writer.close()
    return answer, told
