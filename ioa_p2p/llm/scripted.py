"""A model whose answers are written beforehand: for tests and benches, behind the same port as a real one.

    ScriptedLLM("first answer", Turn(fault=...), lambda request: "third") ── answer ──> the next turn, each once

A request too many, and a turn that nobody asked for, are faults: `check` (and the end of `async with`) tells them.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from ioa_p2p.llm.port import (
    Finish,
    ModelError,
    Reply,
    Request,
    ToolCall,
    Usage,
    request_tokens,
    tokens_of,
)


@dataclass(frozen=True)
class Turn:
    """One answer. pieces: the text as it streams. fault: instead of an end. hold: wait for it before the end, for
    ever if it is never set."""

    pieces: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    fault: ModelError | None = None
    hold: asyncio.Event | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)


Scripted = Turn | str | dict[str, Any] | Callable[[Request], "Turn | str | dict[str, Any]"]
"""A turn, its text alone, its JSON, or what makes one of these of the request."""


class ScriptedLLM:
    """A `Model`. count: of the tokens of a text. requests, usage: what was asked so far and what it cost."""

    def __init__(self, *turns: Scripted, count: Callable[[str], int] = tokens_of) -> None:
        self.requests: list[Request] = []
        self.usage = Usage()
        self._turns = list(turns)
        self._count = count
        self._unexpected = 0
        self._closed = False

    @property
    def name(self) -> str:
        return "a scripted model"

    async def __aenter__(self) -> "ScriptedLLM":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.aclose()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises AssertionError unless every turn was asked for, and nothing else."""
        assert not self._unexpected, f"{self._unexpected} requests beyond the script"
        assert not self._turns, f"{len(self._turns)} turns that nobody asked for"

    async def warm(self) -> None:
        """There is nothing to load."""

    async def answer(self, request: Request) -> AsyncGenerator[str | Reply, None]:
        turn = self._next(request)
        usage = Usage(1, request_tokens(request, self._count), self._count(turn.text))
        self.usage += usage
        try:
            async with asyncio.timeout(request.seconds):
                if turn.hold is not None:
                    await turn.hold.wait()
        except TimeoutError:
            raise ModelError("too-late", f"no whole answer within {request.seconds:g} s", usage=usage) from None
        for piece in turn.pieces:
            yield piece
        if turn.fault is not None:
            raise turn.fault
        yield Reply(turn.text, turn.calls, turn.finish, usage)

    async def aclose(self) -> None:
        self._closed = True

    def _next(self, request: Request) -> Turn:
        self.requests.append(request)
        if self._closed or not self._turns:
            self._unexpected += not self._closed
            raise ModelError("unreachable", "nothing more is scripted")
        return turn_of(self._turns.pop(0), request)


def turn_of(scripted: Scripted, request: Request) -> Turn:
    made = scripted(request) if callable(scripted) else scripted
    if isinstance(made, dict):
        made = json.dumps(made)
    return Turn((made,)) if isinstance(made, str) else made
