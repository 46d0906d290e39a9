"""Teams within teams, at whole nodes: asker ──> valley's team ──> wood's team ──> leaf. Each works for the one above it
alone, and each team's goal has words of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ioa_p2p.node.config import AgentConfig
from ioa_p2p.node.nests import Nests
from ioa_p2p.team.commands import TaskFailed
from ioa_p2p.team.events import NestWanted
from tests.node.mesh import WAIT_S, Mesh, say, up

LEAF = str(Path(__file__).parent / "grove.py")
GOAL = "Survey the valley"


class Grove:
    """The mesh, and what the leaf shows from outside."""

    def __init__(self, mesh: Mesh, folder: Path) -> None:
        self.mesh = mesh
        self.folder = folder

    async def set_up(self) -> None:
        mesh, valley, wood = self.mesh, ("valley.survey", "valley.total"), ("wood.count", "wood.trees")
        mesh.make("asker")
        self._broker("valley", "asker", "Count what the wood has", valley, "Survey the valley.")
        self._broker("wood", "valley", "Measure each trunk", wood, "Count what the wood has.")
        mesh.make("leaf", seeds=("asker",), allow=("wood",))
        mesh.change("leaf", agents={"leaf": AgentConfig("leaf", "python", self.leaf)})
        await up(mesh, "asker", "valley", "wood", "leaf")

    def _broker(self, name: str, above: str, goal: str, skill: tuple[str, str], about: str) -> None:
        """Rank 0: it keeps no files unasked."""
        self.mesh.make(name, seeds=("asker",), allow=(above,))
        skills = [{"name": skill[0], "outputs": [skill[1]], "description": about}]
        agents = {name: AgentConfig(name, "team", {"goal": goal, "skills": skills})}
        self.mesh.change(name, agents=agents, rank=0)

    @property
    def leaf(self) -> dict[str, Any]:
        return {"target": LEAF, "env": {"GROVE": str(self.folder)}, "cancel_s": 0.1}

    def open(self) -> None:
        (self.folder / "open").touch()

    @property
    def runs(self) -> list[str]:
        file = self.folder / "runs"
        return file.read_text().split() if file.exists() else []

    def ask(self) -> "asyncio.Task[tuple[dict[str, Any], list[dict[str, Any]]]]":
        return asyncio.create_task(say(self.mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=120))

    async def teams(self, name: str) -> list[dict[str, Any]]:
        return (await say(self.mesh.nodes[name], "teams"))[0]["teams"]


@pytest.fixture
async def grove(tmp_path: Path) -> AsyncIterator[Grove]:
    async with Mesh(tmp_path / "nodes") as mesh:
        yield Grove(mesh, tmp_path)


async def until(holds: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_a_goal_is_reached_two_teams_below_and_its_file_comes_all_the_way_up(grove: Grove) -> None:
    await grove.set_up()
    grove.open()
    result, events = await grove.ask()
    assert (result["outcome"], result["why"], result["answer"]) == ("concluded", "done", "3 trunks")
    files = {file["name"]: Path(file["path"]) for file in result["files"]}
    assert files["trunks"].read_text() == "1 2 3"
    told = await say(grove.mesh.nodes["asker"], "team")
    (child,) = told[0]["children"]
    assert (child["agent"], child["state"]) == ("valley", "succeeded")
    assert any(child["team"][:8] in event["note"] for event in events if event["kind"] == "task")
    below = {team["team"]: team for team in await grove.teams("valley")}
    shown = below[child["team"]]
    assert (shown["parent"], shown["goal"]) == (told[0]["team"], "Count what the wood has")
    tree = (await say(grove.mesh.nodes["valley"], "team", team=told[0]["team"]))[0]["children"]
    (grandchild,) = tree[0]["children"]
    (of_leaf,) = await grove.teams("leaf")
    assert (of_leaf["team"], of_leaf["parent"]) == (grandchild["team"], child["team"])


async def test_a_goal_that_nobody_serves_us_goes_to_one_that_forms_teams_for_any(grove: Grove) -> None:
    """The leaf works for the broker alone, so the first team is none; the second is the broker's."""
    mesh = grove.mesh
    mesh.make("asker")
    mesh.make("broker", seeds=("asker",), allow=("asker",))
    mesh.change("broker", agents={"broker": AgentConfig("broker", "team", {})})
    mesh.make("leaf", seeds=("asker",), allow=("broker",))
    mesh.change("leaf", agents={"leaf": AgentConfig("leaf", "python", grove.leaf)})
    await up(mesh, "asker", "broker", "leaf")
    grove.open()
    result, events = await say(mesh.nodes["asker"], "ask", goal="Measure each trunk", timeout_s=120)
    assert (result["why"], result["answer"]) == ("done", "3 trunks")
    assert any("broker forms a team" in event["text"] for event in events if event["kind"] == "said")
    assert [team["goal"] for team in await grove.teams("leaf")] == ["Measure each trunk"]


async def test_to_cancel_the_goal_ends_every_team_below_it(grove: Grove) -> None:
    await grove.set_up()
    asking = grove.ask()
    await until(lambda: _true(grove.runs))
    await say(grove.mesh.nodes["asker"], "cancel")
    assert (await asking)[0]["outcome"] == "cancelled"
    for name in ("valley", "wood", "leaf"):
        await until(lambda name=name: _all_over(grove, name))
        assert {team["outcome"] for team in await grove.teams(name)} == {"cancelled"}


async def test_a_launcher_that_restarts_goes_on_with_the_same_child(grove: Grove) -> None:
    await grove.set_up()
    asking = grove.ask()
    await until(lambda: _true(grove.runs))
    before = {team["team"] for team in await grove.teams("valley")}
    await grove.mesh.stop("valley")
    await grove.mesh.start("valley")
    grove.open()
    result, _ = await asking
    assert (result["outcome"], result["answer"]) == ("concluded", "3 trunks")
    assert {team["team"] for team in await grove.teams("valley")} == before
    assert len(grove.runs) == 1


async def test_an_agent_that_was_taken_out_meanwhile_fails_its_task_with_a_reason() -> None:
    told: list[Any] = []
    driver: Any = SimpleNamespace(command=told.append)
    unused: Any = None
    nests = Nests(driver, unused, unused, unused, {}, unused)
    nests.on_event(NestWanted(b"c" * 16, b"p" * 16, b"t" * 16, 1, "gone", "goal", 60.0))
    async with asyncio.timeout(WAIT_S):
        while not told:
            await asyncio.sleep(0)
    assert told == [TaskFailed(b"p" * 16, b"t" * 16, 1, "no-such-agent: it is not here any more")]


async def _true(value: object) -> bool:
    return bool(value)


async def _all_over(grove: Grove, name: str) -> bool:
    return all(team["outcome"] for team in await grove.teams(name))
