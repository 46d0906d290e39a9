"""Runs the tasks of this node's own agents: a bounded queue each, the owner's own first, every end reported once.

    start(task, agent, team) ── queue ── slot ──> Began ── Told, Told, ... ──> Ended(Result | Failed)
              └─ queue full ──> Busy                 cancel ─> the process group is gone ─┘

Knows nothing of teams: the runtime turns what is reported into commands of the team machine. One event loop.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from ioa_p2p.adapters.base import Adapter, Delta, Failed, Progress, Result, Task
from ioa_p2p.errors import IoaError
from ioa_p2p.node.turns import Turns
from ioa_p2p.wire import limits
from ioa_p2p.wire.spending import NOTHING


@dataclass(frozen=True, slots=True)
class Job:
    """Which run an event speaks of. team: 16 B, task: the task's id."""

    team: bytes
    task: bytes
    attempt: int
    agent: str


@dataclass(frozen=True, slots=True)
class Began:
    """It left the queue and runs."""

    job: Job


@dataclass(frozen=True, slots=True)
class Told:
    """At most one a `TOLD_S`: the latest progress (None: unchanged) and the text that came since."""

    job: Job
    progress: Progress | None
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of a job. deaths: how often this task has killed its worker process on this node."""

    job: Job
    outcome: Result | Failed
    deaths: int


@dataclass(frozen=True, slots=True)
class Busy:
    """The agent's queue is full; the job was not taken. retry_s: when to ask again."""

    job: Job
    retry_s: float


WorkerEvent = Began | Told | Ended | Busy
Report = Callable[[WorkerEvent], None]
Take = Callable[[Job, Result], Awaitable[None]]

TOLD_S = 0.25  # an agent may babble; the team hears four times a second at most
BUSY_RETRY_S = 5.0
_DEATHS_MAX = 1_024  # tasks whose deaths are remembered; the oldest is forgotten


class Worker:
    """`agents`: agent name -> adapter, read at each start, so it may change. concurrency: runs at a time, default 1.

    `report` is called on the loop, in order, and must not block. `take` is awaited with each result before the run
    ends, while its files are there; what it raises fails the job.
    """

    def __init__(
        self,
        agents: Mapping[str, Adapter],
        report: Report,
        concurrency: Mapping[str, int] | None = None,
        take: Take | None = None,
    ) -> None:
        self._agents, self._report, self._concurrency, self._take = agents, report, concurrency or {}, take
        self._turns: dict[str, Turns] = {}
        self._jobs: dict[Job, asyncio.Task[Result | Failed]] = {}
        self._deaths: OrderedDict[bytes, int] = OrderedDict()

    @property
    def load(self) -> dict[str, int]:
        """Agent name -> jobs that run or wait, for bids."""
        count = dict.fromkeys(self._agents, 0)
        for job in self._jobs:
            count[job.agent] = count.get(job.agent, 0) + 1
        return count

    def start(self, task: Task, agent: str, team: bytes, *, own: bool = False) -> None:
        """Queue a task. The same attempt twice is one job; a higher attempt ends the lower ones. own: it is for a
        goal of this node, and waits for no stranger's."""
        job = Job(team, task.id, task.attempt, agent)
        rivals = [each for each in self._jobs if (each.team, each.task) == (team, task.id)]
        if any(each.attempt >= task.attempt for each in rivals):
            return
        if agent not in self._agents:
            self._report(Ended(job, Failed("unknown-agent", f"no agent named {agent!r} here"), 0))
        elif self.load[agent] >= self._width(agent) + limits.AGENT_QUEUE_MAX:
            self._report(Busy(job, BUSY_RETRY_S))
        else:
            for rival in rivals:
                _cancel(self._jobs[rival])
            running = self._jobs[job] = asyncio.create_task(self._queue(job, task, own))
            running.add_done_callback(lambda running: self._end(job, running))

    def cancel(self, task_id: bytes) -> None:
        """End all jobs of a task; each reports Ended(Failed('cancelled')) when its processes are gone."""
        for job, running in self._jobs.items():
            if job.task == task_id:
                _cancel(running)

    async def aclose(self) -> None:
        """Cancel everything and wait for it. The adapters stay open: they belong to the caller."""
        jobs = list(self._jobs.values())
        for running in jobs:
            _cancel(running)
        await asyncio.gather(*jobs, return_exceptions=True)

    def _width(self, agent: str) -> int:
        return self._concurrency.get(agent, 1)

    def _end(self, job: Job, running: "asyncio.Task[Result | Failed]") -> None:
        del self._jobs[job]
        outcome = Failed("cancelled", "cancelled before its end") if running.cancelled() else running.result()
        self._report(Ended(job, outcome, self._count_death(job, outcome)))

    async def _queue(self, job: Job, task: Task, own: bool) -> Result | Failed:
        """Wait for a turn; the wait counts against the deadline."""
        deadline = asyncio.get_running_loop().time() + task.deadline_s
        turns = self._turns.setdefault(job.agent, Turns(self._width(job.agent)))
        try:
            async with asyncio.timeout_at(deadline):
                await turns.take(own=own)
        except TimeoutError:
            return Failed("deadline", f"waited {task.deadline_s:g} s for its turn")
        try:
            self._report(Began(job))
            left_s = deadline - asyncio.get_running_loop().time()
            return await self._run(job, replace(task, deadline_s=left_s))
        finally:
            turns.give()

    async def _run(self, job: Job, task: Task) -> Result | Failed:
        teller = _Teller(job, self._report)
        try:
            async with contextlib.aclosing(self._agents[job.agent].run(task)) as events:
                async for event in events:
                    if isinstance(event, Result) and self._take is not None:
                        await self._take(job, event)
                    if isinstance(event, Result | Failed):
                        return event
                    teller.hear(event)
            return Failed("no-result", "the adapter ended without a result")
        except IoaError as fault:
            return Failed(fault.code, str(fault), retry=False)
        except Exception as fault:  # a stranger's adapter may raise anything; the node goes on
            return Failed("adapter-error", f"{type(fault).__name__}: {fault}"[:2_000])
        finally:
            teller.flush()

    def _count_death(self, job: Job, outcome: Result | Failed) -> int:
        died = isinstance(outcome, Failed) and outcome.code == "worker-died"
        count = self._deaths.pop(job.task, 0) + died
        if count:
            self._deaths[job.task] = count
        while len(self._deaths) > _DEATHS_MAX:
            self._deaths.popitem(last=False)
        return count


def _cancel(running: "asyncio.Task[Result | Failed]") -> None:
    """Once: a second cancel would break into the end of the process."""
    if not running.cancelling():
        running.cancel()


class _Teller:
    """Gathers what an agent says and tells it in one piece, `TOLD_S` after its first word."""

    def __init__(self, job: Job, report: Report) -> None:
        self._job, self._report = job, report
        self._progress: Progress | None = None
        self._text: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, event: Progress | Delta) -> None:
        if isinstance(event, Progress):
            before = self._progress.spent if self._progress else NOTHING
            self._progress = event if event.spent != NOTHING else replace(event, spent=before)
        else:
            self._text.append(event.text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOLD_S, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._report(Told(self._job, self._progress, "".join(self._text)))
            self._progress, self._text = None, []
