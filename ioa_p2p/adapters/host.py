"""The worker process of a Python agent: `python -m ioa_p2p.adapters.host TARGET [SKILLS as JSON]`.

    stdin  ── task | cancel ──> one run at a time ── progress, delta, result | failed ──> stdout
             first line out: {"ready": {"description", "skills"}} or {"failed": code, "message"}

TARGET: `package.module`, `folder/file.py`, either with `:function`. The agent's own prints go to stderr, so that
they cannot spoil a line. The end of stdin means that the node is gone: then this process group ends itself.
"""

import asyncio
import importlib
import inspect
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from ioa_p2p.adapters import lines
from ioa_p2p.adapters.agent import arguments, skills_of
from ioa_p2p.adapters.base import Attachment, Delta, Failed, Progress, Result, Task
from ioa_p2p.adapters.options import plain
from ioa_p2p.errors import AdapterError
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.spending import NOTHING, Allowance, Spent

Function = Callable[..., Any]
LAST_WORDS_S = 1.0  # what a run gets to clean up when the node is gone


class Host:
    """Runs the skills of one agent; writes every line of theirs."""

    def __init__(self, skills: dict[str, tuple[Skill, Function]], output: BinaryIO) -> None:
        self._skills = skills
        self._output, self._writing = output, threading.Lock()
        self._run: asyncio.Task[None] | None = None

    def write(self, line: dict[str, Any]) -> None:
        """One line, whole, from any thread; waits while the node does not read."""
        data = lines.write(line)
        with self._writing:
            self._output.write(data)
            self._output.flush()

    def handle(self, line: dict[str, Any]) -> None:
        """What the node says: a task, or a cancel of the one that runs."""
        match line:
            case {"task": task} if lines.is_object(task):
                self._run = asyncio.create_task(self._answer(task))
            case {"cancel": True} if self._run is not None:
                self._run.cancel()
            case _:
                pass  # a newer node may say more

    async def _answer(self, fields: dict[str, Any]) -> None:
        """Exactly one last line, whatever the agent does."""
        try:
            result = await self._call(_task(fields))
            self.write(_last_line(result, Path(fields["folder"])))
        except asyncio.CancelledError:
            self.write({"failed": "cancelled", "message": "cancelled while it ran"})
        except AdapterError as fault:
            self.write({"failed": "bad-output", "message": str(fault), "retry": False})
        except Exception as fault:
            traceback.print_exc()
            self.write({"failed": "agent-error", "message": f"{type(fault).__name__}: {fault}"})

    async def _call(self, task: Task) -> Result | Failed:
        if task.skill not in self._skills:
            return Failed("unknown-skill", f"this agent has no skill {task.skill!r}", retry=False)
        skill, function = self._skills[task.skill]
        given = arguments(function, task, self._progress)
        if inspect.isasyncgenfunction(function):
            return await self._stream(skill, function(*given))
        if inspect.isgeneratorfunction(function):
            return await self._stream(skill, _in_threads(function(*given)))
        if inspect.iscoroutinefunction(function):
            return _result(skill, await function(*given))
        return _result(skill, await _in_thread(function, *given))

    async def _stream(self, skill: Skill, values: AsyncIterator[Any]) -> Result | Failed:
        text, last = list[str](), None
        async for value in values:
            match value:
                case Progress():
                    self._progress(value.fraction, value.note, value.spent)
                case Delta() | str():
                    text.append(value if isinstance(value, str) else value.text)
                    self.write({"delta": text[-1]})
                case _:
                    last = value
        return _result(skill, "".join(text) if last is None and text else last)

    def _progress(self, fraction: float | None = None, note: str = "", spent: Spent = NOTHING) -> None:
        self.write({"progress": fraction, "note": note} | _spent(spent))


def _result(skill: Skill, value: Any) -> Result | Failed:
    """What the author returned, as outputs by type name."""
    if isinstance(value, Result | Failed):
        return value
    if len(skill.outputs) == 1:
        return Result({skill.outputs[0]: value})
    if lines.is_object(value) and set(value) <= set(skill.outputs):
        return Result(value)
    if value is None:
        return Result({})
    raise AdapterError("bad-output", f"{skill.name} must return a dict with keys of {list(skill.outputs)}")


def _last_line(result: Result | Failed, folder: Path) -> dict[str, Any]:
    if isinstance(result, Failed):
        told = {"failed": result.code, "message": result.message, "retry": result.retry}
    else:
        files = [_file(number, each, folder) for number, each in enumerate(result.attachments)]
        told = {"result": result.outputs, "summary": result.summary, "attachments": files}
    return told | _spent(result.spent)


def _spent(spent: Spent) -> dict[str, Any]:
    amounts = {"tokens": spent.tokens, "money": spent.money, "calls": spent.calls}
    return {"spent": amounts} if spent != NOTHING else {}


def _file(number: int, attachment: Attachment, folder: Path) -> dict[str, str]:
    file = f"out-{number}"
    attachment.write(folder / file)
    return {"name": attachment.name, "media_type": attachment.media_type, "file": file}


def _task(fields: dict[str, Any]) -> Task:
    folder = Path(fields["folder"])
    attachments = [
        Attachment(each["name"], each["media_type"], folder / each["file"]) for each in fields["attachments"]
    ]
    return Task(
        id=bytes.fromhex(fields["id"]),
        key=bytes.fromhex(fields["key"]),
        attempt=fields["attempt"],
        skill=fields["skill"],
        goal=fields["goal"],
        inputs=fields["inputs"],
        attachments=tuple(attachments),
        deadline_s=fields["deadline_s"],
        budget=Allowance(**fields.get("budget", {})),
    )


async def _in_thread(function: Function, *given: Any) -> Any:
    """A thread cannot be cancelled, so a cancel ends the process; the node then ends the group."""
    try:
        return await asyncio.to_thread(function, *given)
    except asyncio.CancelledError:
        os._exit(0)


async def _in_threads(values: Iterator[Any]) -> AsyncIterator[Any]:
    """A plain generator, one step at a time in a thread."""
    end = object()
    while (value := await _in_thread(next, values, end)) is not end:
        yield value


def load(target: str, skills: list[Skill]) -> tuple[str, dict[str, tuple[Skill, Function]]]:
    """Import `target`; its description, and its skills by name. Raises whatever the import raises.

    `skills` (from the node's config) give a plain function its skills.
    """
    place, _, name = target.partition(":")
    module = _import(place)
    if not name:
        return inspect.getdoc(module) or "", skills_of(module)
    function = getattr(module, name)
    marked = {key: found for key, found in skills_of(module).items() if found[1] is function}
    return inspect.getdoc(function) or "", marked or {each.name: (each, function) for each in skills}


def _import(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).absolute()
    sys.path.insert(0, str(path.parent))  # so that the agent finds its neighbours
    module = importlib.import_module(path.stem)
    if module.__file__ is None or not path.samefile(module.__file__):
        raise ImportError(f"a module named {path.stem} exists already; give {path.name} another name")
    return module


def _listen(source: BinaryIO, loop: asyncio.AbstractEventLoop, host: Host) -> None:
    """In a thread of its own, so that the end of the node is noticed even while the agent blocks the loop."""
    for line in source:
        loop.call_soon_threadsafe(host.handle, lines.read(line))
    loop.call_soon_threadsafe(host.handle, {"cancel": True})
    threading.Event().wait(LAST_WORDS_S)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The protocol's own stdin and stdout; the agent gets an empty stdin and prints to stderr."""
    source, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    return source, output


async def _serve(source: BinaryIO, host: Host) -> None:
    threading.Thread(target=_listen, args=(source, asyncio.get_running_loop(), host), daemon=True).start()
    await asyncio.Event().wait()  # until the process ends


def main(arguments: list[str]) -> None:
    source, output = _private_pipes()
    given = [Skill(**each) for each in json.loads(arguments[1])] if len(arguments) > 1 else []
    try:
        description, skills = load(arguments[0], given)
    except Exception as fault:
        traceback.print_exc()
        Host({}, output).write({"failed": "import-failed", "message": f"{type(fault).__name__}: {fault}"})
        return
    host = Host(skills, output)
    told = [plain(skill) for skill, _ in skills.values()]
    host.write({"ready": {"description": description.split("\n\n")[0], "skills": told}})
    asyncio.run(_serve(source, host))


if __name__ == "__main__":
    main(sys.argv[1:])
