"""The local door: a 0600 unix socket, JSON lines. docs/control.md lists the verbs.

    client ── {"verb": "ask", "args": {...}} ──> ControlServer ──> handler(args, emit)
           <── {"event": {...}} ... ──                                 │ emit(event)
           <── {"ok": true, "result": {...}}                           │ return result
               {"ok": false, "code", "message", "hint"} ──             │ raise IoaError

One request a connection. A handler only watches: it is cancelled when its client goes, so lasting work must
live elsewhere in the node. A client that floods, stalls or vanishes costs itself its connection, nothing else.
"""

import asyncio
import json
import logging
import math
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from ioa_p2p.errors import IoaError, NetError, UsageError
from ioa_p2p.wire import limits

Emit = Callable[[dict[str, Any]], None]
Handler = Callable[[dict[str, Any], Emit], Awaitable[dict[str, Any]]]

_log = logging.getLogger(__name__)


class ControlServer:
    """`async with ControlServer(path, handlers)`: serve until the block ends.

    path: where the socket goes; its folder must exist, 0700; a stale socket there is replaced (the node holds
    the folder's lock). handlers: verb -> Handler.
    """

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self._path = path
        self._handlers = handlers
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "ControlServer":
        """Raises NetError('no-control') when the socket cannot be made."""
        try:
            listener = _listen(self._path)
        except OSError as fault:
            hint = "choose another place with --home or IOA_P2P_HOME"
            raise NetError("no-control", f"{self._path}: {fault.strerror or fault}", hint) from None
        self._server = await asyncio.start_unix_server(
            self._accept, sock=listener, limit=limits.CONTROL_REQUEST_BYTES_MAX
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.ensure_future(self._serve(reader, writer))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client from its request to its answer."""
        try:
            writer.write(encode_line(await self._answer(reader, writer)))
            await asyncio.wait_for(writer.drain(), limits.CONTROL_REQUEST_WAIT_S)
        except asyncio.CancelledError:
            writer.write(encode_line(refusal("stopping", "the node stops", "start it again with `ioa-p2p up`")))
        except (OSError, TimeoutError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, Any]:
        try:
            if len(self._clients) > limits.CONTROL_CLIENTS_MAX:
                raise UsageError("busy", f"{limits.CONTROL_CLIENTS_MAX} clients are connected", "try again later")
            verb, args = await _read_request(reader)
            handler = self._handlers.get(verb)
            if handler is None:
                raise UsageError("unknown-verb", f"no verb {verb[:40]!r}", "one of " + " ".join(sorted(self._handlers)))
            result = await self._watch(reader, handler(args, _emitter(writer)))
            return {"ok": True, "result": result}
        except IoaError as fault:
            return refusal(fault.code, str(fault), fault.hint)
        except ConnectionError:
            raise
        except OSError as fault:  # the node's own disk or net, not this client's line
            return refusal("system", str(fault), "look at the disk, the path and its permissions")
        except Exception as fault:  # a handler's bug must not end the node
            _log.exception("control handler failed")
            return refusal("internal", f"{type(fault).__name__}: {fault}", "the node's log has the trace")

    async def _watch(self, reader: asyncio.StreamReader, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The handler's result, unless the client goes first: then cancel it and raise ConnectionError."""
        handler = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_end_of(reader))
        try:
            await asyncio.wait((handler, gone), return_when=asyncio.FIRST_COMPLETED)
            if not handler.done():
                raise ConnectionResetError("client gone")
            return handler.result()
        finally:
            gone.cancel()
            if not handler.done():
                handler.cancel()
                await asyncio.gather(handler, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
    """Raises UsageError('bad-request' | 'too-large'), ConnectionError."""
    try:
        line = await asyncio.wait_for(reader.readline(), limits.CONTROL_REQUEST_WAIT_S)
    except ValueError:
        hint = "name files by their path, and say less"
        raise UsageError("too-large", f"a request is at most {limits.CONTROL_REQUEST_BYTES_MAX} bytes", hint) from None
    except TimeoutError:
        raise ConnectionAbortedError("the client asks nothing") from None
    if not line:
        raise ConnectionResetError("client gone")
    try:
        request = json.loads(line)
        verb, args = cast(tuple[Any, Any], (request["verb"], request.get("args") or {}))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        verb, args = None, None
    if not (isinstance(verb, str) and isinstance(args, dict)):
        raise UsageError("bad-request", "a request is one line of JSON", 'send {"verb": "status", "args": {}}')
    return verb, cast(dict[str, Any], args)


async def _end_of(reader: asyncio.StreamReader) -> None:
    """Wait until the client goes; what it still says is dropped."""
    try:
        while await reader.read(4_096):
            pass
    except OSError:
        return


def _emitter(writer: asyncio.StreamWriter) -> Emit:
    """Never blocks, never raises for the client's fault: a client too far behind is cut off, which ends its handler."""

    def emit(event: dict[str, Any]) -> None:
        if writer.is_closing():
            return
        writer.write(encode_line({"event": event}))
        if writer.transport.get_write_buffer_size() > limits.CONTROL_BACKLOG_BYTES_MAX:
            writer.transport.abort()

    return emit


def encode_line(answer: dict[str, Any]) -> bytes:
    """One line of ASCII JSON. Over the limit it becomes a refusal ('too-large'); an event that large is dropped."""
    line = json.dumps(plain(answer), allow_nan=False, separators=(",", ":")).encode() + b"\n"
    if len(line) <= limits.CONTROL_ANSWER_BYTES_MAX:
        return line
    if "event" in answer:
        return b""
    return encode_line(refusal("too-large", f"the answer has {len(line)} bytes", "ask for less"))


def plain(value: Any) -> Any:
    """What JSON can say: bytes become hex, tuples and sets lists, NaN and infinities null, the rest text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return value.hex()
        case dict():
            return {str(plain(key)): plain(item) for key, item in cast(dict[Any, Any], value).items()}
        case list() | tuple():
            return [plain(item) for item in cast(list[Any], value)]
        case set() | frozenset():
            return sorted((plain(item) for item in cast(set[Any], value)), key=str)
        case _:
            return str(value)


def refusal(code: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"ok": False, "code": code, "message": message, "hint": hint}


def _listen(path: Path) -> socket.socket:
    """A bound socket only this user may use. The folder is 0700, so there is no moment between bind and chmod."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(os.fspath(path))
        path.chmod(0o600)
    except OSError:
        listener.close()
        raise
    return listener
