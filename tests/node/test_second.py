"""A goal that was not met is tried once more, with others; and never where that could do harm."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.node import reports
from ioa_p2p.node.second import Missing, merged, missing_after_launch, missing_in, second_team
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire import codec
from ioa_p2p.wire.spending import UNLIMITED, Allowance
from ioa_p2p.wire.step import Assign, Conclude, Outcome, Resume, Step, TaskSpec
from tests.node.mesh import HELLO, WAIT_S, Mesh, say, up
from tests.team.people import BOB, COUNT, DEE, MAIL, NOW, WALL, Log, later, spec

GOAL = "greet somebody with a hello"
BROKEN = """
from ioa_p2p.adapters.agent import Failed, skill


@skill("text.greet", outputs=["text.greeting"], description="Say hello to whoever the goal ends with.")
def greet(task, progress):
    return Failed("no-voice", "it is hoarse")
"""
SLOW = BROKEN.replace('return Failed("no-voice", "it is hoarse")', "import time; time.sleep(60)")
FIRST = {"team": "1", "outcome": "failed", "why": "failed", "answer": "Not met.", "files": [], "credits": ["a"],
         "seconds": 2.0}  # fmt: skip
SECOND = {"team": "2", "outcome": "concluded", "why": "done", "answer": "Hello!", "files": ["f"], "credits": ["b"],
          "cost": {"tokens": 5, "money": 0, "calls": 1}, "seconds": 3.5}  # fmt: skip


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    async with Mesh(tmp_path) as made:
        yield made


async def greeters(mesh: Mesh, folder: Path, *names: str) -> None:
    """An asker and nodes whose agent greets; who is called hoarse-... fails. The asker trusts those first."""
    (folder / "broken.py").write_text(BROKEN)
    (folder / "slow.py").write_text(SLOW)
    mesh.make("asker")
    for name in names:
        target = {"hoarse": str(folder / "broken.py"), "slow": str(folder / "slow.py")}.get(name.split("-")[0], HELLO)
        mesh.make(name, seeds=("asker",), allow=("asker",), agents=[("hello", target)])
    mesh.allow("asker", *(name for name in names if name.startswith("hoarse")))
    await up(mesh, "asker", *names)


async def asked(mesh: Mesh) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return await say(mesh.nodes["asker"], "ask", goal=GOAL, timeout_s=40)


async def test_when_all_of_a_team_fail_others_do_it(mesh: Mesh, tmp_path: Path) -> None:
    await greeters(mesh, tmp_path, "hoarse-1", "hoarse-2", "good")
    result, events = await asked(mesh)
    assert (result["outcome"], result["why"], result["answer"]) == ("concluded", "done", "Hello, hello!")
    (again,) = (event for event in events if event["kind"] == "again")
    assert len(again["without"]) == 2
    assert sorted(credit["state"] for credit in result["credits"]) == ["failed", "failed", "succeeded"]
    told, _ = await say(mesh.nodes["asker"], "resume", team=result["team"])
    assert told == result


async def test_a_restarted_asker_tells_both_teams_and_begins_no_third(mesh: Mesh, tmp_path: Path) -> None:
    await greeters(mesh, tmp_path, "hoarse-1", "hoarse-2", "good")
    first, _ = await asked(mesh)
    await mesh.stop("asker")
    asker = await mesh.start("asker")
    told, _ = await say(asker, "resume", team=first["team"])
    assert {key: told[key] for key in ("outcome", "why", "answer", "credits")} == {
        key: first[key] for key in ("outcome", "why", "answer", "credits")
    }
    assert len(asker.teams.teams) == 2


async def test_when_nobody_else_is_there_the_first_result_stands_and_says_so(mesh: Mesh, tmp_path: Path) -> None:
    await greeters(mesh, tmp_path, "hoarse-1")
    result, events = await asked(mesh)
    assert (result["outcome"], result["why"]) == ("failed", "failed")
    assert "text.greet by hello@" in result["answer"]
    assert "no-voice: it is hoarse" in result["answer"]
    assert result["answer"].endswith("Nobody else was found who could.")
    assert not [event for event in events if event["kind"] == "again"]


async def test_a_goal_that_fails_twice_is_not_tried_a_third_time(mesh: Mesh, tmp_path: Path) -> None:
    await greeters(mesh, tmp_path, "hoarse-1", "hoarse-2", "hoarse-3", "hoarse-4", "hoarse-5")
    result, events = await asked(mesh)
    assert (result["outcome"], result["why"]) == ("failed", "failed")
    assert len([event for event in events if event["kind"] == "again"]) == 1
    assert "A second team, with others: The goal could not be met" in result["answer"]
    assert len(result["credits"]) == 4


async def test_cancelling_a_goal_ends_the_team_that_is_at_work_for_it(mesh: Mesh, tmp_path: Path) -> None:
    await greeters(mesh, tmp_path, "hoarse-1", "hoarse-2", "slow")
    asker = mesh.nodes["asker"]
    story, running = asker.ask(GOAL, 40.0), asyncio.Event()

    def on_event(event: dict[str, Any]) -> None:
        if story.second in asker.teams.teams and event["kind"] == "task" and event["state"] == "running":
            running.set()

    following = asyncio.create_task(story.follow(on_event))
    async with asyncio.timeout(WAIT_S):
        await running.wait()
        await say(asker, "cancel", team=story.team.hex())
        result = await following
    assert result["outcome"] == "cancelled"
    assert result["answer"].startswith("The goal could not be met")


async def test_who_refuses_is_named_with_the_reason(mesh: Mesh) -> None:
    mesh.make("asker")
    mesh.make("shut", seeds=("asker",), agents=[("hello", HELLO)])
    await up(mesh, "asker", "shut")
    result, _ = await asked(mesh)
    assert result["why"] == "nobody-fits"
    assert "Would not take part: hello@" in result["answer"]
    assert "not-allowed" in result["answer"]


# -- whether it is worth it


def ended(outcome: Any, task: TaskSpec, state: Any = "failed") -> TeamState:
    log = Log()
    steps: list[Step] = [
        Assign("sync", (task,)), Outcome(task.id, 1, state, reason="broken"), Resume("done"), Conclude(outcome, "")
    ]  # fmt: skip
    for step in steps:
        log.add(step)
    assert log.state.conclusion is not None
    return log.state


NOBODY = frozenset[tuple[bytes, str]]()


def test_what_is_missing_goes_to_others_with_the_time_and_the_budget_that_are_left() -> None:
    missing = missing_in(ended("failed", spec(1)), NOBODY, NOW)
    assert missing is not None
    assert (missing.goal, missing.without, missing.until) == ("count the words", {(BOB.node, "bob")}, WALL + 600)
    assert missing.budget.agents == 61


@pytest.mark.parametrize("outcome", ["done", "cancelled", "deadline", "cap"])
def test_an_end_that_was_wanted_or_forced_is_the_end(outcome: str) -> None:
    assert missing_in(ended(outcome, spec(1)), NOBODY, NOW) is None


def test_nothing_is_tried_again_where_something_may_have_happened_that_happens_once() -> None:
    assert missing_in(ended("failed", spec(1, DEE, MAIL), "unknown"), NOBODY, NOW) is None


def test_without_time_or_anybody_to_leave_out_there_is_no_second_try() -> None:
    assert missing_in(ended("failed", spec(1)), NOBODY, later(595)) is None
    assert missing_in(ended("failed", spec(1), "cancelled"), NOBODY, NOW) is None
    assert missing_after_launch("count", NOBODY, WALL + 600, UNLIMITED, NOW) is None


def test_a_nested_team_leaves_it_to_the_team_above() -> None:
    state = ended("failed", spec(1, skill=COUNT))
    state.roster = codec.replace(state.roster, ancestors=(b"a" * 16,))
    assert missing_in(state, NOBODY, NOW) is None


def test_a_launch_without_takers_is_tried_with_others() -> None:
    refused, budget = frozenset({(BOB.node, "bob")}), Allowance(calls=3)
    wanted = Missing("count", refused, WALL + 600, budget)
    assert missing_after_launch("count", refused, WALL + 600, budget, NOW) == wanted


def test_the_second_team_has_its_id_from_the_first() -> None:
    assert len(second_team(b"a" * 16)) == 16
    assert second_team(b"a" * 16) != second_team(b"b" * 16)


# -- one result of two


def test_what_the_second_team_did_stands_for_what_the_first_did_not() -> None:
    both = merged(FIRST, SECOND)
    assert (both["team"], both["outcome"], both["why"], both["answer"]) == ("1", "concluded", "done", "Hello!")
    assert (both["files"], both["credits"], both["seconds"]) == (["f"], ["a", "b"], 5.5)
    assert both["cost"] == {"tokens": 5, "money": 0, "calls": 1}


def test_what_the_first_team_did_is_kept_whatever_the_second_does() -> None:
    half = {**FIRST, "outcome": "concluded", "why": "partial", "answer": "One half."}
    assert merged(half, {**SECOND})["answer"] == "One half.\nA second team, with others: Hello!"
    assert merged(half, {**SECOND})["why"] == "done"
    worse = merged(half, {**SECOND, "outcome": "failed", "why": "failed", "answer": "No."})
    assert (worse["outcome"], worse["why"]) == ("concluded", "partial")
    assert worse["answer"] == "One half.\nA second team, with others: No."


def test_outputs_of_several_results_stand_side_by_side() -> None:
    assert reports.together([]) is None
    assert reports.together([{"a": 1}]) == {"a": 1}
    assert reports.together([{"a": 1}, {}, {"a": 2, "b": 3}, "text"]) == {"a": 1, "a 2": 2, "b": 3, "value": "text"}
