"""What a clumsy owner does to a running node over its control socket: every mistake is a refusal with a way out."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.errors import PeerError, StorageError, UsageError
from ioa_p2p.node import reports, verbs
from ioa_p2p.node.control import ControlServer
from ioa_p2p.node.node import Node
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.wire import limits
from ioa_p2p.wire.spending import UNLIMITED
from tests.node.mesh import HELLO, Mesh

WAIT_S = 60.0
GOAL = "greet somebody with a hello"
WILD: list[Any] = [
    0, -1, 1.5, 1e308, float("nan"), float("inf"), -float("inf"), 2**70, True, False,
    "\ud800", "\x00\x1b[2J", "a" * 200_000, "nan", [], [1], [[[[]]]], {}, {"a": {"b": 1}},
]  # fmt: skip
ARGUMENTS = {
    "find": ("words", "skill", "out", "limit", "timeout_s"),
    "ask": ("goal", "timeout_s", "detach"),
    "publish": ("agent",),
    "resume": ("team",),
    "team": ("team",),
    "tasks": ("team", "open"),
    "task": ("task",),
    "cancel": ("team", "task"),
}
GOOD = {"find": {"words": "hello", "timeout_s": 0.01}, "ask": {"goal": "solder zinc", "timeout_s": 1}}
TYPED = {"limit", "timeout_s", "detach", "open"}


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    async with Mesh(tmp_path) as made:
        yield made


async def alone(mesh: Mesh) -> Node:
    mesh.make("alone", agents=[("hello", HELLO)])
    return await open_door(mesh, await mesh.start("alone"))


async def pair(mesh: Mesh) -> Node:
    """An asker, and one that works for it."""
    mesh.make("asker", agents=[("hello", HELLO)])
    mesh.make("worker", seeds=("asker",), allow=("asker",), agents=[("hello", HELLO)])
    await asyncio.gather(mesh.start("asker"), mesh.start("worker"))
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*(node.ready.wait() for node in mesh.nodes.values()))
    return await open_door(mesh, mesh.nodes["asker"])


async def open_door(mesh: Mesh, node: Node) -> Node:
    """Its control socket, open as long as the node."""
    door = ControlServer(node.config.home.socket, verbs.handlers(node))
    await mesh.stacks[node.config.name].enter_async_context(door)
    return node


async def say(node: Node, line: bytes) -> dict[str, Any]:
    """The last answer to one line."""
    async with asyncio.timeout(WAIT_S):
        reader, writer = await asyncio.open_unix_connection(node.config.home.socket, limit=2**22)
        writer.write(line)
        answers = [json.loads(answer) async for answer in reader]
        writer.close()
    return answers[-1]


async def ask(node: Node, verb: str, args: dict[str, Any]) -> dict[str, Any]:
    return await say(node, json.dumps({"verb": verb, "args": args}).encode() + b"\n")


@pytest.mark.parametrize("verb", ARGUMENTS)
async def test_no_argument_however_wild_breaks_a_verb(mesh: Mesh, verb: str) -> None:
    node = await alone(mesh)
    for name in ARGUMENTS[verb]:
        for value in WILD:
            answer = await ask(node, verb, {**GOOD.get(verb, {}), name: value})
            refused = not answer["ok"]
            assert refused or isinstance(value, str | bool) or name in TYPED, (name, value, answer)
            assert not refused or (answer["code"] != "internal" and answer["hint"]), (name, value, answer)


async def test_an_argument_of_a_wrong_type_is_named(mesh: Mesh) -> None:
    node = await alone(mesh)
    answer = await ask(node, "find", {"words": "hello", "limit": "many"})
    assert answer["code"] == "bad-argument"
    assert "limit" in answer["message"]


async def test_null_is_a_missing_argument(mesh: Mesh) -> None:
    node = await alone(mesh)
    assert (await ask(node, "find", {"words": "hello", "skill": None, "limit": None, "timeout_s": 0.01}))["ok"]


async def test_a_cancel_with_an_empty_name_cancels_nothing(mesh: Mesh) -> None:
    node = await pair(mesh)
    story = node.ask(GOAL, 30)
    assert (await ask(node, "cancel", {"team": ""}))["code"] == "no-team"
    async with asyncio.timeout(WAIT_S):
        assert (await story.follow(lambda _: None))["outcome"] == "concluded"


async def test_a_data_folder_that_is_gone_is_told_to_whoever_asks_for_health(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await alone(mesh)

    def gone(_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "data")

    monkeypatch.setattr("shutil.disk_usage", gone)
    answer = await ask(node, "doctor", {})
    assert (answer["code"], bool(answer["hint"])) == ("system", True)


async def test_goals_beyond_what_a_node_can_pursue_are_refused_and_the_others_end(mesh: Mesh) -> None:
    node = await alone(mesh)
    stories = [node.ask(f"solder zinc gutter {number}", 5) for number in range(limits.LAUNCHES_MAX)]
    with pytest.raises(UsageError) as fault:
        node.ask("one more", 5)
    assert (fault.value.code, bool(fault.value.hint)) == ("busy", True)
    async with asyncio.timeout(WAIT_S):
        results = await asyncio.gather(*(story.follow(lambda _: None) for story in stories))
    assert {result["outcome"] for result in results} == {"failed"}
    assert (await ask(node, "ask", {"goal": "solder once more"}))["ok"]


async def test_a_goal_whose_launch_is_refused_ends_with_the_reason(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    node = await pair(mesh)
    monkeypatch.setattr(limits, "LAUNCHES_MAX", 1)
    async with asyncio.timeout(WAIT_S):
        results = await asyncio.gather(*(_pursued(node) for _ in range(3)))
    assert "failed" in {result["outcome"] for result in results}
    assert all(result["outcome"] != "failed" or "refused" in result["answer"] for result in results)


async def _pursued(node: Node) -> dict[str, Any]:
    """Past the door that counts pursuits, straight to the launch."""
    story = node.goals.begin(GOAL)
    await node.goals.pursue(story, 30, UNLIMITED)
    return await story.follow(lambda _: None)


@pytest.mark.parametrize("spoil", ["unwritable", "not-a-map", "unreadable"])
async def test_an_answer_that_cannot_be_written_down_is_still_told(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    node = await pair(mesh)
    if spoil == "unwritable":
        node.config.home.reports.write_text("a file stands where the folder should")
    else:
        monkeypatch.setattr(
            "ioa_p2p.node.teamwork.codec.read_any", lambda _: _unreadable() if spoil == "unreadable" else [{1: b"x"}]
        )
    async with asyncio.timeout(WAIT_S):
        result = await node.ask(GOAL, 30).follow(lambda _: None)
    assert result["outcome"] == "concluded"
    assert bool(result["files"]) == (spoil == "not-a-map")


def _unreadable() -> None:
    raise PeerError("undecodable")


def test_two_files_of_one_name_are_two_files(tmp_path: Path) -> None:
    names = ("../../x", "x", "a/x", "_x", ".x", "x.part", "outputs.json", "", "\x1b[2J", "ünï\n")
    folder, taken = tmp_path / "deep" / "report", set[str]()
    for number, name in enumerate(names):
        reports.place(folder, name, taken).write_text(str(number))
    outputs = reports.write_outputs(folder, {"n": float("nan"), "b": b"\xff", "k": {(1,): 2**70}})
    written = {path.name for path in folder.iterdir()}
    assert written == {*taken, outputs["name"]}
    assert sorted(int((folder / name).read_text()) for name in taken) == list(range(len(names)))
    assert json.loads(Path(outputs["path"]).read_text())["b"] == "ff"
    assert list(tmp_path.iterdir()) == [tmp_path / "deep"]


async def test_a_hundred_clients_that_say_nothing_leave_room_once_they_go(mesh: Mesh) -> None:
    node = await alone(mesh)
    idle = [await asyncio.open_unix_connection(node.config.home.socket) for _ in range(100)]
    for _, writer in idle:
        writer.write(b'{"verb": "status", "args"')
    answer = await ask(node, "status", {})
    assert answer["ok"] or answer["code"] == "busy"
    for _, writer in idle:
        writer.close()
    async with asyncio.timeout(WAIT_S):
        while not (await ask(node, "status", {}))["ok"]:
            pass


async def test_a_row_of_the_store_that_cannot_be_read_is_named_and_nothing_starts(mesh: Mesh) -> None:
    node = await pair(mesh)
    async with asyncio.timeout(WAIT_S):
        await node.ask(GOAL, 30).follow(lambda _: None)
    await mesh.stop("asker")
    for space in ("team", "chat"):
        good = overwrite(node, space, b"\xc1")
        with pytest.raises(StorageError) as fault:
            await mesh.start("asker")
        assert (fault.value.code, bool(fault.value.hint)) == ("damaged", True)
        overwrite(node, space, good)
    await mesh.start("asker")


def overwrite(node: Node, space: str, value: bytes) -> bytes:
    """Put `value` in the one row of `space`; what stood there."""
    with contextlib.closing(SqliteStorage(node.config.home.database)) as storage:
        ((key, before),) = storage.scan(space)
        storage.commit([Save(space, key, value)])
    return before


async def test_while_the_disk_refuses_a_goal_is_refused_with_a_way_out(mesh: Mesh) -> None:
    node = await pair(mesh)
    node.health = StorageError("disk-full", "full", "free some space; the node goes on by itself")
    answer = await ask(node, "ask", {"goal": GOAL})
    assert (answer["code"], answer["hint"]) == ("disk-full", node.health.hint)
    node.health = None
    assert (await ask(node, "ask", {"goal": GOAL, "timeout_s": 30}))["ok"]


async def test_a_goal_whose_team_cannot_end_it_ends_all_the_same(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    node = await pair(mesh)
    monkeypatch.setattr(node.teams_driver, "_committer", Stuck())
    monkeypatch.setattr("ioa_p2p.node.node.OVERTIME_S", 0.0)
    async with asyncio.timeout(WAIT_S):
        assert (await node.ask(GOAL, 2).follow(lambda _: None))["outcome"] == "expired"


class Stuck:
    """A disk that never answers."""

    def submit(self, saves: Any, then: Any) -> None: ...


async def test_teams_are_told_in_the_order_of_their_founding(mesh: Mesh) -> None:
    node = await pair(mesh)
    async with asyncio.timeout(WAIT_S):
        for _ in range(4):
            await node.ask(GOAL, 30).follow(lambda _: None)
    for number, story in enumerate(reversed(node.stories.all())):
        story.started = float(number)
    told = [team["started"] for team in (await ask(node, "teams", {}))["result"]["teams"]]
    assert told == [3.0, 2.0, 1.0, 0.0]
