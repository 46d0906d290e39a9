"""The `openai` adapter: skills that a language model answers, with tools if it is given any.

    task ── slot ── Conversation ──> Delta, Progress, ..., Result | Failed       cancel, deadline, close: the request
                     │      └── tools: agents that only it sees (`toolbox`)       and its tools end

    [agents.scribe]
    adapter = "openai"
    url = "http://127.0.0.1:11434/v1"      # default: OPENAI_BASE_URL
    model = "qwen3:8b"                     # default: OPENAI_MODEL, or the only one there
    instructions = "You write plain, short English."
    skills = [{ name = "text.sum-up", inputs = ["text.plain"], outputs = ["text.summary"], description = "..." }]

    [agents.scribe.tools.files]            # any number; each a table as of an agent
    adapter = "python"
    target = "files.py"

A skill with one output and no output_schema is answered in plain text; any other as a JSON object, output type ->
value. The key is read from the variable `key_env` (OPENAI_API_KEY), never from the file. docs/planner.md.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ioa_p2p.adapters import options, registry
from ioa_p2p.adapters.base import Event, Failed, Task
from ioa_p2p.adapters.conversation import Bounds, Conversation
from ioa_p2p.adapters.toolbox import Toolbox
from ioa_p2p.errors import AdapterError, UsageError
from ioa_p2p.llm.endpoint import Endpoint, Place
from ioa_p2p.llm.fence import Fence
from ioa_p2p.llm.port import Model, ModelError
from ioa_p2p.wire.records import Card

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIOptions(options.AgentOptions):
    """rounds_max: calls of the model in one run. tokens_max: of all of them. answer_tokens_max: of one answer."""

    url: str = ""
    model: str = ""
    key_env: str = "OPENAI_API_KEY"
    instructions: str = ""
    rounds_max: int = 8
    tokens_max: int = 50_000
    answer_tokens_max: int = 4_000
    tools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def __post_init__(self) -> None:
        options.AgentOptions.__post_init__(self)
        if min(self.rounds_max, self.tokens_max, self.answer_tokens_max) < 1:
            raise ValueError("rounds_max, tokens_max and answer_tokens_max are at least 1")

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.rounds_max, self.tokens_max, self.answer_tokens_max)


class OpenAIAdapter:
    """One agent behind a model."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        """Raises UsageError('bad-option' | 'no-endpoint') with a hint."""
        self._name = name
        self._options = options.read(OpenAIOptions, name, table)
        if any(not skill.outputs for skill in self._options.skills):
            raise UsageError("bad-option", f"agents.{name}: a skill without outputs", 'outputs = ["one.type"]')
        self._model: Model = Endpoint(_place(name, self._options, os.environ))
        self._tools = Toolbox(self._options.tools, registry.make)
        self._fence = Fence(secrets.token_hex(4))
        self._slots = asyncio.Semaphore(self._options.concurrency)
        self._waits: set[asyncio.Timeout] = set()
        self._opening = asyncio.Lock()
        self._opened = self._closed = False

    async def describe(self) -> Card:
        """From the table alone; the tools come up. Raises AdapterError('missing-library' | 'bad-card' | 'no-skills'),
        or as tools do."""
        card = options.card(self._name, self._options, {})
        async with self._opening:
            if not self._opened:
                await self._warm()
                await self._tools.open()
                self._opened = True
        return card

    async def run(self, task: Task) -> AsyncGenerator[Event, None]:
        """Closing the iterator ends the request and what its tools do."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + task.deadline_s
        skill = next((each for each in self._options.skills if each.name == task.skill), None)
        if self._closed or skill is None:
            code, why = ("closed", "the adapter is closed") if self._closed else ("unknown-skill", repr(task.skill))
            yield Failed(code, why, retry=False)
            return
        talk = Conversation(
            self._model, self._tools, self._options.bounds, skill, task,
            lambda work: self._within(deadline, work), lambda: max(0.0, deadline - loop.time()),
        )  # fmt: skip
        try:
            await self._within(deadline, self._slots.acquire())
            try:
                await self._within(deadline, self.describe())
                async with aclosing(talk.events(self._options.instructions, self._fence)) as events:
                    async for event in events:
                        yield event
            finally:
                self._slots.release()
        except TimeoutError:
            code, why = ("closed", "") if self._closed else ("deadline", f"no result within {task.deadline_s:g} s")
            yield Failed(code, why, spent=talk.spent)

    async def aclose(self) -> None:
        """End all runs, tools and connections. Idempotent."""
        self._closed = True
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(0)
        await self._tools.aclose()
        await self._model.aclose()

    async def _warm(self) -> None:
        try:
            await self._model.warm()
        except ModelError as fault:
            raise AdapterError(fault.code, str(fault), fault.hint) from fault

    async def _within(self, deadline: float, work: Awaitable[T]) -> T:
        """Until `deadline`, or until the adapter is closed. Raises TimeoutError."""
        async with asyncio.timeout_at(0 if self._closed else deadline) as wait:
            self._waits.add(wait)
            try:
                return await work
            finally:
                self._waits.discard(wait)


def _place(agent: str, told: OpenAIOptions, environment: Mapping[str, str]) -> Place:
    """Where its model is. A server of one's own wants some key, but does not look at it."""
    url = told.url or environment.get("OPENAI_BASE_URL", "")
    if not url:
        hint = 'url = "http://127.0.0.1:11434/v1", or set OPENAI_BASE_URL'
        raise UsageError("no-endpoint", f"agents.{agent}: no url of a model", hint)
    model = told.model or environment.get("OPENAI_MODEL", "")
    return Place(url, environment.get(told.key_env, "") or "none", model)
