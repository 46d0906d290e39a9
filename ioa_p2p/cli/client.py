"""The CLI's end of the control socket: blocking, without asyncio, so that a command starts fast.

call(path, verb, args) ── yields each event ── returns the result | raises RefusedError
"""

import json
import os
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO, cast

from ioa_p2p.errors import IoaError
from ioa_p2p.wire import limits

CONNECT_WAIT_S = 5.0
Answers = Generator[dict[str, Any], None, dict[str, Any]]


class RefusedError(IoaError):
    """The node answered no: its own code, message and hint."""


class NotRunningError(IoaError):
    """No node answers at the socket."""


class TimedOutError(IoaError):
    """The node did not answer in time."""


def call(path: Path, verb: str, args: dict[str, Any], wait_s: float | None = 30.0) -> Answers:
    """Ask the node behind the socket at `path`. Yields events as they come, returns the result.

    wait_s: seconds the node may be silent (None: for ever). Closing the generator hangs up: the node stops
    watching for us, its work goes on. Raises RefusedError, NotRunningError, TimedOutError.
    """
    connection = _connect(path)
    with connection, connection.makefile("rb") as answers:
        connection.settimeout(wait_s)
        try:
            connection.sendall(json.dumps({"verb": verb, "args": args}).encode() + b"\n")
            while "event" in (answer := _read(answers)):
                yield answer["event"]
        except TimeoutError:
            raise TimedOutError("timeout", f"the node was silent for {wait_s:g} s", "see `ioa-p2p doctor`") from None
        except OSError:
            raise NotRunningError("node-gone", "the node went away", "see `ioa-p2p logs`") from None
    return _result(answer)


def ask(path: Path, verb: str, args: dict[str, Any], wait_s: float | None = 30.0) -> dict[str, Any]:
    """`call` for verbs without events: just the result."""
    answers = call(path, verb, args, wait_s)
    while True:
        try:
            next(answers)
        except StopIteration as end:
            return cast(dict[str, Any], end.value)


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_WAIT_S)
    try:
        connection.connect(os.fspath(path))
    except OSError:
        connection.close()
        raise NotRunningError("not-running", f"no node runs here ({path})", "start it: `ioa-p2p up --detach`") from None
    return connection


def _read(answers: BinaryIO) -> dict[str, Any]:
    line = answers.readline(limits.CONTROL_ANSWER_BYTES_MAX + 1)
    if not line.endswith(b"\n"):
        raise ConnectionResetError
    return json.loads(line)


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    if answer.get("ok"):
        return answer["result"]
    raise RefusedError(answer.get("code", "failed"), answer.get("message", ""), answer.get("hint", ""))
