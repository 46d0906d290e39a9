"""Whole nodes: a task runs once however often it is asked for or however long it takes, and always comes to an end.

Public failures 15, 16 and 20.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.node import node as nodes
from ioa_p2p.node import verbs
from ioa_p2p.node.node import Node
from ioa_p2p.team.tasks import Profile
from tests.node.mesh import Mesh, say, up

WAIT_S = 60.0
LEASE_S = 2.0
SHORT = Profile(lease_s=LEASE_S, beat_s=0.4, grace_s=1.0, turn_s=5.0)
WAITS = """
import os, time
from pathlib import Path
from ioa_p2p.adapters.agent import skill

HERE = Path(__file__).parent

def wait(task):
    with open(HERE / "runs", "a") as runs:
        runs.write(f"{os.getpid()} {task.key.hex()} {task.attempt}\\n")
    while not (HERE / "open").exists():
        time.sleep(0.02)
    return "It is open."
"""
DOOR = """
@skill("door.wait", outputs=["door.opened"], description="Wait at the door until it is opened.", effect="EFFECT")
def at_the_door(task, progress):
    return wait(task)
"""
GOAL = "wait at the door until it is opened"


class Door:
    """An asker and two waiters; what they did is read from outside."""

    def __init__(self, mesh: Mesh, folder: Path) -> None:
        self.mesh, self.folder = mesh, folder

    @property
    def asker(self) -> Node:
        return self.mesh.nodes["asker"]

    @property
    def runs(self) -> list[list[str]]:
        file = self.folder / "runs"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def open(self) -> None:
        (self.folder / "open").touch()

    async def begun(self, times: int = 1) -> None:
        await until(lambda: len(self.runs) == times)

    def at_work(self) -> str:
        """Whose agent runs."""
        return next(name for name, node in self.mesh.nodes.items() if any(node.jobs.load.values()))


@pytest.fixture
async def door(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    """Short leases; request.param: the effect class of waiting."""
    monkeypatch.setitem(nodes.PROFILES, "lan", SHORT)
    target = tmp_path / "door.py"
    target.write_text(WAITS + DOOR.replace("EFFECT", getattr(request, "param", "idempotent")))
    async with Mesh(tmp_path) as mesh:
        mesh.make("asker")
        for name in ("left", "right"):
            mesh.make(name, seeds=("asker",), allow=("asker",), agents=[("door", str(target))])
        await up(mesh, "asker", "left", "right")
        await until(lambda: mesh.nodes["asker"].keeping.count == 2)
        yield Door(mesh, tmp_path)
        (tmp_path / "open").touch()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.02)


async def asked(node: Node, **args: Any) -> dict[str, Any]:
    return (await say(node, "ask", goal=GOAL, timeout_s=50, **args))[0]


async def tasks(node: Node) -> list[dict[str, Any]]:
    return (await say(node, "tasks"))[0]["tasks"]


# -- 15: the client dies between its question and the answer


async def test_a_client_that_asks_again_under_its_key_gets_the_same_task(door: Door) -> None:
    first = asyncio.create_task(asked(door.asker, key="order 7"))
    await door.begun()
    first.cancel()  # its connection is gone
    again = asyncio.create_task(asked(door.asker, key="order 7"))
    await asyncio.sleep(0)
    door.open()
    result = await again
    assert result["answer"] == "It is open."
    assert (await asked(door.asker, key="order 7"))["team"] == result["team"], "also when it is over"
    assert len(await tasks(door.asker)) == len(door.runs) == 1
    with pytest.raises(UsageError) as refused:
        await say(door.asker, "ask", goal="something else", key="order 7")
    assert refused.value.code == "key-used"
    assert (await asked(door.asker, key="order 8"))["team"] != result["team"]


async def test_the_key_holds_though_the_node_that_was_asked_died_too(door: Door) -> None:
    first = asyncio.create_task(asked(door.asker, key="order 7"))
    await door.begun()
    (before,) = await tasks(door.asker)
    first.cancel()
    await door.mesh.crash("asker")
    await door.mesh.stop("asker")
    await up(door.mesh, "asker")
    again = asyncio.create_task(asked(door.asker, key="order 7"))
    await asyncio.sleep(0)
    door.open()
    result = await again
    assert (result["team"], result["answer"]) == (before["team"], "It is open.")
    assert len(await tasks(door.asker)) == 1
    assert len({key for _, key, _ in door.runs}) == 1


# -- 16: a job that outlasts its lease


def silent(node: Node, patch: pytest.MonkeyPatch) -> None:
    """It works on, and no report of it leaves: as a process whose beats are stuck."""
    send = node.teams_driver._send
    patch.setattr(node.teams_driver, "_send", lambda to, message: None if is_report(message) else send(to, message))


def is_report(message: Any) -> bool:
    return type(message).__name__ == "Report"


async def until_leases_passed(node: Node, count: float) -> None:
    """By the clock that leases are counted by."""
    end = nodes.clock.now().boot + count * LEASE_S
    await until(lambda: nodes.clock.now().boot > end)


async def test_a_job_of_three_leases_with_beats_runs_once_though_another_could_do_it(door: Door) -> None:
    asking = asyncio.create_task(asked(door.asker))
    await door.begun()
    await until_leases_passed(door.asker, 3)
    door.open()
    assert (await asking)["answer"] == "It is open."
    assert [attempt for _, _, attempt in door.runs] == ["1"]


async def test_a_job_whose_beats_stop_is_moved_under_its_key(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = asyncio.create_task(asked(door.asker))
    await door.begun()
    first = door.at_work()
    silent(door.mesh.nodes[first], monkeypatch)
    await door.begun(2)
    assert [attempt for _, _, attempt in door.runs] == ["1", "2"]
    assert len({key for _, key, _ in door.runs}) == 1
    door.open()
    assert (await asking)["answer"] == "It is open."
    (task,) = await tasks(door.asker)
    assert task["node"] != verbs.node_text(door.mesh.key(first).node)


@pytest.mark.parametrize("door", ["once"], indirect=True)
async def test_a_job_that_may_run_once_is_never_moved_but_ends_as_unknown(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = asyncio.create_task(asked(door.asker))
    await door.begun()
    silent(door.mesh.nodes[door.at_work()], monkeypatch)
    result = await asking
    assert result["outcome"] != "concluded"
    (task,) = await tasks(door.asker)
    assert (task["state"], task["final"]) == ("unknown", True)
    assert len(door.runs) == 1


# -- 20: a worker that dies silently after its accept


@pytest.mark.parametrize("door", ["once"], indirect=True)
async def test_the_task_of_a_worker_that_dies_silently_is_shown_and_can_be_cancelled(door: Door) -> None:
    asking = asyncio.create_task(asked(door.asker))
    await door.begun()
    first = door.at_work()
    (task,) = await tasks(door.asker)
    await door.mesh.crash(first)
    shown = (await say(door.asker, "task", task=task["task"]))[0]
    assert (shown["node"], shown["final"]) == (verbs.node_text(door.mesh.key(first).node), False)
    await say(door.asker, "cancel", task=task["task"])
    result = await asking
    assert result["outcome"] != "concluded"
    (end,) = await tasks(door.asker)
    assert (end["state"], end["final"]) == ("cancelled", True)
    assert len(door.runs) == 1


@pytest.mark.parametrize("door", ["once"], indirect=True)
async def test_the_task_of_a_worker_that_dies_silently_comes_to_its_end_though_nobody_may_do_it_again(
    door: Door,
) -> None:
    asking = asyncio.create_task(asked(door.asker))
    await door.begun()
    await door.mesh.crash(door.at_work())
    assert (await asking)["outcome"] != "concluded"
    (end,) = await tasks(door.asker)
    assert (end["state"], end["final"]) == ("unknown", True)
    assert len(door.runs) == 1


async def test_the_task_of_a_worker_that_dies_silently_moves_to_another(door: Door) -> None:
    asking = asyncio.create_task(asked(door.asker))
    await door.begun()
    first = door.at_work()
    await door.mesh.crash(first)
    await door.begun(2)
    door.open()
    assert (await asking)["answer"] == "It is open."
    (task,) = await tasks(door.asker)
    assert task["state"] == "succeeded"
    assert task["node"] != verbs.node_text(door.mesh.key(first).node)
