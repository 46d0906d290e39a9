"""A model, served on loopback, that plays the test agent of tests/adapters/agents: each skill one behaviour."""

import asyncio
import itertools
import json
import re
from pathlib import Path
from typing import Any

from ioa_p2p.llm.scripted import Turn
from tests.llm.server import Raw, Server, Status, event


class Actor(Server):
    """Endless: it has a turn for every request."""

    async def _play(self, turn: Any, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        self.unexpected = 0
        system, user = (message["content"] for message in body["messages"])
        found = re.search(r"Your skill is test\.(\w+):", system)
        assert found, system
        return await super()._play(await act(found[1], user), body, writer)


async def act(skill: str, told: str) -> Turn | Raw | Status:
    lines = dict(line.split(": ", 1) for line in told.splitlines()[1:-1])
    goal = json.loads(lines.pop("goal"))
    match skill:
        case "echo":
            inputs = {name.removeprefix("input "): json.loads(values) for name, values in lines.items()}
            said = {"goal": goal, "inputs": inputs, "skill": "test.echo"}
            return Turn((json.dumps({"test.echo": said}),))
        case "talk":
            return Turn(("one ", "two"))
        case "refuse":
            return Turn(("there is none",), finish="refused")
        case "large" | "endless":
            return Raw(itertools.repeat(event({"content": "x" * 10_000}), 100))
        case "raw":
            return Raw([f"data: {goal}\n\n".encode()])
        case "crash":
            return Raw([event({"content": "half"})], cut=True)
        case "meet":
            count, folder = goal.split()
            await meet(int(count), Path(folder))
            return Turn(("met",))
        case _:
            return Turn(("for ever",), hold=asyncio.Event())


async def meet(count: int, folder: Path) -> None:
    """Wait until so many are there; the caller bounds it."""
    (folder / str(there(folder))).touch()
    while there(folder) < count:
        await asyncio.sleep(0.01)


def there(folder: Path) -> int:
    return len(list(folder.iterdir()))
