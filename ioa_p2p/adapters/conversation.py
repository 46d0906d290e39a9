"""One task put to a model: rounds of answers and tool calls, until there is a result or a bound is met.

events ── Request ──> model ──┬── "text", ... ──> Delta, ...
              ^               ├── Reply(tools) ──> Progress, Toolbox.call ──┐
              └───────────────┼─────────────────────────────────────────────┘
                              └── Reply ──> Result | Failed
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ioa_p2p.adapters.base import Delta, Event, Failed, Progress, Result, Task
from ioa_p2p.adapters.toolbox import Toolbox
from ioa_p2p.errors import AdapterError, PeerError
from ioa_p2p.llm.fence import Fence, packed, quoted
from ioa_p2p.llm.port import Message, Model, ModelError, Reply, Request, Shape, ToolCall, request_tokens
from ioa_p2p.llm.reading import read_object
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.spending import NOTHING, Spent

_FINAL = frozenset({"missing-library", "no-endpoint", "bad-key", "bad-request"})  # another try cannot help


@dataclass(frozen=True, slots=True)
class Bounds:
    """rounds: calls of the model. tokens: of all rounds together. answer_tokens: of one answer."""

    rounds: int
    tokens: int
    answer_tokens: int


class Conversation:
    """within: waits for one thing, but no longer than the run may go on; raises TimeoutError. left_s: until then."""

    def __init__(
        self,
        model: Model,
        tools: Toolbox,
        bounds: Bounds,
        skill: Skill,
        task: Task,
        within: Callable[[Awaitable[Any]], Awaitable[Any]],
        left_s: Callable[[], float],
    ) -> None:
        self.spent = NOTHING
        self._model, self._tools, self._bounds = model, tools, bounds
        self._skill, self._task = skill, task
        self._within, self._left_s = within, left_s
        self._messages: tuple[Message, ...] = ()
        self._calls = 0
        self._shape = _shape(skill)

    async def events(self, instructions: str, fence: Fence) -> AsyncGenerator[Event, None]:
        """Ends with one Result or Failed. Raises TimeoutError from `within`."""
        try:
            self._messages = _opening(instructions, self._skill, self._task, fence)
            for _ in range(self._bounds.rounds):
                reply = None
                async with aclosing(self._model.answer(self._request())) as pieces:
                    while not isinstance(reply := await self._within(anext(pieces)), Reply):
                        if self._shape is None:
                            yield Delta(reply)
                self._count(Spent(tokens=reply.usage.tokens, calls=reply.usage.calls))
                if reply.finish != "tools":
                    yield self._result(reply)
                    return
                self._messages = (*self._messages, Message("assistant", reply.text, reply.calls))
                for call in reply.calls:
                    yield Progress(None, f"uses {call.name}"[: limits.ADAPTER_NOTE_CHARS_MAX], self.spent)
                    await self._use(call, fence)
            yield Failed("too-many-rounds", f"no answer after {self._bounds.rounds} calls", spent=self.spent)
        except ModelError as fault:
            if fault.code == "too-late":
                raise TimeoutError from None
            self._count(Spent(tokens=fault.usage.tokens, calls=fault.usage.calls))
            code = "bad-output" if fault.code == "bad-answer" else fault.code
            yield Failed(code, f"{fault} {fault.hint}".strip(), code not in _FINAL, self.spent)
        except AdapterError as fault:
            yield Failed(fault.code, str(fault), retry=False, spent=self.spent)

    def _request(self) -> Request:
        """Raises AdapterError('over-budget')."""
        tools = self._tools.tools(self._skill)
        shape = None if tools else self._shape  # few servers keep to a schema and call tools at once
        request = Request(self._messages, self._bounds.answer_tokens, self._left_s(), shape, tools)
        most, calls = self._task.budget.tokens, self._task.budget.calls
        tokens = self.spent.tokens + request_tokens(request)
        if tokens > min(self._bounds.tokens, self._bounds.tokens if most is None else most):
            raise AdapterError("over-budget", f"the next call of the model would need some {tokens} tokens in all")
        if calls is not None and self.spent.calls >= calls:
            raise AdapterError("over-budget", f"{self.spent.calls} calls were made, no more are allowed")
        return request

    async def _use(self, call: ToolCall, fence: Fence) -> None:
        self._calls += 1
        using = self._tools.call(self._skill, call, self._task, self._calls, self._left_s())
        text, spent = await self._within(using)
        self._count(spent)
        self._messages = (*self._messages, Message("tool", fence.around([text]), call=call.id))

    def _count(self, spent: Spent) -> None:
        kinds = ("tokens", "money", "calls")
        self.spent = Spent(*(getattr(self.spent, kind) + getattr(spent, kind) for kind in kinds))

    def _result(self, reply: Reply) -> Result | Failed:
        text = reply.text.strip()
        if reply.finish == "refused":
            return Failed("refused", text[:2_000], retry=False, spent=self.spent)
        if reply.finish == "length":
            return Failed("cut-off", f"the answer has more than {self._bounds.answer_tokens} tokens", spent=self.spent)
        if not text:
            return Failed("bad-output", "the model said nothing", spent=self.spent)
        if self._shape is None:
            return Result({self._skill.outputs[0]: text}, spent=self.spent)
        return self._object(text)

    def _object(self, text: str) -> Result | Failed:
        """Of the declared outputs alone; what the wire cannot carry is no result."""
        try:
            told = read_object(text)
            outputs = {name: told[name] for name in self._skill.outputs if name in told}
            codec.encode(outputs)
            packed(outputs)  # finite numbers alone
        except (PeerError, ValueError, OverflowError) as fault:
            return Failed("bad-output", f"{fault}: {text[:80]!r}", spent=self.spent)
        if not outputs:
            return Failed("bad-output", f"no {' or '.join(self._skill.outputs)} in {text[:80]!r}", spent=self.spent)
        return Result(outputs, spent=self.spent)


def _shape(skill: Skill) -> Shape | None:
    """None: the answer is plain text, and the one output."""
    if len(skill.outputs) == 1 and not skill.output_schema:
        return None
    properties: dict[str, Any] = {name: {} for name in skill.outputs}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Shape("result", skill.output_schema or schema, strict=False)


def _opening(instructions: str, skill: Skill, task: Task, fence: Fence) -> tuple[Message, ...]:
    """Raises AdapterError('bad-input')."""
    wanted = f"one JSON object with {', '.join(skill.outputs)}" if _shape(skill) else "the result alone, as plain text"
    rules = [instructions, f"Your skill is {skill.name}: {skill.description}", f"Answer with {wanted}.", fence.rule]
    try:
        told = [f"goal: {quoted(task.goal, limits.GOAL_CHARS_MAX)}"]
        told += [f"input {name}: {packed(values)}" for name, values in task.inputs.items()]
        told += [f"file {quoted(each.name)}: {quoted(_readable(each.data), limits.MODEL_JSON_CHARS_MAX)}"
                 for each in task.attachments]  # fmt: skip
    except (TypeError, ValueError, RecursionError) as fault:
        raise AdapterError("bad-input", f"not a JSON value: {fault}") from None
    return (Message("system", "\n".join(filter(None, rules))), Message("user", fence.around(told)))


def _readable(data: bytes) -> str:
    """A file's text; of what is no text only the size."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are no text)"
