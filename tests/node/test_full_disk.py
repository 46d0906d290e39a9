"""T19 with whole nodes: the disk of one fills up while a team works; it says so, and goes on once there is room."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.node import checks
from ioa_p2p.node.node import Node
from ioa_p2p.storage.database import storage_error
from ioa_p2p.wire import limits
from tests.node.mesh import Mesh, up
from tests.node.test_degraded import SLOW, found, until

WAIT_S = 60.0
GOAL = "wait at the door until it is opened"


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    """An asker, and two that can wait at the door."""
    agent = tmp_path / "slow.py"
    agent.write_text(SLOW)
    async with Mesh(tmp_path) as made:
        made.make("asker")
        for name in ("worker", "spare"):
            made.make(name, seeds=("asker",), allow=("asker",), agents=[("hello", str(agent))])
        await up(made, "asker", "worker", "spare")
        await until(lambda: made.nodes["asker"].keeping.count == 2)
        yield made


def fill(node: Node, patch: pytest.MonkeyPatch) -> None:
    """What the storage says of a file system that takes not one byte more."""

    def refuse(saves: Sequence[Save]) -> None:
        if saves:
            raise storage_error("disk-full", node.config.home.database, "database or disk is full")

    patch.setattr(node.storage, "commit", refuse)


def at_work(mesh: Mesh) -> Node | None:
    """Whose agent runs."""
    return next((node for node in mesh.nodes.values() if any(node.jobs.load.values())), None)


async def asked(mesh: Mesh, folder: Path) -> tuple[Any, Node]:
    """A goal's story, and the worker that waits at the door for it."""
    story = mesh.nodes["asker"].ask(GOAL, 55)
    await until((folder / "waits").exists)
    worker = at_work(mesh)
    assert worker is not None
    return story, worker


async def end_of(story: Any) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_S):
        return await story.follow(lambda _: None)


async def test_a_worker_whose_disk_fills_says_so_and_tells_its_result_once_there_is_room(
    mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, worker = await asked(mesh, tmp_path)
    fill(worker, monkeypatch)
    (tmp_path / "open").touch()
    await until(lambda: worker.health is not None)
    assert "full" in checks.degraded(worker)
    assert not found(worker, "storage")["ok"]
    assert story.result is None, "what is not saved is not told"
    monkeypatch.undo()
    assert (await end_of(story))["answer"] == "It is open."
    assert worker.health is None
    assert found(worker, "storage")["ok"]
    runs = [event for event in story.events if event["kind"] == "task" and event["state"] == "succeeded"]
    assert [event["attempt"] for event in runs] == [1], "the very run that ended while the disk was full"
    await until(lambda: worker.teams.teams[story.team].state.conclusion is not None)


async def test_nothing_that_was_told_is_lost_by_a_node_that_dies_with_a_full_disk(
    mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, worker = await asked(mesh, tmp_path)
    name = next(name for name, node in mesh.nodes.items() if node is worker)
    fill(worker, monkeypatch)
    (tmp_path / "open").touch()
    await until(lambda: worker.health is not None)
    before = worker.teams.teams[story.team].election.commit_index
    await mesh.crash(name)
    await mesh.stop(name)
    again = await mesh.start(name)
    assert checks.degraded(again) == ""
    assert again.teams.teams[story.team].election.commit_index <= before, "only what was saved"
    assert (await end_of(story))["answer"] == "It is open."
    await until(lambda: again.teams.teams[story.team].state.conclusion is not None)


async def test_a_line_that_the_talk_does_not_take_is_told_and_stops_no_goal(
    mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHAT_CHAIN_ENTRIES_MAX", 0)
    (tmp_path / "open").touch()
    story = mesh.nodes["asker"].ask(GOAL, 55)
    assert (await end_of(story))["answer"] == "It is open."
    told = [event for node in mesh.nodes.values() for event in node.stories.of(story.team).events]
    assert any(event["kind"] == "unsaid" and "takes no more of ours" in event["reason"] for event in told)
