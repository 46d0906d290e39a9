"""Whole nodes: they find each other, form a team, do the job; strangers get nothing."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import NetError, StorageError, UsageError
from ioa_p2p.net.memory import MemoryHub, MemoryLinks
from ioa_p2p.net.ports import Frames
from ioa_p2p.node import verbs
from ioa_p2p.node.config import Config
from ioa_p2p.node.dialable import dialable
from ioa_p2p.node.home import Home
from ioa_p2p.node.node import Node
from ioa_p2p.team.events import Halted
from ioa_p2p.wire import limits
from ioa_p2p.wire.link import VERSION, Hello
from tests.node.mesh import HELLO, WAIT_S, Mesh, say, up

GOAL = "greet somebody with a hello"


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    async with Mesh(tmp_path) as made:
        yield made


async def three(mesh: Mesh, *, allowed: bool = True) -> None:
    """An asker and two greeters."""
    mesh.make("asker")
    for name in ("left", "right"):
        mesh.make(name, seeds=("asker",), allow=("asker",) if allowed else (), agents=[("hello", HELLO)])
    await up(mesh, "asker", "left", "right")


async def test_a_goal_is_met_by_nodes_that_found_each_other(mesh: Mesh) -> None:
    await three(mesh)
    result, events = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    assert (result["outcome"], result["why"]) == ("concluded", "done")
    assert result["credits"][0]["skill"] == "text.greet"
    kinds = {event["kind"] for event in events}
    assert kinds >= {"started", "found", "bid", "roster", "elected", "phase", "said", "task", "concluded"}


async def test_a_node_alone_uses_its_only_agent_and_finds_it_once(mesh: Mesh) -> None:
    mesh.make("alone", agents=[("hello", HELLO)])
    await up(mesh, "alone")
    result, events = await say(mesh.nodes["alone"], "ask", goal=GOAL, timeout_s=30)
    assert (result["outcome"], result["why"]) == ("concluded", "done")
    assert result["answer"] == "Hello, hello!", "the text it made, not just that it is done"
    assert [event["agent"] for event in events if event["kind"] == "found"] == ["hello"]
    assert [len(event["members"]) for event in events if event["kind"] == "roster"] == [1]


async def test_whoever_asked_is_told_when_this_node_can_follow_its_team_no_more(mesh: Mesh) -> None:
    mesh.make("alone", agents=[("hello", HELLO)])
    await up(mesh, "alone")
    node = mesh.nodes["alone"]

    asked = asyncio.ensure_future(say(node, "ask", goal=GOAL, timeout_s=30))
    async with asyncio.timeout(WAIT_S):
        while not node.teams.teams:
            await asyncio.sleep(0)
    node.teamwork.on_event(Halted(next(iter(node.teams.teams)), "update it"))
    result, events = await asked
    assert (result["outcome"], result["why"]) == ("halted", "update it")
    assert events[-1]["kind"] == "halted"


async def test_a_node_works_for_nobody_it_was_not_told_to_work_for(mesh: Mesh) -> None:
    await three(mesh, allowed=False)
    result, events = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    assert (result["outcome"], result["why"]) == ("failed", "nobody-fits")
    assert {event["reason"] for event in events if event["kind"] == "bid"} == {"not-allowed"}
    assert not mesh.nodes["left"].teams.teams


async def test_a_restarted_asker_still_tells_the_whole_story(mesh: Mesh) -> None:
    await three(mesh)
    first, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    await mesh.stop("asker")
    await mesh.start("asker")
    again, events = await say(mesh.nodes["asker"], "resume")
    assert {key: again[key] for key in ("team", "outcome", "answer", "files")} == {
        key: first[key] for key in ("team", "outcome", "answer", "files")
    }
    assert {event["kind"] for event in events} >= {"roster", "phase", "task", "concluded"}


async def test_a_team_that_is_over_for_long_leaves_nothing_on_the_disk(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three(mesh)
    first, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    second, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    await mesh.stop("asker")
    monkeypatch.setattr(limits, "TEAMS_OVER_MAX", 1)
    asker = await mesh.start("asker")
    async with asyncio.timeout(WAIT_S):
        while any(first["team"] in space for space in asker.storage.spaces()):
            await asyncio.sleep(0.05)
    told, _ = await say(asker, "teams")
    assert [team["team"] for team in told["teams"]] == [second["team"]]
    assert {space.split("/")[0] for space in asker.storage.spaces() if second["team"] in space} >= {"chat", "decision"}


async def test_a_goal_nobody_can_meet_ends_with_a_reason(mesh: Mesh) -> None:
    await three(mesh)
    result, _ = await say(mesh.nodes["asker"], "ask", goal="solder the zinc gutter", timeout_s=30)
    assert (result["outcome"], result["why"]) == ("failed", "nobody-found")
    assert "Nobody was found" in result["answer"]
    told, _ = await say(mesh.nodes["asker"], "teams")
    assert [(team["phase"], team["outcome"]) for team in told["teams"]] == [("", "failed")]
    status, _ = await say(mesh.nodes["asker"], "status")
    assert status["teams_open"] == 0


async def test_find_tells_who_can_do_it_and_how_fresh_the_word_is(mesh: Mesh) -> None:
    await three(mesh)
    async with asyncio.timeout(WAIT_S):
        while True:
            result, events = await say(mesh.nodes["asker"], "find", words="hello", timeout_s=10)
            if result["hits"] == 2:
                break
    assert {event["agent"] for event in events} == {"hello"}
    assert all(0 <= event["age_s"] < WAIT_S for event in events)


async def test_find_without_a_word_says_what_to_give(mesh: Mesh) -> None:
    mesh.make("alone")
    await up(mesh, "alone")
    with pytest.raises(UsageError) as fault:
        await say(mesh.nodes["alone"], "find", words="?!")
    assert fault.value.code == "empty-query"
    assert fault.value.hint


async def test_a_locked_folder_refuses_a_second_node_and_names_the_first(mesh: Mesh) -> None:
    mesh.make("only")
    await up(mesh, "only")
    with pytest.raises(StorageError) as fault:
        await mesh.start("only")
    assert fault.value.code == "locked"


async def test_a_port_in_use_is_said_and_leaves_nothing_open(mesh: Mesh) -> None:
    first, second = mesh.make("first"), mesh.make("second")
    await up(mesh, "first")
    node = Node(second, datagrams=mesh._datagrams(first), links=mesh._links(second))
    with pytest.raises(NetError) as fault:
        await node.__aenter__()
    assert fault.value.code == "port-in-use"
    await up(mesh, "second")


async def test_an_agent_that_cannot_come_up_is_named_and_the_node_goes_on(mesh: Mesh) -> None:
    mesh.make("lame", agents=[("broken", "no/such/file.py")])
    await up(mesh, "lame")
    status, _ = await say(mesh.nodes["lame"], "status")
    assert "broken" in status["agents_failed"]
    checks, _ = await say(mesh.nodes["lame"], "doctor")
    assert any(check["name"] == "agent broken" and not check["ok"] and check["hint"] for check in checks["checks"])


@pytest.mark.parametrize("verb", ["ask", "find"])
async def test_what_is_asked_in_the_first_moment_waits_until_the_node_has_joined(mesh: Mesh, verb: str) -> None:
    mesh.make("host", agents=[("hello", HELLO)])
    mesh.make("asker", seeds=("host",))
    mesh.allow("host", "asker")
    await up(mesh, "host")
    node = await mesh.start("asker")
    assert not node.ready.is_set()
    if verb == "ask":
        result, _ = await say(node, "ask", goal=GOAL, timeout_s=30)
        assert result["outcome"] == "concluded", result
    else:
        result, _ = await say(node, "find", words="hello", timeout_s=30)
        assert result["hits"] == 1


@pytest.mark.parametrize("kind", ["started", "found"])
async def test_a_goal_cancelled_at_any_point_before_its_team_stands_stays_cancelled(mesh: Mesh, kind: str) -> None:
    """Public failure 20, as far as it has no task yet."""
    await three(mesh)
    asker, told = mesh.nodes["asker"], asyncio.Queue[dict[str, Any]]()
    asking = asyncio.create_task(verbs.handlers(asker)["ask"]({"goal": GOAL, "timeout_s": 30}, told.put_nowait))
    async with asyncio.timeout(WAIT_S):
        while (await told.get())["kind"] != kind:
            pass
        await say(asker, "cancel", team=asker.stories.all()[-1].team.hex())
        assert (await asking)["outcome"] == "cancelled"
        await asyncio.gather(*asker._pursuits)
    assert asker.teams.teams == {}
    assert asker.teams._launches == {}


async def test_a_node_alone_without_seeds_is_healthy_and_is_told_how_to_join_others(mesh: Mesh) -> None:
    mesh.make("alone")
    await up(mesh, "alone")
    told, _ = await say(mesh.nodes["alone"], "doctor")
    assert [check for check in told["checks"] if not check["ok"]] == []
    assert ["ioa-p2p id" in check["detail"] for check in told["checks"] if check["name"] == "seeds"] == [True]
    status, _ = await say(mesh.nodes["alone"], "status")
    assert ["no seed is known" in note for note in status["notes"]] == [True]
    assert [check["detail"] for check in told["checks"] if check["name"] == "ready"] == ["alone: nobody found yet"]


async def test_a_node_whose_seeds_are_silent_is_told_so_once_and_nothing_of_firewalls(mesh: Mesh) -> None:
    mesh.make("gone")
    mesh.make("alone", seeds=("gone",))
    node = await mesh.start("alone")
    async with asyncio.timeout(WAIT_S):
        while not node.access.seeds.known:
            await asyncio.sleep(0)
    told, _ = await say(node, "doctor")
    wrong = {check["name"]: check["hint"] for check in told["checks"] if not check["ok"]}
    assert set(wrong) - {"ready"} == {"seeds"}
    assert "its mesh 'test' too" in wrong["seeds"]
    status, _ = await say(node, "status")
    assert ["no seed has answered yet" in note and "its mesh 'test' too" in note for note in status["notes"]] == [True]


def test_a_node_that_listens_everywhere_names_an_address_that_others_can_dial() -> None:
    addresses = ("/ip4/192.0.2.7/tcp/4701/p2p/x", "/ip4/127.0.0.1/tcp/4701/p2p/x")
    assert dialable("0.0.0.0", addresses) == "192.0.2.7"
    assert dialable("127.0.0.1", addresses) == "127.0.0.1"
    assert dialable("::", ()) == "::"


async def test_two_nodes_cannot_tell_yet_whether_strangers_reach_them(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh.make("first")
    mesh.make("second", seeds=("first",))
    await up(mesh, "first", "second")
    monkeypatch.setattr(Node, "reachable", False)
    told, _ = await say(mesh.nodes["second"], "doctor")
    assert [check["name"] for check in told["checks"] if not check["ok"]] == []


async def test_a_node_that_strangers_do_not_reach_is_told_to_open_its_port(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three(mesh)
    monkeypatch.setattr(Node, "reachable", False)
    told, _ = await say(mesh.nodes["left"], "doctor")
    assert [check["name"] for check in told["checks"] if "firewall" in check["hint"]] == ["reachable"]


async def test_garbage_at_every_port_is_counted_and_the_node_lives(mesh: Mesh) -> None:
    await three(mesh)
    node = mesh.nodes["asker"]
    peer = mesh.key("left").node

    node.switch.on_datagrams(
        [(node.datagrams.endpoint, data) for data in (b"", b"\x00" * 1_200, b"\x01\x01" + b"x" * 90)]
    )
    node.switch.on_events(
        [Frames(peer, [(kind, body) for kind in range(256) for body in (b"", b"\xc1", b"\x93" * 40)])]
    )
    status, _ = await say(node, "status")
    assert sum(count for name, count in status["counters"].items() if name.startswith("switch.")) > 3
    result, _ = await say(node, "ask", goal=GOAL, timeout_s=30)
    assert result["outcome"] == "concluded"


async def test_a_node_without_a_fixed_port_comes_back_on_its_last_one(tmp_path: Path) -> None:
    home = Home("only", tmp_path / "only", tmp_path / "only")
    home.make_folders()
    home.make_key()

    async def port() -> int:
        links = MemoryLinks(MemoryHub(), bytes(32), Hello(VERSION, bytes(16), 1), random.Random(1))
        async with Node(Config(home=home), links=links) as node:
            return node.datagrams.endpoint.port

    first, second = await port(), await port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", first))
        third = await port()
    assert first == second != third
