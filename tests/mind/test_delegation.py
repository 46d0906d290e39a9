"""Goals that nobody serves are handed to somebody who forms teams for any goal; all others are not."""

from dataclasses import replace
from typing import Any

import pytest

from ioa_p2p.mind.delegation import QUERY, Delegating
from ioa_p2p.mind.rules import Rules
from ioa_p2p.steps import Conclude, FormTeam, LineView, Order, Speak, TaskView, View
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.roster import ANY_GOAL
from tests.mind.market import GOAL as DEVICES_GOAL
from tests.mind.market import REAL, agent, brief, node, view

GOAL = "Solder the zinc gutter"
FORM = Skill(ANY_GOAL, "Reach any goal by a team of its own", (), ("team.answer",))
BROKERS = (agent(1, "broker-a", FORM), agent(2, "broker-b", FORM))
PLANNER = Delegating(Rules())
TASK = TaskView(b"t" * 16, node(1), "broker-a", ANY_GOAL, "failed", reason="its team ended as failed: no solder")


async def searched_to_the_end(goal: str, found: Any) -> Any:
    """The wants once nothing new is to be searched."""
    searched = frozenset[str]()
    for _ in range(6):
        wants = await PLANNER.wants(goal, found if QUERY in searched else found[:-2], searched)
        if searched.issuperset(wants.queries):
            return wants
        searched |= set(wants.queries)
    raise AssertionError("it searches for ever")


async def step(seen: View) -> Any:
    return (await PLANNER.next_step(seen)).step


def asked(*tasks: TaskView) -> View:
    started = view(BROKERS, GOAL)
    return replace(started, lines=(LineView(*started.me, "plan"),), tasks=tasks)


async def test_who_forms_teams_is_searched_only_when_nobody_else_is_left() -> None:
    assert QUERY not in (await PLANNER.wants(GOAL, (), frozenset())).queries
    wants = await searched_to_the_end(GOAL, BROKERS)
    assert [(role.name, len(role.candidates), role.count) for role in wants.roles] == [(ANY_GOAL, 2, 1)]
    assert wants.done


async def test_a_goal_that_others_serve_is_not_handed_on() -> None:
    wants = await searched_to_the_end(DEVICES_GOAL, (*REAL, *BROKERS))
    assert ANY_GOAL not in [role.name for role in wants.roles]
    assert QUERY not in wants.queries


async def test_a_goal_that_nobody_serves_at_all_has_no_roles() -> None:
    wants = await PLANNER.wants(GOAL, (), frozenset({QUERY, "word:solder", "word:zinc", "word:gutter"}))
    assert (wants.roles, wants.done) == ((), False)


async def test_the_whole_goal_goes_to_one_that_forms_a_team() -> None:
    assert isinstance(await step(view(BROKERS, GOAL)), Speak)
    assert await step(asked()) == FormTeam(Order(node(1), "broker-a", ANY_GOAL, GOAL), "sync")


async def test_an_asker_with_skills_of_its_own_that_do_not_help_hands_it_on_too() -> None:
    started = asked()
    asker = replace(started.members[0], skills=(brief(REAL[0].card.skills[0]),))
    assert isinstance(await step(replace(started, members=(asker, *started.members[1:]))), FormTeam)


async def test_after_one_failed_the_other_is_asked_and_then_the_goal_ends_with_both_reasons() -> None:
    assert await step(asked(TASK)) == FormTeam(Order(node(2), "broker-b", ANY_GOAL, GOAL), "sync")
    other = replace(TASK, node=node(2), agent="broker-b", reason="busy")
    end = await step(asked(TASK, other))
    assert isinstance(end, Conclude)
    assert end.outcome == "failed"
    assert "no solder" in end.answer
    assert "busy" in end.answer


async def test_what_no_other_try_can_help_is_not_tried_again() -> None:
    end = await step(asked(replace(TASK, retry=False)))
    assert isinstance(end, Conclude)


async def test_the_answer_of_its_team_is_the_answer() -> None:
    done = replace(TASK, state="succeeded", summary="It holds water.")
    assert await step(asked(done)) == Conclude("done", "It holds water.", ((done.id, "It holds water."),), (done.id,))


@pytest.mark.parametrize("found", [REAL, (*REAL, BROKERS[0])])
async def test_a_team_with_other_skills_is_planned_by_the_other_planner(found: Any) -> None:
    seen = view(found, DEVICES_GOAL)
    assert await step(seen) == (await Rules().next_step(seen)).step
