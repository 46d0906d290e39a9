"""A real HTTP server on loopback that speaks OpenAI's chat completions, streamed; its answers are scripted.

    async with Server("an answer", Turn(calls=...), Status(429, retry_after="0"), Raw(b"data: ...")) as server: ...

Takes what `ScriptedLLM` takes, and what only a wire can do: statuses, raw bytes, cut connections, endless streams.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import ioa_p2p.llm.client  # noqa: F401  # loaded before any wait is bounded: a busy machine needs a minute
from ioa_p2p.llm.port import Message, Request, Shape, Tool, ToolCall, request_tokens, tokens_of
from ioa_p2p.llm.scripted import Scripted, Turn, turn_of


@dataclass(frozen=True)
class Status:
    """An answer that is an error."""

    status: int
    message: str = "no"
    retry_after: str = ""


@dataclass(frozen=True)
class Raw:
    """These bytes after good headers, then the end; or a cut connection. headers: instead of the usual type."""

    parts: Iterable[bytes]
    cut: bool = False
    headers: str = "Content-Type: text/event-stream"


class Server:
    """requests: bodies as they came. gone: set when a client left in the middle of an answer."""

    def __init__(self, *turns: Scripted | Status | Raw, served: tuple[str, ...] = ("scripted",)) -> None:
        self.requests: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self.begun = asyncio.Event()
        self.unexpected = 0
        self.turns = list(turns)
        self._served = served
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        if kind is None:
            assert not self.unexpected, "requests beyond the script"
            assert not self.turns, f"{len(self.turns)} turns that nobody asked for"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection lives on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("GET"):
            await _answer(writer, 200, {"object": "list", "data": [{"id": each} for each in self._served]})
            return True
        assert head.startswith("POST /v1/chat/completions"), head
        length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-le"))
        body = json.loads(await reader.readexactly(length))
        self.requests.append(body)
        self.begun.set()
        self.unexpected += not self.turns
        turn = self.turns.pop(0) if self.turns else Status(500, "nothing more is scripted")
        leaving = asyncio.create_task(self._notice(reader, writer))
        try:
            return await self._play(turn, body, writer)
        finally:
            leaving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await leaving

    async def _notice(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A client that closes its side while we answer."""
        if not await reader.read(1):
            self.gone.set()
            writer.transport.abort()

    async def _play(self, turn: Scripted | Status | Raw, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        if isinstance(turn, Status):
            await _answer(writer, turn.status, {"error": {"message": turn.message}}, turn.retry_after)
            return True
        raw = turn if isinstance(turn, Raw) else None
        headers = raw.headers if raw else "Content-Type: text/event-stream"
        writer.write(f"HTTP/1.1 200 OK\r\n{headers}\r\nConnection: close\r\n\r\n".encode())
        if raw is not None:
            for part in raw.parts:
                writer.write(part)
                await writer.drain()
        else:
            async for event in _events(turn_of(turn, request_of(body)), body):
                writer.write(event)
                await writer.drain()
        if raw is not None and raw.cut:
            writer.transport.abort()
        return False


async def _answer(writer: asyncio.StreamWriter, status: int, value: Any, retry_after: str = "") -> None:
    body = json.dumps(value).encode()
    again = f"Retry-After: {retry_after}\r\n" if retry_after else ""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{again}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _events(turn: Turn, body: dict[str, Any]) -> AsyncIterator[bytes]:
    for piece in turn.pieces:
        yield event({"refusal": piece} if turn.finish == "refused" else {"content": piece})
    for place, call in enumerate(turn.calls):
        half = len(call.arguments) // 2
        function = {"name": call.name, "arguments": call.arguments[:half]}
        yield event({"tool_calls": [{"index": place, "id": call.id, "type": "function", "function": function}]})
        yield event({"tool_calls": [{"index": place, "function": {"arguments": call.arguments[half:]}}]})
    if turn.hold is not None:
        await turn.hold.wait()
    if turn.fault is not None:
        raise ConnectionError("as the script says")
    reasons = {"stop": "stop", "tools": "tool_calls", "length": "length", "refused": "stop"}
    yield event({}, reasons[turn.finish])
    if body.get("stream_options", {}).get("include_usage"):
        tokens = {"prompt_tokens": request_tokens(request_of(body)), "completion_tokens": tokens_of(turn.text)}
        yield b"data: " + json.dumps({**CHUNK, "choices": [], "usage": {**tokens, "total_tokens": 0}}).encode() + END
    yield b"data: [DONE]" + END


CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
END = b"\n\n"


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of a stream."""
    chunk = {**CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(chunk).encode() + END


def request_of(body: dict[str, Any]) -> Request:
    """A body as the port's request, so that one script serves both."""
    told = body.get("response_format", {}).get("json_schema")
    return Request(
        tuple(map(_message, body["messages"])),
        body.get("max_tokens") or body["max_completion_tokens"],
        0.0,
        Shape(told["name"], told["schema"], told["strict"]) if told else None,
        tuple(Tool(*(each["function"][name] for name in ("name", "description", "parameters")))
              for each in body.get("tools", ())),
    )  # fmt: skip


def _message(body: dict[str, Any]) -> Message:
    calls = tuple(
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in body.get("tool_calls", ())
    )
    return Message(body["role"], body["content"], calls, body.get("tool_call_id", ""))
