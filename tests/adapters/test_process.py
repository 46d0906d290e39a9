"""What only the process adapter does: plain text, words put into arguments, exit codes."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ioa_p2p.adapters.base import Delta, Event, Failed, Result, Task
from ioa_p2p.adapters.process import ProcessAdapter, fill
from ioa_p2p.errors import AdapterError, UsageError
from ioa_p2p.wire import limits

BOUND_S = 30.0
SKILLS = [{"name": "text.make", "outputs": ["text.made"]}]
Make = Callable[..., ProcessAdapter]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[ProcessAdapter] = []

    def python(code: str, *arguments: str, **options: Any) -> ProcessAdapter:
        table = {
            "command": [sys.executable, "-c", code, *arguments],
            "lines": "text",
            "skills": SKILLS,
            "cancel_s": 0.2,
        }
        made.append(ProcessAdapter("cli", {**table, **options}))
        return made[-1]

    yield python
    for adapter in made:
        await asyncio.wait_for(adapter.aclose(), BOUND_S)


def task(goal: str = "", skill: str = "text.make", **fields: Any) -> Task:
    return Task(b"\x01" * 16, b"\x02" * 16, 1, skill, goal, **fields)


async def events_of(adapter: ProcessAdapter, asked: Task) -> list[Event]:
    async with asyncio.timeout(BOUND_S), contextlib.aclosing(adapter.run(asked)) as events:
        return [event async for event in events]


async def test_lines_of_text_are_deltas_and_all_of_them_the_result(make: Make) -> None:
    adapter = make("print('one'); print('two ü', end='')")
    assert await events_of(adapter, task()) == [Delta("one\n"), Delta("two ü"), Result({"text.made": "one\ntwo ü"})]


async def test_text_inputs_go_to_stdin(make: Make) -> None:
    adapter = make("import sys; print(sys.stdin.read().upper())")
    inputs = {"text.a": ["one", "two"], "other": [{"not": "text"}]}
    assert (await events_of(adapter, task(inputs=inputs)))[-1] == Result({"text.made": "ONE\nTWO"})


async def test_the_goal_is_one_argument_whatever_it_holds(make: Make) -> None:
    adapter = make("import sys; print(ascii(sys.argv[1:]))", "{goal}", "--skill={skill}")
    nasty = "; rm -rf / $(id) '\" {skill}\n"
    (*_, result) = await events_of(adapter, task(nasty))
    assert result == Result({"text.made": ascii([nasty, "--skill=text.make"])})


@pytest.mark.parametrize("goal", ["-rf", "--help"])
def test_a_goal_does_not_become_an_option(goal: str) -> None:
    with pytest.raises(AdapterError) as caught:
        fill(["tool", "{goal}"], task(goal))
    assert caught.value.code == "bad-input"
    assert fill(["tool", "--text={goal}"], task(goal)) == ["tool", f"--text={goal}"]


async def test_an_exit_code_is_a_failure_with_the_last_words(make: Make) -> None:
    (failed,) = await events_of(make("import sys; sys.exit('no paper left')"), task())
    assert failed == Failed("exit-code", "exit code 1: no paper left")


async def test_text_of_the_wrong_encoding_is_shown_as_well_as_can_be(make: Make) -> None:
    adapter = make(r"import sys; sys.stdout.buffer.write(b'a\xff\n')")
    assert await events_of(adapter, task()) == [Delta("a\ufffd\n"), Result({"text.made": "a\ufffd"})]


async def test_too_much_text_ends_the_run(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = make("while True: print('x' * 999)")
    monkeypatch.setattr(limits, "ADAPTER_LINE_BYTES_MAX", 50_000)
    last = (await events_of(adapter, task()))[-1]
    assert isinstance(last, Failed)
    assert last.code == "oversized"


async def test_a_killed_command_is_a_death_not_an_exit(make: Make) -> None:
    (failed,) = await events_of(make("import os; os.kill(os.getpid(), 9)"), task())
    assert isinstance(failed, Failed)
    assert failed.code == "worker-died"


async def test_an_unknown_skill_is_refused(make: Make) -> None:
    (failed,) = await events_of(make("print()"), task(skill="text.other"))
    assert isinstance(failed, Failed)
    assert failed.code == "unknown-skill"


@pytest.mark.parametrize("goal", ["a\0b", "x" * 200_000])
async def test_a_goal_that_no_command_can_take_is_a_failure(make: Make, goal: str) -> None:
    (failed,) = await events_of(make("print()", "{goal}"), task(goal))
    assert isinstance(failed, Failed)
    assert failed.code == "cannot-start"


async def test_a_command_that_is_not_installed_is_named(make: Make) -> None:
    (failed,) = await events_of(make("", command=["no-such-command-anywhere"]), task())
    assert isinstance(failed, Failed)
    assert failed.code == "cannot-start"
    assert "no-such-command-anywhere" in failed.message


async def test_a_command_may_finish_its_work_after_its_result(make: Make, tmp_path: Any) -> None:
    """It is asked to leave by the end of its stdin before anything is signalled."""
    code = (
        "import sys; sys.stdin.readline(); print('{\"result\": {}}', flush=True); sys.stdin.read();"
        f"open({str(tmp_path / 'tidied')!r}, 'w').close()"
    )
    adapter = make(code, lines="json", cancel_s=5.0)
    assert await events_of(adapter, task()) == [Result({})]
    assert [file.name for file in tmp_path.iterdir()] == ["tidied"]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ({}, "bad-option"),
        ({"command": "not a list"}, "bad-option"),
        ({"command": ["a"], "lines": "xml"}, "bad-option"),
        ({"command": ["a"], "lines": "text", "skills": [{"name": "a.b"}]}, "bad-option"),
        ({"command": ["a"], "shell": True}, "unknown-option"),
    ],
)
def test_a_wrong_table_is_refused_with_a_hint(table: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        ProcessAdapter("cli", table)
    assert caught.value.code == code
    assert caught.value.hint


async def test_a_command_without_skills_cannot_be_described() -> None:
    with pytest.raises(AdapterError) as caught:
        await ProcessAdapter("cli", {"command": ["true"]}).describe()
    assert caught.value.code == "no-skills"
