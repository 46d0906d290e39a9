"""What a stranger's adapter hands over, on its way to the team: whatever it is, the task ends and is told once."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ioa_p2p.adapters.base import Attachment, Delta, Event, Failed, Progress, Result, Task
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.node.jobs import Jobs
from ioa_p2p.team.commands import TaskDone, TaskFailed, TaskProgress
from ioa_p2p.team.events import StartTask
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.step import TaskSpec
from ioa_p2p.wire.team import Report

WAIT_S = 20.0
TEAM, TASK = b"t" * 16, b"i" * 16
SPEC = TaskSpec(TASK, TASK, bytes(32), "odd", "odd.do", "goal", (), "pure", 2_000_000_000)
DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]


class Odd:
    """An adapter that says what it is told to."""

    def __init__(self, *events: Any) -> None:
        self._events = events

    async def describe(self) -> Card:
        return Card("odd")

    async def run(self, task: Task) -> AsyncGenerator[Event, None]:
        for event in self._events:
            yield event

    async def aclose(self) -> None: ...


class Teams:
    """Hears the commands of the jobs; a driver as far as Jobs and Blobs need one."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.ended = asyncio.Event()

    def command(self, command: Any) -> None:
        self.told.append(command)
        if isinstance(command, TaskDone | TaskFailed):
            self.ended.set()


async def told_of(*events: Any) -> list[Any]:
    teams: Any = Teams()
    jobs = Jobs(teams, Blobs(teams, lambda _: []), {"odd": Odd(*events)}, {}, lambda: None)
    jobs.start(StartTask(TEAM, SPEC, (), 60.0))
    async with asyncio.timeout(WAIT_S):
        await teams.ended.wait()
    await jobs.aclose()
    return teams.told


@pytest.mark.parametrize(
    "result",
    [
        Result({"n": 2**70}),
        Result({"deep": DEEP}),
        Result({"object": object()}),
        Result({"half": "\ud800"}),
        Result({"x" * 65: "y" * limits.TASK_VALUE_BYTES_MAX}),
        Result({}, tuple(Attachment(f"{n}", "text/plain", b"") for n in range(limits.TASK_BLOBS_MAX + 1))),
        Result("not a map"),  # type: ignore[arg-type]
        Result({}, (Attachment("\ud800", "text/plain", b""),)),
        Result(None, None),  # type: ignore[arg-type]
        "not an event",
        None,
    ],
)
async def test_a_result_no_peer_would_read_fails_the_task_with_a_reason(result: Any) -> None:
    last = (await told_of(result))[-1]
    assert isinstance(last, TaskFailed)
    codec.decode(codec.encode(Report(TEAM, TASK, 1, "failed", note=last.reason)), Report)


@pytest.mark.parametrize("end", [Failed("x" * 500, "\ud800" * 500), Result({}, summary="\ud800" * 5_000)])
async def test_what_an_agent_says_reaches_the_team_as_text_that_can_be_sent(end: Any) -> None:
    for event in await told_of(Progress(0.5, "\ud800" * 500), Delta("\ud800\x1b[2J" * 500), end):
        note = event.summary if isinstance(event, TaskDone) else event.note if isinstance(event, TaskProgress) else ""
        reason = event.reason if isinstance(event, TaskFailed) else ""
        codec.encode((note, reason))
        assert len(note) <= limits.SUMMARY_CHARS_MAX
        assert len(reason) <= limits.REASON_CHARS_MAX
