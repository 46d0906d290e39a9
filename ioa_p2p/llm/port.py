"""What is asked of a language model and what it answers, whoever serves it.

    Request(messages, shape | tools, bounds) ──> Model.answer ──> "text", "text", ..., Reply
                                                      └── ModelError: nothing usable, and whether to ask again

A Reply is a stranger's: its text may be empty, cut short, a refusal or nonsense. Reading it is the caller's part.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ioa_p2p.errors import IoaError

Speaker = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "tools", "length", "refused"]
MESSAGE_TOKENS = 4  # around each message, by the chat templates in use


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls of a model cost. As the endpoint told it, else estimated; see `tokens_of`."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ToolCall:
    """arguments: JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """calls: of the assistant. call: of a tool, the id of the call it answers."""

    speaker: Speaker
    text: str
    calls: tuple[ToolCall, ...] = ()
    call: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """The JSON an answer must have. strict: the schema keeps to the subset that servers can enforce."""

    name: str
    schema: Mapping[str, Any]
    strict: bool = True


@dataclass(frozen=True, slots=True)
class Tool:
    """parameters: a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """seconds: for everything, waiting for the model to have time included. tokens_max: of the answer."""

    messages: tuple[Message, ...]
    tokens_max: int
    seconds: float
    shape: Shape | None = None
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole answer. Its finish: by itself, to call tools, cut short at `tokens_max`, or it refuses to answer."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    usage: Usage = field(default_factory=lambda: Usage(1))


class ModelError(IoaError):
    """No usable answer: "missing-library", "no-endpoint", "unreachable", "too-late", "rate-limited", "bad-key",
    "bad-request", "server-error", "oversized" or "bad-answer".

    retry_s: asking again after so many seconds may help; None: it will not.
    """

    def __init__(
        self, code: str, message: str = "", hint: str = "", *, retry_s: float | None = None, usage: Usage | None = None
    ) -> None:
        super().__init__(code, message, hint)
        self.retry_s = retry_s
        self.usage = usage or Usage(1)


class Model(Protocol):
    @property
    def name(self) -> str:
        """For people: which model, where."""
        ...

    async def warm(self) -> None:
        """Load what the first request would wait for. Raises ModelError('missing-library')."""
        ...

    def answer(self, request: Request) -> AsyncGenerator[str | Reply, None]:
        """Text as it comes, then one Reply. Closing the iterator ends the request. Raises ModelError."""
        ...

    async def aclose(self) -> None:
        """End all requests and connections. Idempotent."""
        ...


async def reply_of(model: Model, request: Request) -> Reply:
    """The whole answer at once. Raises ModelError."""
    async with aclosing(model.answer(request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                return piece
    raise ModelError("bad-answer", "the model's answer has no end")


def tokens_of(text: str) -> int:
    """A bound rather than a count: English has 4 to 5 bytes a token, most other scripts 3 or more."""
    return (len(text.encode("utf-8", "replace")) + 2) // 3


def request_tokens(request: Request, count: Callable[[str], int] = tokens_of) -> int:
    """What a request costs, schema and tools included, by `count`."""
    told = [f"{each.text}{each.calls or ''}" for each in request.messages]
    told += [json.dumps(request.shape.schema, separators=(",", ":"))] if request.shape else []
    told += [f"{tool.name} {tool.description} {json.dumps(tool.parameters)}" for tool in request.tools]
    return sum(count(text) + MESSAGE_TOKENS for text in told)
