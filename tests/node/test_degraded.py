"""Whole nodes whose disk failed them: they start anyway, say so, and their goals still end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import StorageError
from ioa_p2p.gossip.events import Forked
from ioa_p2p.node import checks
from ioa_p2p.node.node import Node
from tests.node.mesh import HELLO, Mesh

WAIT_S = 60.0
GOAL = "greet somebody with a hello"
SLOW = """
import time
from pathlib import Path
from ioa_p2p.adapters.agent import skill

@skill("door.wait", outputs=["door.opened"], description="Wait at the door until it is opened.", effect="idempotent")
def wait(task, progress):
    here = Path(__file__).parent
    (here / "waits").touch()
    while not (here / "open").exists():
        time.sleep(0.02)
    return "It is open."
"""


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    async with Mesh(tmp_path) as made:
        yield made


async def pair(mesh: Mesh, target: str = HELLO) -> Node:
    """An asker, and one that works for it."""
    mesh.make("asker")
    mesh.make("worker", seeds=("asker",), allow=("asker",), agents=[("hello", target)])
    await asyncio.gather(mesh.start("asker"), mesh.start("worker"))
    await ready(mesh)
    return mesh.nodes["asker"]


async def ready(mesh: Mesh) -> None:
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*(node.ready.wait() for node in mesh.nodes.values()))


async def reach(node: Node, goal: str = GOAL) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_S):
        return await node.ask(goal, 40).follow(lambda _: None)


async def until(condition: Any) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.02)


def found(node: Node, name: str) -> dict[str, Any]:
    return next(check for check in checks.run(node) if check["name"] == name)


async def test_a_node_whose_database_is_garbage_starts_says_so_and_works_on(mesh: Mesh) -> None:
    asker = await pair(mesh)
    assert (await reach(asker))["outcome"] == "concluded"
    assert checks.degraded(mesh.nodes["worker"]) == ""
    assert found(mesh.nodes["worker"], "memory")["ok"]
    await mesh.stop("worker")
    database = mesh.nodes["worker"].config.home.database
    database.write_bytes(b"garbage" * 1_000)
    worker = await mesh.start("worker")
    assert "the node's memory was damaged" in checks.degraded(worker)
    assert not found(worker, "memory")["ok"]
    assert "node.db.damaged-" in found(worker, "memory")["hint"]
    assert any("damaged" in text for text in worker.alarms.texts)
    await ready(mesh)
    assert (await reach(asker))["outcome"] == "concluded"


async def test_a_member_that_loses_its_memory_in_the_middle_of_a_job_joins_again_and_learns_its_end(
    mesh: Mesh, tmp_path: Path
) -> None:
    agent = tmp_path / "slow.py"
    agent.write_text(SLOW)
    asker = await pair(mesh, str(agent))
    mesh.make("spare", seeds=("asker",), allow=("asker",), agents=[("hello", str(agent))])
    await mesh.start("spare")
    await ready(mesh)
    await until(lambda: asker.keeping.count == 2)
    story = asker.ask("wait at the door until it is opened", 50)
    await until((tmp_path / "waits").exists)
    assert len(asker.teams.teams[story.team].state.roster.voters) == 3, "two are a majority without the one that forgot"
    await mesh.crash("worker")
    await mesh.stop("worker")
    mesh.nodes["worker"].config.home.database.write_bytes(b"garbage" * 1_000)
    worker = await mesh.start("worker")
    await until(lambda: story.team in worker.teams.teams)
    member = worker.teams.teams[story.team]
    assert not member.election.may_vote
    assert "it has no vote in 1 open teams" in checks.degraded(worker)
    (tmp_path / "open").touch()
    async with asyncio.timeout(WAIT_S):
        result = await story.follow(lambda _: None)
    assert (result["outcome"], result["answer"]) == ("concluded", "It is open.")
    await until(lambda: member.state.conclusion is not None)


async def test_the_first_goal_on_a_full_disk_ends_at_once_with_a_clear_error_and_the_next_works_when_it_is_freed(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker = await pair(mesh)

    def refuse(saves: Any) -> None:
        if saves:
            raise StorageError("disk-full", "no room left", "free some space")

    with monkeypatch.context() as patch:
        patch.setattr(asker.storage, "commit", refuse)
        result = await reach(asker)
        assert result["outcome"] == "failed"
        assert "no room left (free some space)" in result["answer"]
        assert "no room left" in checks.degraded(asker)
        with pytest.raises(StorageError):
            asker.ask(GOAL, 10)
    await until(lambda: asker.health is None)
    assert (await reach(asker))["outcome"] == "concluded"
    assert [story.result and story.result["outcome"] for story in asker.stories.all()] == ["failed", "concluded"]


async def test_our_own_talk_with_two_histories_is_an_alarm_of_ours(mesh: Mesh) -> None:
    mesh.make("alone")
    node = await mesh.start("alone")
    node._on_gossip(Forked(bytes(16), node.key.node, 3))
    ((text, hint),) = node.alarms.faults
    assert "two histories" in text
    assert "stop one of them" in hint
