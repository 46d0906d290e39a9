"""The node's worker: queues, slots, cancel, one end a job; with adapters that do what a test says."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ioa_p2p.adapters.base import Delta, Event, Failed, Progress, Result, Task
from ioa_p2p.node import worker as worker_module
from ioa_p2p.node.worker import Began, Busy, Ended, Job, Told, Worker, WorkerEvent
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.spending import Spent

TEAM = b"t" * 16
BOUND_S = 10.0


class Scripted:
    """An adapter that does for each goal what the test says: events come from a queue; closing is remembered."""

    def __init__(self) -> None:
        self.queues: dict[bytes, asyncio.Queue[Event | Exception | None]] = {}
        self.running: list[bytes] = []
        self.closed: list[bytes] = []
        self.deadlines: list[float] = []
        self.may_close = asyncio.Event()
        self.may_close.set()

    def say(self, task: bytes, *events: Event | Exception | None) -> None:
        for event in events:
            self.queues.setdefault(task, asyncio.Queue()).put_nowait(event)

    async def describe(self) -> Card:
        return Card("scripted")

    async def run(self, task: Task) -> AsyncGenerator[Event, None]:
        queue = self.queues.setdefault(task.id, asyncio.Queue())
        self.running.append(task.id)
        self.deadlines.append(task.deadline_s)
        try:
            while (event := await queue.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            await self.may_close.wait()
            self.running.remove(task.id)
            self.closed.append(task.id)

    async def aclose(self) -> None: ...


class Bench:
    """A worker with one scripted agent, and all it has reported."""

    def __init__(self, concurrency: int = 1) -> None:
        self.adapter, self.reports = Scripted(), list[WorkerEvent]()
        self._rang = asyncio.Event()
        self.worker = Worker({"agent": self.adapter}, self._hear, {"agent": concurrency})

    def _hear(self, event: WorkerEvent) -> None:
        self.reports.append(event)
        self._rang.set()

    def start(self, number: int, attempt: int = 1, *, own: bool = False, **fields: Any) -> Job:
        task = Task(bytes([number]) * 16, b"k" * 16, attempt, "a.skill", "goal", **fields)
        self.worker.start(task, "agent", TEAM, own=own)
        return Job(TEAM, task.id, attempt, "agent")

    async def heard(self, *wanted: WorkerEvent) -> None:
        """Wait until all of these were reported."""
        async with asyncio.timeout(BOUND_S):
            while not all(event in self.reports for event in wanted):
                self._rang.clear()
                await self._rang.wait()

    def of(self, job: Job) -> list[WorkerEvent]:
        return [event for event in self.reports if event.job == job]


@pytest.fixture
async def bench():
    made = Bench()
    yield made
    made.adapter.may_close.set()
    await asyncio.wait_for(made.worker.aclose(), BOUND_S)


async def test_a_job_begins_tells_and_ends_once(bench: Bench) -> None:
    job = bench.start(1)
    bench.adapter.say(job.task, Progress(0.5, "half"), Delta("a"), Delta("b"), Result({"x": 1}))
    await bench.heard(Ended(job, Result({"x": 1}), 0))
    assert bench.of(job) == [Began(job), Told(job, Progress(0.5, "half"), "ab"), Ended(job, Result({"x": 1}), 0)]
    assert bench.adapter.closed == [job.task]


async def test_babble_is_told_in_one_piece_a_beat(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "TOLD_S", 3600.0)
    job = bench.start(1)
    bench.adapter.say(job.task, *(Progress(n / 1000, "") for n in range(1000)), Result({}))
    await bench.heard(Ended(job, Result({}), 0))
    assert [event for event in bench.reports if isinstance(event, Told)] == [Told(job, Progress(0.999, ""), "")]


async def test_progress_is_told_while_the_agent_is_silent_again(bench: Bench) -> None:
    job = bench.start(1)
    bench.adapter.say(job.task, Progress(0.1), Progress(0.2))
    await bench.heard(Told(job, Progress(0.2), ""))
    assert bench.worker.load == {"agent": 1}


async def test_jobs_beyond_the_slots_wait_in_order() -> None:
    bench = Bench(concurrency=2)
    jobs = [bench.start(number) for number in range(1, 5)]
    await bench.heard(Began(jobs[1]))
    assert bench.adapter.running == [jobs[0].task, jobs[1].task]
    assert bench.worker.load == {"agent": 4}
    bench.adapter.say(jobs[1].task, Result({}))
    await bench.heard(Began(jobs[2]))
    assert Began(jobs[3]) not in bench.reports
    await bench.worker.aclose()
    assert [type(bench.of(job)[-1]) for job in jobs] == [Ended] * 4
    assert bench.worker.load == {"agent": 0}


async def test_the_owners_tasks_wait_for_one_run_of_strangers_at_most(bench: Bench) -> None:
    strangers = [bench.start(number) for number in range(1, 201)]
    await bench.heard(Began(strangers[0]))
    mine = [bench.start(number, own=True) for number in (201, 202)]
    for ended, begun in ((strangers[0], mine[0]), (mine[0], mine[1]), (mine[1], strangers[1])):
        bench.adapter.say(ended.task, Result({}))
        await bench.heard(Began(begun))
    assert [event.job for event in bench.reports if isinstance(event, Began)] == [
        strangers[0], *mine, strangers[1]
    ]  # fmt: skip


async def test_a_task_cancelled_while_it_waits_keeps_no_turn(bench: Bench) -> None:
    first, second, third = (bench.start(number) for number in (1, 2, 3))
    await bench.heard(Began(first))
    bench.worker.cancel(second.task)
    await bench.heard(Ended(second, Failed("cancelled", "cancelled before its end"), 0))
    bench.adapter.say(first.task, Result({}))
    await bench.heard(Began(third))
    bench.adapter.say(third.task, Result({}))
    await bench.heard(Ended(third, Result({}), 0))
    await bench.heard(Began(bench.start(4)))


async def test_a_task_cancelled_in_the_moment_of_its_turn_passes_it_on(bench: Bench) -> None:
    first, second, third = (bench.start(number) for number in (1, 2, 3))
    await bench.heard(Began(first))
    bench.worker.cancel(first.task)
    while Ended(first, Failed("cancelled", "cancelled before its end"), 0) not in bench.reports:
        await asyncio.sleep(0)
        if not bench.adapter.running:  # the slot was given back: the next one has it and does not know yet
            bench.worker.cancel(second.task)
    await bench.heard(Began(third))


async def test_what_was_spent_is_not_lost_among_later_words(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "TOLD_S", 3600.0)
    job = bench.start(1)
    bench.adapter.say(job.task, Progress(0.1, "", Spent(5)), Progress(0.2, "on"), Result({}))
    await bench.heard(Told(job, Progress(0.2, "on", Spent(5)), ""))


async def test_a_full_queue_answers_busy_and_takes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AGENT_QUEUE_MAX", 2)
    jobs = [bench.start(number) for number in range(1, 5)]
    assert bench.of(jobs[3]) == [Busy(jobs[3], worker_module.BUSY_RETRY_S)]
    bench.adapter.say(jobs[0].task, Result({}))
    await bench.heard(Ended(jobs[0], Result({}), 0))
    assert bench.start(4) == jobs[3]
    assert len(bench.of(jobs[3])) == 1, "this time it waits"


async def test_cancel_of_a_running_job_ends_it_when_its_process_is_gone(bench: Bench) -> None:
    job = bench.start(1)
    await bench.heard(Began(job))
    bench.adapter.may_close.clear()
    for _ in range(20):
        bench.worker.cancel(job.task)
        await asyncio.sleep(0)
    assert bench.of(job) == [Began(job)], "its process is still there"
    bench.adapter.may_close.set()
    await bench.heard(Ended(job, Failed("cancelled", "cancelled before its end"), 0))
    assert bench.adapter.closed == [job.task]


async def test_cancel_of_a_waiting_job_never_starts_it(bench: Bench) -> None:
    first, second = bench.start(1), bench.start(2)
    bench.worker.cancel(second.task)
    await bench.heard(Ended(second, Failed("cancelled", "cancelled before its end"), 0))
    assert bench.adapter.closed == []
    assert bench.of(second)[0] != Began(second)
    bench.adapter.say(first.task, Result({}))
    await bench.heard(Ended(first, Result({}), 0))


async def test_a_cancel_in_the_same_moment_as_the_start_is_reported_too(bench: Bench) -> None:
    job = bench.start(1)
    bench.worker.cancel(job.task)
    await bench.heard(Ended(job, Failed("cancelled", "cancelled before its end"), 0))
    assert bench.of(job) == [Ended(job, Failed("cancelled", "cancelled before its end"), 0)]


async def test_the_same_attempt_twice_is_one_job(bench: Bench) -> None:
    job = bench.start(1)
    assert bench.start(1) == job
    bench.adapter.say(job.task, Result({}))
    await bench.heard(Ended(job, Result({}), 0))
    assert len(bench.of(job)) == 2


async def test_a_higher_attempt_ends_the_lower_and_a_lower_one_is_ignored(bench: Bench) -> None:
    first = bench.start(1, attempt=2)
    await bench.heard(Began(first))
    late, second = bench.start(1, attempt=1), bench.start(1, attempt=3)
    await bench.heard(Ended(first, Failed("cancelled", "cancelled before its end"), 0), Began(second))
    assert bench.of(late) == []


async def test_an_unknown_agent_is_a_failure_at_once(bench: Bench) -> None:
    bench.worker.start(Task(b"1" * 16, b"k", 1, "s", "g"), "nobody", TEAM)
    (report,) = bench.reports
    assert isinstance(report, Ended)
    assert isinstance(report.outcome, Failed)
    assert report.outcome.code == "unknown-agent"


async def test_the_wait_in_the_queue_counts_against_the_deadline(bench: Bench) -> None:
    first, second = bench.start(1), bench.start(2, deadline_s=0.05)
    await bench.heard(Ended(second, Failed("deadline", "waited 0.05 s for its turn"), 0))
    third = bench.start(3, deadline_s=100.0)
    bench.adapter.say(first.task, Result({}))
    await bench.heard(Began(third))
    assert bench.adapter.deadlines[1] < 100.0


@pytest.mark.parametrize(
    ("last", "code"), [(RuntimeError("a stranger's bug"), "adapter-error"), (None, "no-result"), (Failed("why"), "why")]
)
async def test_an_adapter_that_misbehaves_fails_its_job_alone(bench: Bench, last: Event | None, code: str) -> None:
    job, next_job = bench.start(1), bench.start(2)
    bench.adapter.say(job.task, last)
    await bench.heard(Began(next_job))
    bench.adapter.say(next_job.task, Result({}))
    await bench.heard(Ended(next_job, Result({}), 0))
    _, ended = bench.of(job)
    assert isinstance(ended, Ended)
    assert isinstance(ended.outcome, Failed)
    assert ended.outcome.code == code


async def test_deaths_of_the_worker_process_are_counted_by_task(bench: Bench) -> None:
    died = Failed("worker-died", "signal 9")
    for attempt in (1, 2):
        job = bench.start(1, attempt=attempt)
        bench.adapter.say(job.task, died)
        await bench.heard(Ended(job, died, attempt))
    other = bench.start(2)
    bench.adapter.say(other.task, Result({}))
    await bench.heard(Ended(other, Result({}), 0))


async def test_the_memory_of_deaths_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_DEATHS_MAX", 2)
    for number in (1, 2, 3, 1):
        job = bench.start(number)
        bench.adapter.say(job.task, Failed("worker-died"))
        await bench.heard(Ended(job, Failed("worker-died"), 1))
        bench.reports.clear()
        with contextlib.suppress(KeyError):
            del bench.adapter.queues[job.task]
