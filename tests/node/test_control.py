"""node/control.py: one request, events, one answer; bad clients cost only themselves."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import NetError, UsageError
from ioa_p2p.node.control import ControlServer, Emit, encode_line, plain
from ioa_p2p.wire import limits

WAIT_S = 20.0


class Node:
    """Handlers of a make-believe node; `cancelled` is set when a watching handler is."""

    def __init__(self) -> None:
        self.watching, self.cancelled = asyncio.Event(), asyncio.Event()
        self.emit: Emit = lambda _: None

    async def count(self, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
        for number in range(args["to"]):
            emit({"number": number})
        return {"sum": sum(range(args["to"]))}

    async def refuse(self, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
        raise UsageError("no-team", "no such team", "see `team list`")

    async def break_down(self, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
        raise ZeroDivisionError("our bug")

    async def large(self, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
        return {"text": "x" * limits.CONTROL_ANSWER_BYTES_MAX}

    async def watch(self, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
        self.emit = emit
        self.watching.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return {}


@pytest.fixture
async def node() -> Node:
    return Node()


@pytest.fixture
async def path(tmp_path: Path, node: Node) -> AsyncIterator[Path]:
    handlers = {name: getattr(node, name) for name in ("count", "refuse", "break_down", "large", "watch")}
    async with asyncio.timeout(60), ControlServer(tmp_path / "control.sock", handlers):
        yield tmp_path / "control.sock"


async def say(path: Path, line: bytes) -> list[dict[str, Any]]:
    """Every answer to one line."""
    reader, writer = await asyncio.open_unix_connection(os.fspath(path), limit=2 * limits.CONTROL_ANSWER_BYTES_MAX)
    writer.write(line)
    answers = [json.loads(answer) async for answer in reader]
    writer.close()
    return answers


def request(verb: str, **args: Any) -> bytes:
    return json.dumps({"verb": verb, "args": args}).encode() + b"\n"


async def test_events_come_in_order_before_the_result(path: Path) -> None:
    answers = await say(path, request("count", to=3))
    assert answers == [{"event": {"number": n}} for n in range(3)] + [{"ok": True, "result": {"sum": 3}}]


async def test_the_socket_is_for_its_owner_only_and_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    async with ControlServer(path, {}):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


async def test_a_stale_socket_is_replaced(tmp_path: Path, node: Node) -> None:
    path = tmp_path / "control.sock"
    path.write_text("left by a crash")
    async with ControlServer(path, {"count": node.count}):
        assert (await say(path, request("count", to=0)))[-1]["ok"]


async def test_a_socket_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(NetError) as fault:
        async with ControlServer(tmp_path / "missing" / "control.sock", {}):
            pass
    assert fault.value.code == "no-control"
    assert fault.value.hint


async def test_a_refusal_carries_code_message_and_hint(path: Path) -> None:
    assert await say(path, request("refuse")) == [
        {"ok": False, "code": "no-team", "message": "no such team", "hint": "see `team list`"}
    ]


async def test_a_handlers_bug_is_told_and_the_node_lives(path: Path) -> None:
    (answer,) = await say(path, request("break_down"))
    assert answer["code"] == "internal"
    assert "our bug" in answer["message"]
    assert (await say(path, request("count", to=1)))[-1]["ok"]


async def test_an_unknown_verb_is_answered_with_the_known_ones(path: Path) -> None:
    (answer,) = await say(path, request("dance"))
    assert answer["code"] == "unknown-verb"
    assert "count" in answer["hint"]


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"garbage\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'{"verb": 5}\n',
        b'{"verb": "count", "args": [1]}\n',
        b"[" * 100_000 + b"\n",
    ],
)
async def test_garbage_is_refused_as_such(path: Path, line: bytes) -> None:
    assert [answer["code"] for answer in await say(path, line)] == ["bad-request"]


async def test_an_endless_request_is_refused(path: Path) -> None:
    line = b"x" * (2 * limits.CONTROL_REQUEST_BYTES_MAX) + b"\n"
    assert [answer["code"] for answer in await say(path, line)] == ["too-large"]


async def test_an_answer_over_the_limit_becomes_a_refusal(path: Path) -> None:
    assert [answer["code"] for answer in await say(path, request("large"))] == ["too-large"]


async def test_a_handler_is_cancelled_when_its_client_vanishes(path: Path, node: Node) -> None:
    _, writer = await asyncio.open_unix_connection(os.fspath(path))
    writer.write(request("watch"))
    await asyncio.wait_for(node.watching.wait(), WAIT_S)
    writer.transport.abort()
    await asyncio.wait_for(node.cancelled.wait(), WAIT_S)
    node.emit({"into": "nothing"})


async def test_a_client_that_stops_reading_is_cut_off(path: Path, node: Node) -> None:
    _, writer = await asyncio.open_unix_connection(os.fspath(path))
    writer.write(request("watch"))
    await asyncio.wait_for(node.watching.wait(), WAIT_S)
    event = {"text": "x" * 100_000}
    for _ in range(2 * limits.CONTROL_BACKLOG_BYTES_MAX // 100_000):
        node.emit(event)
        await asyncio.sleep(0)
    await asyncio.wait_for(node.cancelled.wait(), WAIT_S)
    assert (await say(path, request("count", to=1)))[-1]["ok"]
    writer.close()


async def test_a_silent_client_is_cut_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONTROL_REQUEST_WAIT_S", 0.05)
    assert await asyncio.wait_for(say(path, b'{"verb"'), WAIT_S) == []


async def test_one_client_too_many_is_told_busy(path: Path, monkeypatch: pytest.MonkeyPatch, node: Node) -> None:
    monkeypatch.setattr(limits, "CONTROL_CLIENTS_MAX", 1)
    _, writer = await asyncio.open_unix_connection(os.fspath(path))
    writer.write(request("watch"))
    await asyncio.wait_for(node.watching.wait(), WAIT_S)
    assert [answer["code"] for answer in await say(path, request("count", to=1))] == ["busy"]
    writer.close()
    await asyncio.wait_for(node.cancelled.wait(), WAIT_S)


async def test_a_client_that_watches_is_told_when_the_node_stops(tmp_path: Path, node: Node) -> None:
    async with ControlServer(tmp_path / "control.sock", {"watch": node.watch}):
        reader, writer = await asyncio.open_unix_connection(os.fspath(tmp_path / "control.sock"))
        writer.write(request("watch"))
        await asyncio.wait_for(node.watching.wait(), WAIT_S)
    assert json.loads(await reader.readline())["code"] == "stopping"
    assert node.cancelled.is_set()
    writer.close()


def test_what_json_cannot_say_is_made_plain() -> None:
    value = {b"\x01": (b"\xff", float("nan"), {3, 1}, Path("/x"), "é\ud800", True, None, 1.5)}
    assert plain(value) == {"01": ["ff", None, [1, 3], "/x", "é\ud800", True, None, 1.5]}
    assert encode_line({"result": value}).isascii()
