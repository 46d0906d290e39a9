"""T22: ten thousand offers to one device. Its owner's own tasks take at most twice as long, and memory stays small.

offers ── team workers, one queue ──> accepted | BUSY ── accepted ──> one agent, a run a tick      own tasks
"""

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncGenerator

import pytest

from ioa_p2p.adapters.base import Event, Result, Task
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Emit
from ioa_p2p.node.worker import Began, Ended, Worker, WorkerEvent
from ioa_p2p.team.events import StartTask
from ioa_p2p.team.queue import Queue
from ioa_p2p.team.tasks import LAN
from ioa_p2p.team.worker import Worker as TeamWorker
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.team import Report
from tests.team.people import BOB, NOW, no_rows
from tests.team.test_flood import MEMORY_MAX, OFFERS, offers

TEAMS = 100
OWN = 20
OWN_EVERY = 5  # ticks
AGENT = "agent"


class Ticking:
    """An agent each of whose runs ends with the next tick."""

    def __init__(self) -> None:
        self.ticks = asyncio.Semaphore(0)

    async def describe(self) -> Card:
        return Card(AGENT)

    async def run(self, task: Task) -> AsyncGenerator[Event, None]:
        await self.ticks.acquire()
        yield Result({})

    async def aclose(self) -> None: ...


class Device:
    """Counts time in ticks; when each task was begun and ended."""

    def __init__(self) -> None:
        self.agent, self.now, self.strangers, self.closing = Ticking(), 0, 0, False
        self.ended: dict[bytes, int] = {}
        self._moved = asyncio.Event()
        self.worker = Worker({AGENT: self.agent}, self._hear)

    def _hear(self, event: WorkerEvent) -> None:
        if isinstance(event, Ended):
            self.ended[event.job.task] = self.now
            if not event.job.task.startswith(b"own ") and not self.closing:
                self.take_in_a_stranger()  # whoever was BUSY comes again as soon as there is room
        if isinstance(event, Began | Ended):
            self._moved.set()

    def start(self, task: bytes, *, own: bool) -> None:
        self.worker.start(Task(task, b"key", 1, "a.skill", "goal", deadline_s=1e6), AGENT, b"t" * 16, own=own)

    async def aclose(self) -> None:
        self.closing = True
        await self.worker.aclose()

    def take_in_a_stranger(self) -> None:
        self.strangers += 1
        self.start(b"%16d" % self.strangers, own=False)

    async def tick(self) -> None:
        """One run ends, if one is under way, and the next begins."""
        self.now += 1
        for _ in range(10):
            await asyncio.sleep(0)
        if not any(self.worker.load.values()):
            return
        before = len(self.ended)
        self.agent.ticks.release()
        async with asyncio.timeout(10):
            while len(self.ended) == before:
                self._moved.clear()
                await self._moved.wait()

    async def own_tasks(self) -> list[int]:
        """How many ticks each of some tasks of its owner takes."""
        asked: dict[bytes, int] = {}
        for number in range(OWN):
            task = b"own %12d" % number
            asked[task] = self.now
            self.start(task, own=True)
            for _ in range(OWN_EVERY):
                await self.tick()
        return sorted(self.ended[task] - at for task, at in asked.items())


@pytest.mark.parametrize(("requesters", "accepted"), [(1, 32), (100, 224)])
async def test_a_flood_of_offers_makes_the_owners_tasks_twice_as_long_at_most_and_little_memory(
    requesters: int, accepted: int
) -> None:
    async with contextlib.aclosing(Device()) as calm, contextlib.aclosing(Device()) as flooded:
        alone = await calm.own_tasks()
        queue = Queue(own=BOB.node)
        tracemalloc.start()
        kept = _flood(queue, requesters)
        for _ in range(accepted):
            flooded.take_in_a_stranger()
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        reports = [report.state for _, report, _ in kept if report is not None]
        assert (reports.count("accepted"), reports.count("busy")) == (accepted, OFFERS - accepted)
        assert not any(start.own for _, _, start in kept if start is not None)
        assert grown <= MEMORY_MAX
        assert all(queue.take(BOB.node) for _ in range(limits.QUEUE_KEPT)), "the owner has its places"
        beside = await flooded.own_tasks()
        p95 = int(0.95 * OWN)
        assert beside[p95] <= 2 * alone[p95]
        assert flooded.worker.load[AGENT] == accepted, "the flood was there all the time"
        assert flooded.strangers > accepted, "and got its turns"


def _flood(queue: Queue, requesters: int) -> list[tuple[TeamWorker, Report | None, StartTask | None]]:
    """All offers, each team's worker kept; what was answered, and what begins."""
    found: list[tuple[TeamWorker, Report | None, StartTask | None]] = []
    for number in range(TEAMS):
        requester = NodeKey(bytes([number % requesters, 9]) * 16).node
        worker = TeamWorker(BOB.node, b"%16d" % number, requester, no_rows, LAN, queue)
        for deed in worker.reconcile(NOW, offers(number, OFFERS // TEAMS).state, new=True):
            report = deed if isinstance(deed, Report) else None
            start = deed.event if isinstance(deed, Emit) and isinstance(deed.event, StartTask) else None
            found.append((worker, report, start))
    return found
