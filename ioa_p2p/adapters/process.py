"""The `process` adapter: any command, one process a run.

    lines = "json":  task line ──> stdin; stdout ──> progress, delta, result | failed    (see `lines`)
    lines = "text":  the goal stands in the command; each line of stdout is a delta, all of them the result

    [agents.spell]
    adapter = "process"
    command = ["python3", "spell.py", "--text", "{goal}"]
    lines = "text"
    skills = [{ name = "text.spell", outputs = ["text.corrected"], description = "Correct the spelling." }]

`{goal}` and `{skill}` are put into an argument as they are; no shell ever sees them. In text mode inputs that are
text go to stdin, exit code 0 is success and any other Failed('exit-code').
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ioa_p2p.adapters import options
from ioa_p2p.adapters.base import Delta, Event, Failed, Result, Task
from ioa_p2p.adapters.child import Child
from ioa_p2p.adapters.run import Run
from ioa_p2p.adapters.scratch import Scratch
from ioa_p2p.adapters.stage import Stage
from ioa_p2p.errors import AdapterError, UsageError
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions(options.ProcessOptions):
    """command: program and arguments. lines: what its stdout holds."""

    command: tuple[str, ...] = ()
    lines: Literal["json", "text"] = "json"


class ProcessAdapter:
    """One agent behind a command. Every run has its own process, so a crash harms no other run."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self._name = name
        self._options = options.read(ProcessOptions, name, table)
        if not self._options.command:
            raise UsageError("bad-option", f"agents.{name}: no command", 'command = ["program", "argument", ...]')
        if self._options.lines == "text" and any(len(skill.outputs) != 1 for skill in self._options.skills):
            raise UsageError(
                "bad-option", f"agents.{name}: text is one output", 'outputs = ["one.type"] for each skill'
            )
        self._stage = Stage(self._spawn, self._options.concurrency, self._options.cancel_s, keep=False, run=self._run)

    async def describe(self) -> Card:
        """From the table alone. Raises AdapterError('bad-card' | 'no-skills')."""
        return options.card(self._name, self._options, {})

    def run(self, task: Task) -> AsyncGenerator[Event, None]:
        return self._stage.run(task)

    async def aclose(self) -> None:
        await self._stage.aclose()

    async def _spawn(self, task: Task | None) -> Child:
        assert task is not None, "nothing is kept warm"
        command = fill(self._options.command, task)
        return await Child.spawn(command, self._options.working_folder, self._options.environment)

    def _run(self, child: Child, scratch: Scratch, deadline: float) -> Run:
        if self._options.lines == "json":
            return Run(child, scratch, deadline)
        return TextRun(child, scratch, deadline, {skill.name: skill.outputs[0] for skill in self._options.skills})


class TextRun(Run):
    """Plain text out: every line a delta, the whole the result. `outputs`: skill name -> output type."""

    def __init__(self, child: Child, scratch: Scratch, deadline: float, outputs: Mapping[str, str]) -> None:
        super().__init__(child, scratch, deadline)
        self._outputs, self._output, self._text = outputs, "", ""

    async def _start(self, task: Task) -> None:
        if task.skill not in self._outputs:
            raise AdapterError("unknown-skill", f"this agent has no skill {task.skill!r}")
        self._output = self._outputs[task.skill]
        texts = [value for values in task.inputs.values() for value in values if isinstance(value, str)]
        self._child.send("\n".join(texts).encode("utf-8", "replace"))
        self._child.close_stdin()

    async def _event(self) -> Event:
        line = (await self._read()).decode("utf-8", "replace")
        if not line:
            return await self._end()
        self._text += line
        if len(self._text) > limits.ADAPTER_LINE_BYTES_MAX:
            raise AdapterError("oversized", f"a text of more than {limits.ADAPTER_LINE_BYTES_MAX} characters")
        return Delta(line)

    async def _end(self) -> Event:
        how = await self._child.death()
        if self._child.exit_code is None or self._child.exit_code < 0:
            raise AdapterError("worker-died", how)
        self.ended = True
        return Failed("exit-code", how) if self._child.exit_code else Result({self._output: self._text.rstrip("\n")})

    async def cancel(self, grace_s: float) -> None:
        """Nothing to ask: it does not read our lines."""


def fill(command: Sequence[str], task: Task) -> list[str]:
    """Put the task's words into the arguments. A goal comes from a peer, so it may not become an option.

    Raises AdapterError('bad-input').
    """
    if "{goal}" in command and task.goal.startswith("-"):
        raise AdapterError("bad-input", "a goal that begins with '-' could be taken for an option")
    words = {"{goal}": task.goal, "{skill}": task.skill}
    return [_replace(argument, words) for argument in command]


def _replace(argument: str, words: Mapping[str, str]) -> str:
    """In one pass, so that a goal that says "{skill}" stays as it is."""
    return re.sub(r"\{goal\}|\{skill\}", lambda found: words[found[0]], argument)
