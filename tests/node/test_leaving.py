"""Nodes that go away: cleanly, without a word, and back again. Whole nodes over memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.node import verbs
from ioa_p2p.node.node import Node
from ioa_p2p.wire.ids import node_text
from ioa_p2p.wire.records import AgentRecord
from tests.node.mesh import HELLO, Mesh

WAIT_S = 60.0


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    """An asker and two greeters, all published and heard of."""
    async with Mesh(tmp_path) as made:
        made.make("asker")
        for name in ("left", "right"):
            made.make(name, seeds=("asker",), agents=[("hello", HELLO), ("also", HELLO)])
        await asyncio.gather(*map(made.start, ("asker", "left", "right")))
        await until(
            lambda: all(made.nodes[name].publishing.told.keys() == {"hello", "also"} for name in ("left", "right"))
        )
        await found_of(made, {"left", "right"})
        yield made


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.02)


async def say(node: Node, verb: str, **args: Any) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_S):
        return await verbs.handlers(node)[verb](args, lambda event: None)


async def found_of(mesh: Mesh, wanted: set[str]) -> dict[str, Any]:
    """A search that offers agents of exactly these nodes; the first may come before all is known."""
    nodes = {node_text(mesh.key(name).node) for name in wanted}
    async with asyncio.timeout(WAIT_S):
        while True:
            found = await say(mesh.nodes["asker"], "find", words="hello greet", timeout_s=10)
            if {hit["node"] for hit in found["ranked"]} == nodes and all(hit["answered"] for hit in found["ranked"]):
                return found


def records_of(mesh: Mesh, name: str) -> list[AgentRecord]:
    held = mesh.nodes["asker"].directory.held_records()
    return [record for record in held if record.node == mesh.key(name).node]


async def test_a_node_that_stops_is_known_to_have_left_and_costs_no_search_a_wait(mesh: Mesh) -> None:
    await mesh.stop("left")
    await until(lambda: len(gone := records_of(mesh, "left")) == 2 and all(record.gone for record in gone))
    found = await say(mesh.nodes["asker"], "find", words="hello greet", timeout_s=10)
    assert {hit["node"] for hit in found["ranked"]} == {node_text(mesh.key("right").node)}
    assert found["silent"] == 0
    with pytest.raises(UsageError) as left:
        await say(mesh.nodes["asker"], "show", agent=f"hello@{node_text(mesh.key('left').node)}")
    assert left.value.code == "no-such-agent"


async def test_a_node_that_comes_right_back_is_found_at_once_under_a_larger_number(mesh: Mesh) -> None:
    before = max(record.seq for record in records_of(mesh, "left"))
    await mesh.stop("left")
    await mesh.start("left")
    await until(lambda: any(not record.gone and record.seq > before for record in records_of(mesh, "left")))
    found = await found_of(mesh, {"left", "right"})
    assert found["silent"] == 0


async def test_a_node_that_crashed_is_left_out_told_of_and_remembered(mesh: Mesh) -> None:
    await mesh.crash("left")
    found = await found_of(mesh, {"right"})
    asker, left = mesh.nodes["asker"], mesh.key("left").node
    assert found["silent"] == 2
    assert asker.silence.has(left)
    dial = asker.neighbourhood.linked(left, (), WAIT_S)
    assert not await asyncio.wait_for(dial, WAIT_S / 2), "it is not dialled again"


async def test_a_crashed_node_that_is_back_is_offered_again_without_waiting(mesh: Mesh) -> None:
    await mesh.crash("left")
    await found_of(mesh, {"right"})
    await mesh.stop("left")
    await mesh.start("left")
    await found_of(mesh, {"left", "right"})
    assert not mesh.nodes["asker"].silence.has(mesh.key("left").node)


async def test_a_stop_does_not_wait_long_when_nobody_answers(tmp_path: Path) -> None:
    async with Mesh(tmp_path) as mesh:
        mesh.make("alone", agents=[("hello", HELLO)])
        await mesh.start("alone")
        async with asyncio.timeout(WAIT_S):
            await mesh.stop("alone")


async def test_a_search_and_its_ranking_end_within_the_time_given(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    asker = mesh.nodes["asker"]

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(asker.sense, "call", never)
    found = await say(asker, "find", words="hello greet", timeout_s=3)
    assert found["hits"] > 0
