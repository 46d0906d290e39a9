"""What a model behind an agent may use: the skills of agents that only it sees.

    [agents.scribe.tools.files]  adapter = "python", target = "files.py" ──> tool per skill ──> ToolCall ──> text

So tools are Python functions or commands as agents are: in processes of their own, bounded, ended with the run. A
skill may use only tools whose effects are no stronger than its own: what may run again sends no mail.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ioa_p2p.adapters.base import Adapter, Failed, Result, Task
from ioa_p2p.errors import PeerError
from ioa_p2p.llm.fence import packed
from ioa_p2p.llm.port import Tool, ToolCall
from ioa_p2p.llm.reading import read_object
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.records import EFFECTS, Skill
from ioa_p2p.wire.spending import NOTHING, Spent

Make = Callable[[str, Mapping[str, Any]], Adapter]

_NAME_MAX = 64  # of a tool, by the wire of chat completions


@dataclass(frozen=True, slots=True)
class _Held:
    adapter: Adapter
    skill: Skill


class Toolbox:
    """make: an adapter by agent name and table; see `registry.make`. Nothing starts before `open`."""

    def __init__(self, tables: Mapping[str, Mapping[str, Any]], make: Make) -> None:
        self._adapters = [make(name, table) for name, table in tables.items()]
        self._held: dict[str, _Held] = {}

    async def open(self) -> None:
        """Raises AdapterError as the tools' adapters do."""
        for adapter in self._adapters:
            for skill in (await adapter.describe()).skills:
                self._held[_name(skill)] = _Held(adapter, skill)

    async def aclose(self) -> None:
        await asyncio.gather(*(adapter.aclose() for adapter in self._adapters))

    def tools(self, asker: Skill) -> tuple[Tool, ...]:
        return tuple(_tool(name, held.skill) for name, held in self._held.items() if _may(asker, held.skill))

    async def call(self, asker: Skill, call: ToolCall, task: Task, number: int, left_s: float) -> tuple[str, Spent]:
        """What the model is told: the result as JSON, or what went wrong; and what it cost. number: of the call in
        this run, so that the same run done again uses the same idempotency keys."""
        held = self._held.get(call.name)
        if held is None or not _may(asker, held.skill):
            return f"failed: there is no tool {call.name[:_NAME_MAX]!r}", NOTHING
        try:
            fields = read_object(call.arguments or "{}")
        except PeerError:
            return "failed: the arguments are not one JSON object", NOTHING
        key = ids.blake(task.key + number.to_bytes(4))[:16]
        inputs = {each.rstrip("*"): [fields.get(each.rstrip("*"))] for each in held.skill.inputs}
        goal = str(fields.get("goal", ""))[: limits.GOAL_CHARS_MAX]
        asked = Task(task.id, key, task.attempt, held.skill.name, goal, inputs, deadline_s=max(0.0, left_s))
        return await _told(held.adapter, asked)


async def _told(adapter: Adapter, task: Task) -> tuple[str, Spent]:
    async with aclosing(adapter.run(task)) as events:
        async for event in events:
            if isinstance(event, Failed):
                return f"failed: {event.code} {event.message}"[:1_000], event.spent
            if isinstance(event, Result):
                return packed(event.outputs)[: limits.TOOL_RESULT_CHARS_MAX], event.spent
    return "failed: no result", NOTHING


def _may(asker: Skill, tool: Skill) -> bool:
    return EFFECTS.index(tool.effect) <= EFFECTS.index(asker.effect)


def _name(skill: Skill) -> str:
    return skill.name.replace(".", "_")[:_NAME_MAX]


def _tool(name: str, skill: Skill) -> Tool:
    """goal: what to do, in words; and one property for each input."""
    properties: dict[str, Any] = {"goal": {"type": "string", "description": "what to do, in words"}}
    properties |= {each.rstrip("*"): {} for each in skill.inputs}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, skill.description or skill.name, schema)
