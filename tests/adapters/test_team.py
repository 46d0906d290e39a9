"""The `team` adapter: what its table may say. What its teams do is tested in tests/node/test_nests.py."""

from typing import Any

import pytest

from ioa_p2p.adapters.base import Failed, Task
from ioa_p2p.adapters.team import TeamAdapter, goal_of
from ioa_p2p.errors import UsageError
from ioa_p2p.wire.roster import ANY_GOAL

SURVEY = {"name": "site.survey", "outputs": ["site.summary"]}


async def test_without_skills_it_takes_any_goal() -> None:
    card = await TeamAdapter("broker", {}).describe()
    assert [skill.name for skill in card.skills] == [ANY_GOAL]


async def test_with_skills_it_offers_these_alone() -> None:
    card = await TeamAdapter("site", {"skills": [SURVEY]}).describe()
    assert [(skill.name, skill.outputs) for skill in card.skills] == [("site.survey", ("site.summary",))]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"skills": [{**SURVEY, "inputs": ["site.map"]}]}, "takes inputs"),
        ({"skills": [{**SURVEY, "effect": "idempotent"}]}, "keys of its own"),
        ({"goal": " "}, "a goal has 1 to"),
        ({"goal": "x" * 10_000}, "a goal has 1 to"),
        ({"concurrency": 2}, "concurrency"),
        ({"target": "site.py"}, "unknown option"),
    ],
)
def test_what_a_team_cannot_keep_is_refused_at_once_with_the_reason(table: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        TeamAdapter("site", table)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("table", "goal"),
    [({}, "survey the north"), ({"goal": "measure all"}, "measure all"), ({"goal": "{goal}!"}, "survey the north!")],
)
def test_its_teams_are_for_its_own_goal_or_the_tasks(table: dict[str, Any], goal: str) -> None:
    assert goal_of("site", table, "survey the north") == goal


async def test_outside_a_node_it_does_nothing_and_says_so() -> None:
    events = [event async for event in TeamAdapter("site", {}).run(Task(b"i" * 16, b"k" * 16, 1, ANY_GOAL, "goal"))]
    assert events == [Failed("no-team", "only a node forms teams", retry=False)]
