"""The author's side of the python adapter: every kind of function, every kind of answer; and how its process lives."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ioa_p2p.adapters import stage
from ioa_p2p.adapters.base import Attachment, Delta, Event, Failed, Progress, Result, Task
from ioa_p2p.adapters.python import PythonAdapter
from ioa_p2p.errors import AdapterError, UsageError
from ioa_p2p.wire import limits

BOUND_S = 30.0
HEAD = "from ioa_p2p.adapters.agent import Attachment, Delta, Failed, Progress, Result, skill\n"

KINDS = HEAD + dedent('''
    """Knows every way to write a skill.

    And more lines that are not its description.
    """
    import asyncio
    import os

    print("a print at import harms nothing")

    @skill("plain.one", outputs=["text.a"])
    def plain_one(task, progress):
        """The docstring describes it."""
        progress(0.5, "half")
        print("a print harms nothing")
        return task.goal

    @skill("async.one", outputs=["text.a"], description="Described.", effect="once", tags=["t"], examples=["e"])
    async def async_one(task):
        await asyncio.sleep(0)
        return [task.goal, task.attempt]

    @skill("none.taken", outputs=["text.a"])
    def none_taken():
        return {"a": "dict is the value of a single output"}

    @skill("many.out", outputs=["text.a", "text.b"])
    def many_out(task):
        return {"text.a": 1, "text.b": 2}

    @skill("many.wrong", outputs=["text.a", "text.b"])
    def many_wrong(task):
        return {"text.a": 1, "text.c": 2}

    @skill("nothing.out")
    def nothing_out(task):
        pass

    @skill("text.stream", outputs=["text.a"])
    async def text_stream(task):
        yield "one "
        yield Delta("two")
        yield Progress(0.5)

    @skill("value.stream", outputs=["text.a"])
    def value_stream(task):
        yield "thinking"
        yield 42

    @skill("whole.result", outputs=["text.a"])
    def whole_result(task):
        return Result({"text.a": 1}, (Attachment("a.txt", "text/plain", b"bytes"),), "in short")

    @skill("says.no")
    def says_no(task):
        return Failed("not-today", "ask tomorrow", retry=False)

    @skill("raises")
    async def raises(task):
        raise KeyError("lost")

    @skill("not.json", outputs=["text.a"])
    def not_json(task):
        return object()

    @skill("process.id", outputs=["text.a"])
    def process_id(task):
        return os.getpid()

    @skill("cleans.up", outputs=["text.a"])
    async def cleans_up(task, progress):
        try:
            progress(None, "ready")
            await asyncio.sleep(600)
        finally:
            open(task.goal, "w").close()

    @skill("blocks", outputs=["text.a"])
    async def blocks(task, progress):
        import time
        progress(None, "blocks from now on")
        time.sleep(600)
''')  # fmt: skip

Make = Callable[..., PythonAdapter]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[PythonAdapter] = []

    def make_one(source: str = KINDS, **options: Any) -> PythonAdapter:
        file = tmp_path / "written.py"
        file.write_text(source)
        made.append(PythonAdapter("author", {"target": str(file), "cancel_s": 0.2, **options}))
        return made[-1]

    yield make_one
    for adapter in made:
        await asyncio.wait_for(adapter.aclose(), BOUND_S)


def task(skill: str, goal: str = "goal", **fields: Any) -> Task:
    return Task(b"\x01" * 16, b"\x02" * 16, 3, skill, goal, **fields)


def with_bytes(event: Event) -> Event:
    """A result's files are there until the run's end: read while they are."""
    if not isinstance(event, Result):
        return event
    files = tuple(Attachment(file.name, file.media_type, file.data) for file in event.attachments)
    return replace(event, attachments=files)


async def events_of(adapter: PythonAdapter, asked: Task) -> list[Event]:
    async with asyncio.timeout(BOUND_S), contextlib.aclosing(adapter.run(asked)) as events:
        return [with_bytes(event) async for event in events]


async def test_every_kind_of_function_and_answer_works(make: Make) -> None:
    adapter = make()
    results: dict[str, list[Event]] = {
        "plain.one": [Progress(0.5, "half"), Result({"text.a": "goal"})],
        "async.one": [Result({"text.a": ["goal", 3]})],
        "none.taken": [Result({"text.a": {"a": "dict is the value of a single output"}})],
        "many.out": [Result({"text.a": 1, "text.b": 2})],
        "nothing.out": [Result({})],
        "text.stream": [Delta("one "), Delta("two"), Progress(0.5), Result({"text.a": "one two"})],
        "value.stream": [Delta("thinking"), Result({"text.a": 42})],
        "whole.result": [Result({"text.a": 1}, (Attachment("a.txt", "text/plain", b"bytes"),), "in short")],
        "says.no": [Failed("not-today", "ask tomorrow", retry=False)],
        "raises": [Failed("agent-error", "KeyError: 'lost'")],
        "unheard.of": [Failed("unknown-skill", "this agent has no skill 'unheard.of'", retry=False)],
    }
    for name, wanted in results.items():
        assert await events_of(adapter, task(name)) == wanted, name


@pytest.mark.parametrize(("name", "words"), [("many.wrong", "keys of"), ("not.json", "not a JSON value")])
async def test_an_answer_of_the_wrong_shape_says_what_is_wrong(make: Make, name: str, words: str) -> None:
    (failed,) = await events_of(make(), task(name))
    assert isinstance(failed, Failed)
    assert failed.code == "bad-output"
    assert words in failed.message


async def test_the_card_comes_from_the_code(make: Make) -> None:
    card = await make().describe()
    assert (card.name, card.version) == ("author", "1")
    skills = {skill.name: skill for skill in card.skills}
    assert skills["plain.one"].description == "The docstring describes it."
    one = skills["async.one"]
    assert (one.description, one.effect, one.tags, one.examples) == ("Described.", "once", ("t",), ("e",))


async def test_the_description_is_the_first_paragraph_of_the_module(make: Make) -> None:
    card = await make('"""Says it.\n\nNot this."""\n' + KINDS).describe()
    assert card.description == "Says it."


async def test_the_table_overrides_the_card(make: Make) -> None:
    adapter = make(description="From the table.", version="7")
    card = await adapter.describe()
    assert (card.description, card.version) == ("From the table.", "7")


async def test_a_plain_function_gets_its_skills_from_the_table(make: Make, tmp_path: Path) -> None:
    skills = [{"name": "text.shout", "outputs": ["text.loud"], "description": "Shout."}]
    (tmp_path / "written.py").write_text("def shout(task):\n    return task.goal.upper()\n")
    adapter = make("def shout(task):\n    return task.goal.upper()\n", skills=skills)
    adapter = PythonAdapter("author", {"target": str(tmp_path / "written.py") + ":shout", "skills": skills})
    async with contextlib.aclosing(adapter):
        assert [skill.name for skill in (await adapter.describe()).skills] == ["text.shout"]
        assert await events_of(adapter, task("text.shout")) == [Result({"text.loud": "GOAL"})]


async def test_a_named_function_is_the_only_skill(tmp_path: Path) -> None:
    (tmp_path / "written.py").write_text(KINDS)
    adapter = PythonAdapter("author", {"target": "written.py:async_one", "folder": str(tmp_path)})
    async with contextlib.aclosing(adapter):
        assert [skill.name for skill in (await adapter.describe()).skills] == ["async.one"]


async def test_a_process_serves_run_after_run_until_it_is_lost(make: Make) -> None:
    adapter = make()
    first, second = [await events_of(adapter, task("process.id")) for _ in range(2)]
    assert first == second
    assert isinstance(first[0], Result)
    os.kill(first[0].outputs["text.a"], signal.SIGKILL)  # between runs
    last = (await events_of(adapter, task("process.id")))[-1]
    if isinstance(last, Failed):  # its end was not known yet
        assert last.code == "worker-died"
        last = (await events_of(adapter, task("process.id")))[-1]
    assert isinstance(last, Result)
    assert last != first[0]


async def test_a_cancelled_async_skill_cleans_up_and_its_process_stays(make: Make, tmp_path: Path) -> None:
    adapter = make(cancel_s=5.0)
    (before,) = await events_of(adapter, task("process.id"))
    events = adapter.run(task("cleans.up", str(tmp_path / "cleaned")))
    async with asyncio.timeout(BOUND_S):
        assert await anext(events) == Progress(None, "ready")
        await events.aclose()
    assert "cleaned" in os.listdir(tmp_path)
    assert await events_of(adapter, task("process.id")) == [before]


async def test_a_node_that_is_gone_takes_its_agents_with_it(make: Make) -> None:
    """The worker of a node killed by -9 sees the end of its stdin, even while the agent blocks its loop."""
    adapter = make()
    events = adapter.run(task("blocks"))
    async with asyncio.timeout(BOUND_S):
        assert isinstance(await anext(events), Progress)
        (child,) = adapter._stage._busy
        child.close_stdin()  # all that the worker sees of it
        last = [event async for event in events][-1]
    assert isinstance(last, Failed)
    assert "signal 9" in last.message


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        ("import no_such_library", "import-failed", "no_such_library"),
        ("def broken(:", "import-failed", "SyntaxError"),
        ("raise SystemExit(3)", "worker-died", "exit code 3"),
        ("import os; os._exit(4)", "worker-died", "exit code 4"),
        ("x = 1", "no-skills", "no skill"),
        (HEAD + "@skill('Bad Name')\ndef f(): pass", "bad-card", "skills"),
        (HEAD + "@skill('a.b', description='x' * 30_000)\ndef f(): pass", "bad-card", "length"),
        (HEAD + "for n in range(99):\n    globals()[f'f{n}'] = skill(f's{n}')(lambda: 0)", "bad-card", "length"),
    ],
    ids=["library", "syntax", "exit", "hard exit", "no skills", "bad name", "long text", "many skills"],
)
async def test_an_agent_that_cannot_come_up_says_why(make: Make, source: str, code: str, words: str) -> None:
    with pytest.raises(AdapterError) as caught:
        await make(source).describe()
    assert caught.value.code == code
    assert words in str(caught.value)
    assert caught.value.hint


async def test_an_import_that_hangs_is_given_up(make: Make) -> None:
    with pytest.raises(AdapterError) as caught:
        await make("import time; time.sleep(600)", start_s=0.3).describe()
    assert caught.value.code == "deadline"


async def test_a_missing_file_or_function_is_named(tmp_path: Path) -> None:
    for target, code in (
        ("missing.py", "no-such-file"),
        ("json:no_such_function", "import-failed"),
        ("no.such.module", "import-failed"),
    ):
        adapter = PythonAdapter("author", {"target": target, "folder": str(tmp_path)})
        with pytest.raises(AdapterError) as caught:
            await adapter.describe()
        assert caught.value.code == code
        await adapter.aclose()


async def test_a_file_named_like_another_module_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(KINDS)
    adapter = PythonAdapter("author", {"target": str(tmp_path / "json.py")})
    with pytest.raises(AdapterError) as caught:
        await adapter.describe()
    assert "another name" in str(caught.value)
    await adapter.aclose()


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    adapter = PythonAdapter("author", {"target": "a.py", "folder": str(tmp_path / "nowhere")})
    with pytest.raises(AdapterError) as caught:
        await adapter.describe()
    assert caught.value.code == "cannot-start"
    assert "nowhere" in caught.value.hint


@pytest.mark.parametrize(
    ("table", "code", "words"),
    [
        ({}, "bad-option", "no target"),
        ({"target": "a", "tarket": "b"}, "unknown-option", "tarket"),
        ({"target": 5}, "bad-option", "str"),
        ({"target": "a", "concurrency": 0}, "bad-option", "concurrency"),
        ({"target": "a", "concurrency": limits.ADAPTER_CONCURRENCY_MAX + 1}, "bad-option", "concurrency"),
        ({"target": "a", "cancel_s": 60}, "bad-option", "cancel_s"),
        ({"target": "a", "skills": [{"name": "Not A Name"}]}, "bad-option", "skills"),
        ({"target": "a", "env": {"A": 1}}, "bad-option", "env"),
    ],
)
def test_a_wrong_table_is_refused_with_a_hint(table: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        PythonAdapter("author", table)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert caught.value.hint


async def test_a_process_that_keeps_dying_is_started_again_ever_later(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def spawn(asked: Task | None) -> Any:
        raise AdapterError("worker-died", "at once")

    async def no_sleep(seconds: float) -> None:
        waits.append(round(max(0.0, seconds), 1))

    place = stage.Stage(spawn, 1, 0.1, keep=True)
    monkeypatch.setattr(stage.asyncio, "sleep", no_sleep)
    for _ in range(9):
        failures = [event async for event in place.run(task("a"))]
        assert failures == [Failed("worker-died", "at once")]
    assert waits == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
