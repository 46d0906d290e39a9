"""The `python` adapter: any callable or generator, in a warm worker process, so that no import stalls the node.

    describe ──> [adapters.host in a process: import, tell the card] ── kept warm ──> run ── run ── ...

    [agents.counter]
    adapter = "python"
    target = "counter.py"         # or "package.module", each with or without ":function"

See `adapters.agent` for what such a module looks like.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioa_p2p.adapters import lines, options
from ioa_p2p.adapters.base import Event, Task
from ioa_p2p.adapters.child import Child
from ioa_p2p.adapters.stage import Stage
from ioa_p2p.errors import AdapterError, UsageError
from ioa_p2p.wire.records import Card

_PACKAGE_PARENT = str(Path(__file__).parents[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonOptions(options.ProcessOptions):
    """target: what to import. A relative file is looked up in `folder`."""

    target: str = ""


class PythonAdapter:
    """One agent of Python functions; see `stage` for how its processes are kept, and how they end."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self._name = name
        self._options = options.read(PythonOptions, name, table)
        if not self._options.target:
            raise UsageError(
                "bad-option", f"agents.{name}: no target", 'target = "file.py" or "package.module:function"'
            )
        self._told: dict[str, Any] = {}
        self._stage = Stage(self._spawn, self._options.concurrency, self._options.cancel_s, keep=True)

    async def describe(self) -> Card:
        """Raises AdapterError('no-such-file' | 'import-failed' | 'cannot-start' | 'worker-died' | 'deadline' |
        'bad-card' | 'no-skills')."""
        if not self._told:
            if missing := missing_file({"target": self._options.target, "folder": self._options.folder}):
                hint = f"correct target in [agents.{self._name}]"
                raise AdapterError("no-such-file", f"no such file: {missing}", hint)
            await self._stage.warm()
        return options.card(self._name, self._options, self._told)

    def run(self, task: Task) -> AsyncGenerator[Event, None]:
        return self._stage.run(task)

    async def aclose(self) -> None:
        await self._stage.aclose()

    async def _spawn(self, task: Task | None) -> Child:
        child = await Child.spawn(self._command(), self._options.working_folder, self._environment())
        try:
            async with asyncio.timeout(self._options.start_s):
                self._told = await _ready(child)
        except BaseException as fault:
            await child.stop(0)
            if isinstance(fault, TimeoutError):
                raise AdapterError(
                    "deadline", f"not imported within {self._options.start_s:g} s", "raise start_s"
                ) from None
            raise
        return child

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "ioa_p2p.adapters.host", self._options.target]
        skills = [options.plain(each) for each in self._options.skills]
        return [*command, json.dumps(skills)] if skills else command

    def _environment(self) -> dict[str, str]:
        """The worker must find the same ioa_p2p as the node."""
        environment = self._options.environment
        path = environment.get("PYTHONPATH")
        return {**environment, "PYTHONPATH": os.pathsep.join([*([path] if path else []), _PACKAGE_PARENT])}


def missing_file(options: Mapping[str, Any]) -> Path | None:
    """The file that a Python agent's `target` names, if the folder has none. Modules are looked for by Python alone."""
    place = str(options.get("target", "")).partition(":")[0]
    folder = Path(str(options.get("folder", "."))).expanduser().absolute()
    return folder / place if place.endswith(".py") and folder.is_dir() and not (folder / place).exists() else None


async def _ready(child: Child) -> dict[str, Any]:
    """The host's first line: what the agent tells of itself."""
    line = await child.line()
    if not line.endswith(b"\n"):
        raise AdapterError("worker-died", await child.death(), "the end of its stderr is above")
    match lines.read(line):
        case {"ready": told} if lines.is_object(told):
            return told
        case {"failed": str() as code, "message": str() as message}:
            raise AdapterError(code[:64], message[:2_000], "import it by hand to see the whole error")
        case _:
            raise AdapterError("bad-output", "its first line is not ready")
