from dataclasses import replace

import pytest

from ioa_p2p.mind.rules import next_step, wants
from ioa_p2p.steps import Assign, Await, Conclude, FoundAgent, LineView, Speak, Step, TaskView
from ioa_p2p.wire.ids import node_short
from ioa_p2p.wire.records import Skill
from tests.mind.market import ALL, ANALYST, CHARTER, DEVICE, GOAL, NEAR_MISSES, REAL, WRITER, agent, node, play, view

PLAN = LineView(node(9), "asker", "the plan")


def succeed(task: TaskView) -> TaskView:
    return replace(task, state="succeeded", summary=f"{task.skill} says so")


def kinds(steps: list[Step]) -> list[str]:
    return [
        type(step).__name__ + (f" {step.mode} {len(step.orders)}" if isinstance(step, Assign) else "") for step in steps
    ]


def test_a_bare_goal_is_searched_by_its_words() -> None:
    found = wants(GOAL, ())
    assert {"word:device", "word:chart", "word:report", "word:unusual"} <= set(found.queries)
    assert not found.done
    assert found.roles == ()


def test_search_goes_on_backwards_over_input_types_until_the_chain_closes() -> None:
    writer_only = wants(GOAL, [agent(6, "writer", WRITER)])
    assert writer_only.missing == ("metrics.findings", "image.chart")
    assert {"out:metrics.findings", "out:image.chart"} <= set(writer_only.queries)
    more = wants(GOAL, [agent(6, "writer", WRITER), agent(4, "analyst", ANALYST), agent(5, "charter", CHARTER)])
    assert "out:metrics.samples" in more.queries
    assert not more.done


def test_done_only_when_every_query_was_searched() -> None:
    first = wants(GOAL, ALL)
    assert not first.done
    assert wants(GOAL, ALL, frozenset(first.queries)).done


def test_near_misses_are_left_out_and_every_device_is_asked() -> None:
    roles = {role.name: role for role in wants(GOAL, ALL).roles}
    assert list(roles) == ["device.measure", "metrics.analyse", "chart.draw", "report.write"]
    assert roles["device.measure"].count == 0
    assert [one.agent for one in roles["device.measure"].candidates] == ["device-1", "device-2", "device-3"]
    assert {role.count for name, role in roles.items() if name != "device.measure"} == {1}
    assert roles["report.write"].candidates[0].addresses == ("/memory/6",)


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_what_was_found_does_not_change_the_chain(order: int) -> None:
    names = [role.name for role in wants(GOAL, ALL[::order]).roles]
    assert names == ["device.measure", "metrics.analyse", "chart.draw", "report.write"]


def test_a_goal_nobody_can_meet_has_no_roles() -> None:
    assert wants("Bake a cake", ALL).roles == ()


def test_a_chain_that_needs_itself_is_not_one() -> None:
    loop = agent(
        1, "loop", Skill("report.write", "Write a report with a chart", ("report.markdown",), ("report.markdown",))
    )
    assert wants(GOAL, [loop]).roles == ()


def test_chinese_goals_find_chinese_skills() -> None:
    found = agent(1, "fanyi", Skill("text.translate", "把文章翻译成英文"))
    assert [role.name for role in wants("翻译这篇文章", [found, *ALL]).roles] == ["text.translate"]


def test_the_example_job_shows_talk_parallel_work_a_pause_sync_work_and_the_end() -> None:
    steps = play(view(), succeed)
    assert kinds(steps) == [
        "Speak",
        "Assign async 3",
        "Await",
        "Assign sync 1",
        "Assign sync 1",
        "Assign sync 1",
        "Conclude",
    ]
    end = steps[-1]
    assert isinstance(end, Conclude)
    assert end.outcome == "done"
    assert end.answer == "report.write says so"
    assert len(end.results) == 1
    assert len(end.evidence) == 6


def test_near_misses_in_the_team_are_given_nothing() -> None:
    steps = play(view(ALL), succeed)
    given = {order.agent for step in steps if isinstance(step, Assign) for order in step.orders}
    assert given == {"device-1", "device-2", "device-3", "analyst", "charter", "writer"}


def test_the_charter_gets_all_samples_and_the_findings() -> None:
    steps = play(view(), succeed)
    chart = next(s.orders[0] for s in steps if isinstance(s, Assign) and s.orders[0].skill == "chart.draw")
    assert [(source.type, len(source.tasks)) for source in chart.inputs] == [
        ("metrics.samples", 3),
        ("metrics.findings", 1),
    ]


def test_devices_are_pinned_and_the_others_are_not() -> None:
    steps = play(view(), succeed)
    pinned = {order.skill: order.pinned for step in steps if isinstance(step, Assign) for order in step.orders}
    assert pinned == {"device.measure": True, "metrics.analyse": False, "chart.draw": False, "report.write": False}


def test_a_device_that_is_lost_is_left_out_and_named() -> None:
    def outcome(task: TaskView) -> TaskView:
        return replace(task, state="failed", reason="worker lost") if task.agent == "device-2" else succeed(task)

    steps = play(view(), outcome)
    assert kinds(steps)[:3] == ["Speak", "Assign async 3", "Await"]
    end = steps[-1]
    assert isinstance(end, Conclude)
    assert end.outcome == "partial"
    assert end.answer.endswith(f"\nWithout: device.measure by device-2@{node_short(node(2))}: worker lost.")


def test_of_two_devices_with_one_agent_name_the_lost_one_is_named_also_when_nothing_came_out() -> None:
    twins = tuple(agent(number, "device", DEVICE) for number in (1, 2))

    def outcome(task: TaskView) -> TaskView:
        return replace(task, state="failed", reason="worker lost") if task.node == node(2) else succeed(task)

    end = play(view((*twins, *REAL[3:])), outcome)[-1]
    assert isinstance(end, Conclude)
    assert f"device.measure by device@{node_short(node(2))}: worker lost" in end.answer
    assert node_short(node(1)) not in end.answer
    nothing = play(view((*twins, *REAL[3:])), lambda task: replace(task, state="failed", reason="worker lost"))[-1]
    assert isinstance(nothing, Conclude)
    assert nothing.outcome == "failed"
    assert all(f"device.measure by device@{node_short(node(number))}" in nothing.answer for number in (1, 2))


def test_a_failed_task_is_tried_once_more_on_another_member() -> None:
    two = (*REAL, agent(7, "analyst-2", ANALYST), agent(8, "analyst-3", ANALYST))
    tried: list[str] = []

    def outcome(task: TaskView) -> TaskView:
        if task.skill != "metrics.analyse":
            return succeed(task)
        tried.append(task.agent)
        return replace(task, state="failed", reason="broken") if task.agent == "analyst" else succeed(task)

    end = play(view(two), outcome)[-1]
    assert tried == ["analyst", "analyst-2"]
    assert isinstance(end, Conclude)
    assert end.outcome == "done"


def test_two_failures_end_the_job_honestly() -> None:
    two = (*REAL, agent(7, "analyst-2", ANALYST), agent(8, "analyst-3", ANALYST))

    def outcome(task: TaskView) -> TaskView:
        return replace(task, state="failed", reason="broken") if task.skill == "metrics.analyse" else succeed(task)

    steps = play(view(two), outcome)
    end = steps[-1]
    assert isinstance(end, Conclude)
    assert end.outcome == "failed"
    assert end.results == ()
    assert "broken" in end.answer
    assert sum(isinstance(step, Assign) for step in steps) == 3


def test_a_task_that_may_have_had_its_effect_is_not_repeated() -> None:
    mail = Skill("mail.send", "Send a mail", (), ("mail.receipt",), effect="once")

    def outcome(task: TaskView) -> TaskView:
        return replace(task, state="unknown", reason="worker lost")

    steps = play(view((agent(1, "mail-1", mail), agent(2, "mail-2", mail)), "Send a mail"), outcome)
    assert kinds(steps) == ["Speak", "Assign sync 1", "Conclude"]


def test_the_cheapest_linked_member_works() -> None:
    base = view((*REAL, agent(7, "analyst-2", ANALYST)))
    members = tuple(replace(one, cost=5) if one.agent == "analyst" else one for one in base.members)
    steps = play(replace(base, members=members), succeed)
    analyst = next(s.orders[0] for s in steps if isinstance(s, Assign) and s.orders[0].skill == "metrics.analyse")
    assert analyst.agent == "analyst-2"


def test_results_that_came_during_parallel_work_lead_back_to_the_talk_first() -> None:
    steps = play(view(), succeed)
    assign = steps[1]
    assert isinstance(assign, Assign)
    tasks = tuple(succeed(TaskView(bytes([n]) * 16, o.node, o.agent, o.skill, "")) for n, o in enumerate(assign.orders))
    base = view()
    spoken = replace(base, lines=(PLAN,), tasks=tasks, phase="async-assign")
    assert isinstance(next_step(spoken), Speak)


def test_the_same_view_gives_the_same_step() -> None:
    assert next_step(view(ALL)) == next_step(view(ALL))


def test_a_team_without_the_skills_says_so() -> None:
    lonely = view((agent(1, "device-1", DEVICE),), "Write a report")
    end = next_step(lonely)
    assert isinstance(end, Conclude)
    assert (end.outcome, end.evidence, end.results) == ("failed", (), ())
    assert end.answer.splitlines() == [
        "The goal could not be met: nobody in the team offers it.",
        'See who else could: `ioa-p2p find "Write a report"`.',
    ]


def test_open_tasks_are_waited_for() -> None:
    base = view()
    tasks = tuple(TaskView(bytes([n]) * 16, node(n), f"device-{n}", "device.measure", "running") for n in (1, 2, 3))
    waiting = replace(base, lines=(PLAN,), tasks=tasks, phase="async-assign")
    assert next_step(waiting) == Await(tuple(task.id for task in tasks))


@pytest.mark.parametrize("miss", NEAR_MISSES, ids=lambda skill: skill.name)
def test_no_single_near_miss_beats_the_chain(miss: Skill) -> None:
    found: tuple[FoundAgent, ...] = (agent(20, "miss", miss), *REAL)
    assert wants(GOAL, found).roles[-1].name == "report.write"
