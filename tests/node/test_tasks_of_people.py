"""Whole nodes: tasks that need a person, tasks that are watched, goals that may cost so much."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.node import life as lives
from ioa_p2p.node.arguments import budget
from ioa_p2p.node.node import Node
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team.life import Life
from ioa_p2p.wire import limits
from ioa_p2p.wire.spending import Allowance
from tests.node.mesh import Mesh, say, up

AGENT = '''
"""An agent that greets."""
import os, signal
from ioa_p2p.adapters.agent import Delta, Result, skill
from ioa_p2p.adapters.base import Progress
from ioa_p2p.wire.spending import Spent

@skill("text.greet", outputs=["text.greeting"], description="Greets somebody with a hello.", effect="pure")
def greet(task):
    yield "Hello so far"
    yield Progress(0.5, "half way", Spent(40, 0, 1))
    if "deadly" in task.goal:
        os.kill(os.getpid(), signal.SIGKILL)
    yield Result({"text.greeting": f"Hello with {task.budget.tokens}"}, spent=Spent(60, 1500, 1))
'''
GOAL = "greet somebody with a hello"


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    async with Mesh(tmp_path) as made:
        target = tmp_path / "greeter.py"
        target.write_text(AGENT)
        made.make("asker")
        made.make("worker", seeds=("asker",), allow=("asker",), agents=[("greeter", str(target))])
        await up(made, "asker", "worker")
        yield made


async def letters(node: Node) -> list[dict[str, Any]]:
    return (await say(node, "tasks", dead=True))[0]["tasks"]


async def test_a_dead_letter_is_seen_on_both_sides_until_it_is_forgotten(mesh: Mesh) -> None:
    result, _ = await say(mesh.nodes["asker"], "ask", goal=f"{GOAL}, deadly", timeout_s=40)
    assert result["outcome"] != "concluded"
    for name in ("asker", "worker"):
        (letter,) = await letters(mesh.nodes[name])
        assert (letter["state"], letter["skill"], letter["ours"]) == ("dead-letter", "text.greet", name == "asker")
        assert "died twice. worker-died" in letter["reason"]
        assert letter["partial"] == "Hello so far"
        assert (await say(mesh.nodes[name], "task", task=letter["task"][:8]))[0]["state"] == "dead-letter"
        assert (await say(mesh.nodes[name], "status"))[0]["letters"] == 1
    with pytest.raises(UsageError, match="only the node that asked"):
        await say(mesh.nodes["worker"], "retry", task=letter["task"])
    await say(mesh.nodes["worker"], "forget", task=letter["task"][:8])
    for name, there in (("worker", 0), ("asker", 1)):
        await mesh.stop(name)
        await mesh.start(name)
        assert len(await letters(mesh.nodes[name])) == there, "also after the log was told again"
    with pytest.raises(UsageError, match="no dead letter"):
        await say(mesh.nodes["worker"], "forget", task=letter["task"])
    again, _ = await say(mesh.nodes["asker"], "retry", task=letter["task"], timeout_s=5)
    assert (again["goal"], again["team"] != letter["team"]) == (f"{GOAL}, deadly", True)
    assert await letters(mesh.nodes["asker"]) == []


async def test_what_a_goal_cost_is_counted_and_shown(mesh: Mesh) -> None:
    most = {"tokens": 200, "money": 5_000, "calls": 4}
    result, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30, budget=most)
    assert (result["outcome"], result["cost"]) == ("concluded", {"tokens": 60, "money": 1_500, "calls": 1})
    assert result["answer"] == "Hello with 100", "half of it: one share stays for what comes after"
    team, _ = await say(mesh.nodes["asker"], "team", team=result["team"])
    assert (team["budget"], team["cost"]) == (most, result["cost"])
    assert (team["cost_untold"]["tokens"], team["cost_beyond"]["tokens"]) == (0, 0)
    task, _ = await say(mesh.nodes["asker"], "task", task=team["tasks"][0]["task"])
    assert (task["budget"]["tokens"], task["cost"]["tokens"]) == (100, 60)


async def test_a_run_that_costs_more_than_its_part_is_stopped_and_the_team_says_so(mesh: Mesh) -> None:
    result, events = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30, budget={"tokens": 30})
    assert result["outcome"] == "failed"
    assert any("over budget: its tokens are spent" in event.get("note", "") for event in events)
    team, _ = await say(mesh.nodes["asker"], "team", team=result["team"])
    assert team["cost"]["tokens"] + team["cost_untold"]["tokens"] <= 30
    assert team["cost_beyond"]["tokens"] >= 10


@pytest.mark.parametrize("told", [5, {"tokens": -1}, {"money": 0.5}, {"calls": True}, {"agents": 65}])
def test_a_budget_of_no_sense_is_refused_by_name(told: Any) -> None:
    with pytest.raises(UsageError, match=r"budget|agents"):
        budget({"budget": told}, "budget")


def test_without_a_word_of_it_nothing_limits_but_the_number_of_agents() -> None:
    assert budget({}, "budget") == Allowance(agents=limits.AGENTS_BELOW_MAX)
    assert budget({"budget": {"calls": 3, "agents": 5}}, "budget") == Allowance(None, None, 3, 5)


async def test_a_task_is_watched_by_number_through_a_start_of_the_node(mesh: Mesh) -> None:
    asker = mesh.nodes["asker"]
    result, _ = await say(asker, "ask", goal=GOAL, timeout_s=30)
    task = (await say(asker, "team", team=result["team"]))[0]["tasks"][0]["task"]
    end, events = await say(asker, "watch", task=task)
    assert (end["state"], events[0]) == ("succeeded", {"kind": "watching", "task": task, "life": asker.boot})
    assert [event["seq"] for event in events[1:]] == list(range(1, len(events)))
    assert [event["state"] for event in events[1:]][-1] == "succeeded"
    _, rest = await say(asker, "watch", task=task, life=asker.boot, after=events[-2]["seq"])
    assert rest[1:] == events[-1:]
    await mesh.stop("asker")
    await mesh.start("asker")
    _, retold = await say(mesh.nodes["asker"], "watch", task=task, life=asker.boot, after=2)
    assert retold[1] == {"kind": "gap", "from": 3, "to": None}
    assert retold[-1]["state"] == "succeeded"


def test_a_life_knows_how_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = MemoryStorage()
    monkeypatch.setattr(lives, "boot_id", lambda: b"one")
    assert lives.begin(disk) == Life(b"one"), "the first"
    assert lives.begin(disk) == Life(b"one"), "after a crash"
    lives.end(disk, Life(b"one"))
    monkeypatch.setattr(lives, "boot_id", lambda: b"two")
    assert lives.begin(disk) == Life(b"two", clean=True)
    assert lives.begin(disk) == Life(b"two"), "and a crash again"


def test_the_boot_of_the_os_has_a_name_that_stays() -> None:
    assert lives.boot_id() == lives.boot_id() != b""


async def test_a_node_that_was_stopped_says_so_to_its_next_life(mesh: Mesh) -> None:
    await mesh.stop("worker")
    assert (await mesh.start("worker")).life.clean
