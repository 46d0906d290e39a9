"""One contract for every adapter: the same agent in three guises; and what those in processes must do beside.

`make`, `adapter`: all of them. `make_hosted`, `hosted`: those that run the agent in a process.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from ioa_p2p.adapters.base import Adapter, Attachment, Delta, Event, Failed, Progress, Result, Task
from ioa_p2p.adapters.openai import OpenAIAdapter
from ioa_p2p.adapters.process import ProcessAdapter
from ioa_p2p.adapters.python import PythonAdapter
from ioa_p2p.wire import limits
from tests.llm.actor import Actor

AGENTS = Path(__file__).parents[1] / "adapters" / "agents"
SKILLS = "echo talk refuse files family stubborn crash leave large flood noise meet raw endless".split()
BOUND_S = 30.0  # no test waits longer; none measures time


def process(**options: Any) -> Adapter:
    skills = [{"name": f"test.{name}", "outputs": [f"test.{name}"]} for name in SKILLS]
    command = [sys.executable, str(AGENTS / "command.py")]
    return ProcessAdapter("foreign", {"command": command, "skills": skills, "cancel_s": 0.1, **options})


def python(**options: Any) -> Adapter:
    return PythonAdapter("foreign", {"target": str(AGENTS / "module.py"), "cancel_s": 0.1, **options})


Make = Callable[..., Adapter]


def openai(url: str) -> Make:
    skills = [{"name": f"test.{name}", "outputs": [f"test.{name}"]} for name in SKILLS]
    skills[0]["output_schema"] = {"type": "object"}

    def make(cancel_s: float = 0.0, **options: Any) -> Adapter:
        return OpenAIAdapter("foreign", {"url": url, "model": "m", "skills": skills, **options})

    return make


async def made_by(make: Make) -> AsyncIterator[Make]:
    made: list[Adapter] = []

    def make_one(**options: Any) -> Adapter:
        made.append(make(**options))
        return made[-1]

    yield make_one
    for adapter in made:
        await asyncio.wait_for(adapter.aclose(), BOUND_S)


@pytest.fixture(params=["python", "process", "openai"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    async with Actor() as actor:
        guises: dict[str, Make] = {"python": python, "process": process, "openai": openai(actor.url)}
        async for make in made_by(guises[request.param]):
            yield make


@pytest.fixture(params=[python, process], ids=["python", "process"])
async def make_hosted(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    async for make in made_by(request.param):
        yield make


@pytest.fixture
def adapter(make: Make) -> Adapter:
    return make()


@pytest.fixture
def hosted(make_hosted: Make) -> Adapter:
    return make_hosted()


def task(skill: str, goal: str = "", **fields: Any) -> Task:
    return Task(id=b"\x01" * 16, key=b"\x02" * 16, attempt=1, skill=f"test.{skill}", goal=goal, **fields)


def with_bytes(event: Event) -> Event:
    """A result's files are there until the run's end: read while they are."""
    if not isinstance(event, Result):
        return event
    files = tuple(Attachment(file.name, file.media_type, file.data) for file in event.attachments)
    return replace(event, attachments=files)


async def events_of(adapter: Adapter, asked: Task) -> list[Event]:
    async with asyncio.timeout(BOUND_S), contextlib.aclosing(adapter.run(asked)) as events:
        return [with_bytes(event) async for event in events]


async def failure_of(adapter: Adapter, asked: Task) -> Failed:
    *before, last = await events_of(adapter, asked)
    assert isinstance(last, Failed)
    assert not [event for event in before if isinstance(event, Result | Failed)]
    return last


async def works(adapter: Adapter) -> bool:
    return isinstance((await events_of(adapter, task("echo")))[-1], Result)


async def pids_of(events: AsyncIterator[Event]) -> list[int]:
    """A behaviour that ends badly tells its pids first."""
    first = await anext(events)
    assert isinstance(first, Delta)
    pids: list[int] = json.loads(first.text)
    assert all(map(lives, pids[1:]))  # the first may be dead by its own hand
    return pids


def lives(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def all_gone(pids: list[int]) -> bool:
    """A killed process needs a moment to be gone."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BOUND_S):
            while any(map(lives, pids)):
                await asyncio.sleep(0.01)
    return not any(map(lives, pids))


async def test_the_card_names_the_agent_and_its_skills(adapter: Adapter) -> None:
    card = await adapter.describe()
    assert card.name == "foreign"
    assert [skill.name for skill in card.skills] == [f"test.{name}" for name in SKILLS]
    assert card.skills[0].outputs == ("test.echo",)


async def test_a_result_comes_from_what_was_asked(adapter: Adapter) -> None:
    inputs = {"metrics.samples": [{"cpu": [1.5, None, True]}, "ü\n"], "other": [2**63]}
    (last,) = await events_of(adapter, task("echo", 'a "goal"\nof two lines', inputs=inputs))
    assert isinstance(last, Result)
    said = {"goal": 'a "goal"\nof two lines', "inputs": inputs, "skill": "test.echo"}
    assert said.items() <= last.outputs["test.echo"].items()


async def test_an_agent_hears_which_attempt_it_is_and_under_which_key(hosted: Adapter) -> None:
    (last,) = await events_of(hosted, task("echo"))
    assert isinstance(last, Result)
    assert {"attempt": 1, "key": "02" * 16}.items() <= last.outputs["test.echo"].items()


async def test_text_streams_before_the_result(adapter: Adapter) -> None:
    *events, last = await events_of(adapter, task("talk"))
    assert [event for event in events if isinstance(event, Delta)] == [Delta("one "), Delta("two")]
    assert isinstance(last, Result)
    assert last.outputs == {"test.talk": "one two"}


async def test_progress_and_deltas_stream_in_order_before_the_result(hosted: Adapter) -> None:
    assert await events_of(hosted, task("talk")) == [
        Progress(0.25, "a quarter"),
        Delta("one "),
        Delta("two"),
        Progress(None, "who knows"),
        Result({"test.talk": "one two"}, summary="counted"),
    ]


async def test_an_agent_may_refuse_with_a_reason(adapter: Adapter) -> None:
    failed = await failure_of(adapter, task("refuse"))
    assert (failed.message, failed.retry) == ("there is none", False)


async def test_attachments_go_in_and_come_out_byte_for_byte(hosted: Adapter) -> None:
    given = Attachment("every byte.bin", "application/x-test", bytes(range(256)) * 5_000)
    (result,) = await events_of(hosted, task("files", attachments=(given,)))
    assert isinstance(result, Result)
    assert result.attachments == (Attachment("reversed every byte.bin", "application/x-test", given.data[::-1]),)


async def test_an_unknown_skill_is_a_failure(adapter: Adapter) -> None:
    assert (await failure_of(adapter, task("nothing"))).code in ("unknown-skill", "worker-died")


@pytest.mark.parametrize("behaviour", ["family", "stubborn"])
async def test_closing_the_events_ends_the_whole_family_of_processes(hosted: Adapter, behaviour: str) -> None:
    async with asyncio.timeout(BOUND_S):
        events = hosted.run(task(behaviour))
        pids = await pids_of(events)
        await events.aclose()
        assert await all_gone(pids)
    assert await works(hosted)


async def test_cancelling_the_reader_ends_the_whole_family_of_processes(hosted: Adapter) -> None:
    pids: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    async def read() -> None:
        async with contextlib.aclosing(hosted.run(task("family"))) as events:
            pids.set_result(await pids_of(events))
            await anext(events)

    reading = asyncio.create_task(read())
    async with asyncio.timeout(BOUND_S):
        told = await pids
        reading.cancel()
        await asyncio.wait([reading])
        assert reading.cancelled()
        assert await all_gone(told)


async def test_a_second_cancel_does_not_save_the_processes(hosted: Adapter) -> None:
    events = hosted.run(task("stubborn"))
    async with asyncio.timeout(BOUND_S):
        pids = await pids_of(events)
        closing = asyncio.ensure_future(events.aclose())
        for _ in range(3):
            await asyncio.sleep(0)
            closing.cancel()
        await asyncio.wait([closing])
        assert await all_gone(pids)


async def test_a_run_past_its_deadline_fails_and_its_processes_are_gone(hosted: Adapter) -> None:
    await hosted.describe()
    async with asyncio.timeout(BOUND_S), contextlib.aclosing(hosted.run(task("family", deadline_s=1.0))) as events:
        pids = await pids_of(events)
        last = [event async for event in events][-1]
    assert isinstance(last, Failed)
    assert last.code == "deadline"
    assert await all_gone(pids)


async def test_a_killed_worker_is_named_and_leaves_no_children(hosted: Adapter) -> None:
    async with asyncio.timeout(BOUND_S), contextlib.aclosing(hosted.run(task("crash"))) as events:
        pids = await pids_of(events)
        last = [event async for event in events][-1]
    assert isinstance(last, Failed)
    assert last.code == "worker-died"
    assert "signal 9" in last.message
    assert await all_gone(pids)
    assert await works(hosted)


async def test_a_worker_that_leaves_is_quoted(hosted: Adapter) -> None:
    failed = await failure_of(hosted, task("leave"))
    assert failed.code == "worker-died"
    assert "exit code 3" in failed.message
    assert "my last words" in failed.message


@pytest.mark.parametrize("behaviour", ["large", "endless"])
async def test_a_line_that_is_too_long_ends_the_run(adapter: Adapter, behaviour: str) -> None:
    assert (await failure_of(adapter, task(behaviour))).code == "oversized"
    assert await works(adapter)


async def test_endless_output_ends_the_run(hosted: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADAPTER_EVENTS_MAX", 500)
    *before, last = await events_of(hosted, task("flood"))
    assert isinstance(last, Failed)
    assert last.code == "flooded"
    assert len(before) == 500
    assert await works(hosted)


async def test_many_bytes_end_the_run(hosted: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADAPTER_OUTPUT_BYTES_MAX", 1_000)
    *before, last = await events_of(hosted, task("flood"))
    assert isinstance(last, Failed)
    assert last.code == "flooded"
    assert len(before) < 100


@pytest.mark.parametrize("line", ["hello, I am a program", '{"result": 1}', "\xff\xfe"])
async def test_nonsense_ends_the_run(adapter: Adapter, line: str) -> None:
    assert (await failure_of(adapter, task("raw", line))).code in ("bad-output", "unreachable")
    assert await works(adapter)


async def test_an_attachment_outside_the_run_is_not_read(hosted: Adapter) -> None:
    file = {"name": "a", "media_type": "t", "file": "/etc/passwd"}
    line = json.dumps({"result": {}, "attachments": [file]})
    assert (await failure_of(hosted, task("raw", line))).code == "bad-output"


async def test_a_goal_that_json_cannot_say_is_refused_before_the_agent_sees_it(adapter: Adapter) -> None:
    failed = await failure_of(adapter, task("echo", inputs={"a": [b"bytes"]}))
    assert failed.code == "bad-input"


async def test_noise_on_stderr_harms_nothing(hosted: Adapter) -> None:
    assert await events_of(hosted, task("noise")) == [Result({"test.noise": "quiet"})]


async def test_as_many_runs_as_allowed_go_at_the_same_time(make: Make, tmp_path: Path) -> None:
    adapter = make(concurrency=3)
    asked = [Task(bytes([n]), b"", 1, "test.meet", f"3 {tmp_path}") for n in range(3)]
    runs = await asyncio.gather(*(events_of(adapter, each) for each in asked))
    assert [run[-1].outputs for run in runs if isinstance(run[-1], Result)] == [{"test.meet": "met"}] * 3


async def test_a_run_beyond_the_allowed_waits_its_turn(make_hosted: Make, tmp_path: Path) -> None:
    adapter = make_hosted(concurrency=1)
    async with asyncio.timeout(BOUND_S):
        first = adapter.run(task("family"))
        await pids_of(first)
        second = asyncio.ensure_future(events_of(adapter, task("meet", f"1 {tmp_path}")))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not os.listdir(tmp_path)
        await first.aclose()
        assert await second == [Result({"test.meet": "met"})]


async def test_a_crash_harms_no_other_run(make_hosted: Make, tmp_path: Path) -> None:
    adapter = make_hosted(concurrency=2)
    meeting = asyncio.ensure_future(events_of(adapter, task("meet", f"2 {tmp_path}")))
    assert (await failure_of(adapter, task("crash"))).code == "worker-died"
    (tmp_path / "second").touch()
    assert await meeting == [Result({"test.meet": "met"})]


async def test_aclose_ends_runs_and_processes_and_may_be_called_again(hosted: Adapter) -> None:
    events = hosted.run(task("family"))
    async with asyncio.timeout(BOUND_S):
        pids = await pids_of(events)
        await hosted.aclose()
        assert await all_gone(pids)
        assert isinstance([event async for event in events][-1], Failed)
        await hosted.aclose()
    assert (await failure_of(hosted, task("echo"))).code == "closed"


async def test_nothing_is_left_after_a_clean_close(
    make_hosted: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    adapter, before = make_hosted(), set(psutil.Process().children(recursive=True))
    await adapter.describe()
    assert await works(adapter)
    await adapter.aclose()
    left = set(psutil.Process().children(recursive=True)) - before
    assert await all_gone([process.pid for process in left])
    assert not os.listdir(tmp_path)
