"""Teams of whole nodes that change while they work: an agent comes in and does a task, a node is put out, one stops."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.team.team import Team
from ioa_p2p.wire.ids import node_text
from tests.node.mesh import HELLO, WAIT_S, Mesh, say, up

GOAL = "greet somebody with a hello"
SLOW = """
import time

from ioa_p2p.adapters.agent import skill


@skill("text.greet", outputs=["text.greeting"], description="Say hello to whoever the goal ends with.")
def greet(task, progress):
    time.sleep(60)
"""


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    """A goal that `slow` works on for a minute, and `late`, which could do it at once and was not asked."""
    (tmp_path / "slow.py").write_text(SLOW)
    async with Mesh(tmp_path) as made:
        made.make("asker")
        made.make("slow", seeds=("asker",), allow=("asker",), agents=[("hello", str(tmp_path / "slow.py"))])
        made.make("late", seeds=("asker",), allow=("asker",), agents=[("hello", HELLO)])
        made.allow("asker", "slow", "late")
        await up(made, "asker", "slow")
        yield made


class Asked:
    """The goal under way, and what is told of it."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.answer = asyncio.create_task(say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=50))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await asyncio.sleep(0.02)

    def team(self, name: str = "asker") -> Team:
        return next(iter(self.mesh.nodes[name].teams.teams.values()))

    def is_working(self) -> bool:
        teams = self.mesh.nodes["asker"].teams.teams.values()
        return any(row.state.value == "offered" for team in teams for row in team.state.tasks.values())

    async def begin(self) -> str:
        await self.until(self.is_working)
        return self.team().team.hex()

    def key(self, name: str) -> str:
        return node_text(self.mesh.key(name).node)


async def add_late(mesh: Mesh, asked: Asked) -> str:
    """The newcomer votes."""
    team = await asked.begin()
    await up(mesh, "late")
    await say(mesh.nodes["asker"], "team-add", team=team[:8], agent=f"hello@{asked.key('late')}", may_coordinate=True)
    await asked.until(lambda: mesh.key("late").node in asked.team().state.standing.voters)
    return team


async def test_a_newcomer_does_the_task_of_one_that_is_put_out(mesh: Mesh) -> None:
    asked = Asked(mesh)
    team = await add_late(mesh, asked)
    removed, _ = await say(mesh.nodes["asker"], "team-remove", team=team[:8], node=asked.key("slow"))
    assert removed["node"] == asked.key("slow")
    result, events = await asked.answer
    assert (result["outcome"], result["why"]) == ("concluded", "done")
    assert [credit["node"] for credit in result["credits"] if credit["state"] == "succeeded"] == [asked.key("late")]
    changes = [(event["how"], event["node"]) for event in events if event["kind"] == "member"]
    assert changes == [("admitted", asked.key("late")), ("promoted", asked.key("late")), ("removed", asked.key("slow"))]


async def test_a_coordinator_that_stops_hands_over_first_and_no_task_is_lost(mesh: Mesh) -> None:
    asked = Asked(mesh)
    await add_late(mesh, asked)
    asked.answer.cancel()
    lead = asked.team().coordinator
    name = next(name for name in mesh.nodes if mesh.key(name).node == lead)
    witness = next(other for other in ("late", "slow") if other != name)
    tasks = set(asked.team(witness).state.tasks)
    await mesh.stop(name)
    after = asked.team(witness)
    assert after.coordinator not in (None, lead)
    assert after.election.is_settled, "it leads, and decided something, before the old one is gone"
    assert set(after.state.tasks) == tasks


@pytest.mark.parametrize(
    ("verb", "args", "code"),
    [
        ("team-add", {"team": "ffff", "agent": "hello@x"}, "no-team"),
        ("team-remove", {"team": "ffff", "node": "x"}, "no-team"),
        ("team-remove", {"node": "x"}, "no-such-member"),
    ],
)
async def test_what_cannot_be_is_refused_in_plain_words(mesh: Mesh, verb: str, args: Any, code: str) -> None:
    asked = Asked(mesh)
    team = await asked.begin()
    with pytest.raises(UsageError) as refused:
        await say(mesh.nodes["asker"], verb, **{"team": team} | args)
    assert refused.value.code == code
    assert refused.value.hint
    asked.answer.cancel()


async def test_only_the_launcher_and_the_coordinators_owner_put_a_node_out(mesh: Mesh) -> None:
    asked = Asked(mesh)
    team = await asked.begin()
    await say(mesh.nodes["slow"], "stand-aside", aside=True)
    await asked.until(lambda: asked.team("slow").coordinator == mesh.key("asker").node)
    with pytest.raises(UsageError) as refused:
        await say(mesh.nodes["slow"], "team-remove", team=team, node=asked.key("asker"))
    assert refused.value.code == "not-allowed"
    asked.answer.cancel()
