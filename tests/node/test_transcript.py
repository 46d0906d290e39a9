"""A team's transcript, from real nodes to a reader that has nothing but the file."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.wire.ids import network_id, node_text
from tests.node.mesh import HELLO, MESH, WAIT_S, Mesh, say, up
from tests.node.transcripts import read

GOAL = "greet somebody with a hello"
TELLS = {
    "phase": ("phase",),
    "said": ("who", "node", "text"),
    "task": ("task", "agent", "node", "skill", "attempt", "state", "note"),
    "elected": ("term", "coordinator", "votes", "voters"),
}
"""What a team at work and its transcript both tell, in the same words."""


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    async with Mesh(tmp_path) as made:
        made.make("asker")
        for name in ("left", "right"):
            made.make(name, seeds=("asker",), allow=("asker",), agents=[("hello", HELLO)])
        await up(made, "asker", "left", "right")
        yield made


async def exported(mesh: Mesh, name: str, team: str, path: Path) -> bytes:
    target = path.with_suffix(".transcript")
    await say(mesh.nodes[name], "team-export", team=team, file=str(target))
    return await asyncio.to_thread(target.read_bytes)


def common(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Of what is decided; a task's progress is not."""
    decided = [event for event in events if event.get("state") not in ("accepted", "running")]
    return [(event["kind"], *map(event.get, TELLS[event["kind"]])) for event in decided if event["kind"] in TELLS]


async def test_a_finished_team_is_verified_and_told_again_by_whoever_has_the_file(mesh: Mesh, tmp_path: Path) -> None:
    result, told = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    events, verdict = read(await exported(mesh, "asker", result["team"], tmp_path / "talk"), network_id(MESH))
    assert common(events) == common(told)
    ended = next(event for event in events if event["kind"] == "concluded")
    assert {name: ended[name] for name in ("why", "answer", "credits", "evidence", "cost")} == {
        name: result[name] for name in ("why", "answer", "credits", "evidence", "cost")
    }
    assert (verdict.terms, len(verdict.members), verdict.absent, verdict.hearsay) == (1, 3, 0, 0)
    assert verdict.concluded
    assert verdict.own_words == verdict.lines == sum(event["kind"] == "said" for event in events)


async def test_every_member_exports_the_same_decisions(mesh: Mesh, tmp_path: Path) -> None:
    result, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    first = read(await exported(mesh, "asker", result["team"], tmp_path / "asker"))[1]
    async with asyncio.timeout(WAIT_S):  # the end is told to the others with the next beat
        while (second := read(await exported(mesh, "left", result["team"], tmp_path / "left"))[1]).head != first.head:
            await asyncio.sleep(0.05)
    assert (second.entries, second.members, second.concluded) == (first.entries, first.members, True)
    assert (first.exporter, second.exporter) == (mesh.key("asker").node, mesh.key("left").node)


async def test_after_restarts_the_transcript_is_the_same_and_no_line_is_said_twice(mesh: Mesh, tmp_path: Path) -> None:
    result, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    before = read(await exported(mesh, "asker", result["team"], tmp_path / "before"))[1]
    for _ in range(2):  # a line said again after the first start would be on disk at the second
        await mesh.stop("asker")
        await mesh.start("asker")
        await say(mesh.nodes["asker"], "resume", team=result["team"])
    after = read(await exported(mesh, "asker", result["team"], tmp_path / "after"))[1]
    assert (after.head, after.entries, after.lines) == (before.head, before.entries, before.lines)


async def test_a_transcript_of_another_mesh_is_refused_by_name(mesh: Mesh, tmp_path: Path) -> None:
    result, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    data = await exported(mesh, "asker", result["team"], tmp_path / "talk")
    with pytest.raises(PeerError) as refused:
        read(data, network_id("another"))
    assert refused.value.code == "wrong-network"


async def test_a_file_that_is_no_transcript_is_never_overwritten(mesh: Mesh, tmp_path: Path) -> None:
    result, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    (tmp_path / "letter").write_text("dear friend")
    for path in (tmp_path / "letter", tmp_path):
        with pytest.raises(UsageError) as refused:
            await say(mesh.nodes["asker"], "team-export", team=result["team"], file=str(path))
        assert refused.value.code == "file-exists"
    assert (tmp_path / "letter").read_text() == "dear friend"
    with pytest.raises(UsageError) as refused:
        await say(mesh.nodes["asker"], "team-export", team=result["team"], file="talk")
    assert refused.value.code == "bad-argument"
    for _ in range(2):  # one of its own kind may be replaced
        assert await exported(mesh, "asker", result["team"], tmp_path / "talk")
    assert {path.name for path in await asyncio.to_thread(lambda: list(tmp_path.iterdir())) if path.is_file()} == {
        "letter",
        "talk.transcript",
    }


async def test_a_goal_that_never_became_a_team_has_no_transcript(mesh: Mesh, tmp_path: Path) -> None:
    result, _ = await say(mesh.nodes["asker"], "ask", goal="solder the zinc gutter", timeout_s=30)
    with pytest.raises(UsageError) as refused:
        await exported(mesh, "asker", result["team"], tmp_path / "talk")
    assert refused.value.code == "no-log"
    assert not (tmp_path / "talk").exists()


async def test_the_verdict_names_the_keys_that_everything_was_checked_against(mesh: Mesh, tmp_path: Path) -> None:
    result, _ = await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=30)
    events, verdict = read(await exported(mesh, "asker", result["team"], tmp_path / "talk"))
    keys = {mesh.key(name).node for name in mesh.nodes}
    assert set(verdict.members) == keys
    elected = next(event for event in events if event["kind"] == "elected")
    assert set(elected["by"]) <= {node_text(key) for key in keys}
    assert len(elected["by"]) == elected["votes"]
