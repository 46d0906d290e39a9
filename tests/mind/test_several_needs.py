"""Goals of several needs, other ways, parts that fail, and ends that say so."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ioa_p2p.mind.kin import FORMS_MAX, family, forms
from ioa_p2p.mind.rules import next_step, unmet, wants
from ioa_p2p.steps import Assign, Await, Conclude, FoundAgent, LineView, Order, Step, TaskView
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import node_short
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.spending import Allowance, Spent
from tests.mind.market import ANALYST, CHARTER, DEVICE, REAL, agent, member, node, play, view

LETTER = Skill("letter.read", "Read the letter from the scanner", (), ("letter.text",))
GERMAN = Skill("letter.translate", "Translate the letter to German", ("letter.text",), ("letter.german",))
TWO = "Measure my disks and translate the letter to German"
OFFICE = (agent(1, "device", DEVICE), agent(2, "scanner", LETTER), agent(3, "linguist", GERMAN))

PLAN = (LineView(node(9), "asker", "the plan"),)

Outcome = Callable[[TaskView], TaskView]


def succeed(task: TaskView) -> TaskView:
    return replace(task, state="succeeded", summary=f"{task.skill} says so")


def fail(*skills: str, reason: str = "broken", state: str = "failed", retry: bool = True) -> Outcome:
    def outcome(task: TaskView) -> TaskView:
        return replace(task, state=state, reason=reason, retry=retry) if task.skill in skills else succeed(task)

    return outcome


def orders(steps: list[Step]) -> list[Order]:
    return [order for step in steps if isinstance(step, Assign) for order in step.orders]


def given(steps: list[Step]) -> list[str]:
    return [order.skill for order in orders(steps)]


def end(steps: list[Step]) -> Conclude:
    last = steps[-1]
    assert isinstance(last, Conclude)
    return last


# -- several needs


def test_two_needs_are_worked_at_side_by_side_and_both_answers_told_in_the_goals_order() -> None:
    steps = play(view(OFFICE, TWO), succeed)
    first = next(step for step in steps if isinstance(step, Assign))
    assert [order.skill for order in first.orders] == ["device.measure", "letter.read"]
    assert end(steps).outcome == "done"
    assert end(steps).answer.splitlines() == [
        "Measure my disks: device.measure says so",
        "translate the letter to German: letter.translate says so",
    ]
    assert len(end(steps).results) == 2


def test_who_works_for_one_need_is_told_that_need_alone() -> None:
    told = {order.skill: order.goal for order in orders(play(view(OFFICE, TWO), succeed))}
    assert told == {
        "device.measure": "Measure my disks",
        "letter.read": "translate the letter to German",
        "letter.translate": "translate the letter to German",
    }


def test_an_aside_is_no_need_and_is_told_to_everybody() -> None:
    steps = play(view(OFFICE, f"For the last three weeks, {TWO}"), succeed)
    assert end(steps).outcome == "done"
    assert all(order.goal.startswith("For the last three weeks. ") for order in orders(steps))


def test_one_chain_goes_on_while_the_other_still_runs() -> None:
    tasks = [
        TaskView(b"1" * 16, node(1), "device", "device.measure", "running"),
        TaskView(b"2" * 16, node(2), "scanner", "letter.read", "running"),
    ]
    base = replace(view(OFFICE, TWO), lines=PLAN, phase="async-assign", tasks=tuple(tasks))
    assert next_step(base) == Await((b"1" * 16, b"2" * 16), "any")
    tasks[1] = succeed(tasks[1])
    step = next_step(replace(base, phase="discussion", tasks=tuple(tasks)))
    assert isinstance(step, Assign)
    assert (step.mode, [order.skill for order in step.orders]) == ("async", ["letter.translate"])


def test_a_need_that_fails_does_not_drag_the_other_down() -> None:
    steps = play(view(OFFICE, TWO), fail("letter.read"))
    assert end(steps).outcome == "partial"
    assert end(steps).answer.splitlines()[:2] == [
        "Measure my disks: device.measure says so",
        f"Not done: translate the letter to German: letter.read by scanner@{node_short(node(2))}: broken.",
    ]
    assert "letter.translate" not in given(steps)


def test_a_need_that_nobody_offers_is_named_with_what_can_be_done() -> None:
    steps = play(view(OFFICE, "Measure my disks and bake a chocolate cake"), succeed)
    assert end(steps).outcome == "partial"
    assert end(steps).answer.splitlines() == [
        "Measure my disks: device.measure says so",
        "Not done: bake a chocolate cake: nobody in the team offers it.",
        'See who else could: `ioa-p2p find "bake a chocolate cake"`.',
    ]


def test_an_agent_that_lacks_an_input_is_named_with_the_input() -> None:
    steps = play(view((OFFICE[0], OFFICE[2]), TWO), succeed)
    assert "letter.translate needs an input of type letter.text, which nobody makes" in end(steps).answer


def test_what_feeds_another_need_is_told_by_itself_only_if_the_other_fails() -> None:
    assert end(play(view(), succeed)).answer == "report.write says so"
    half = end(play(view(), fail("report.write")))
    assert half.outcome == "partial"
    assert half.answer.startswith("Find anything unusual: metrics.analyse says so\nNot done: write a short report")


# -- other ways

SCAN = Skill("letter.photograph", "Photograph the letter", (), ("letter.text",))
PLAIN = "Translate the letter to German"
BOTH = (*OFFICE, agent(4, "camera", SCAN))


@pytest.mark.parametrize("order", [1, -1])
def test_another_way_to_the_same_type_is_taken_when_the_first_fails(order: int) -> None:
    best = given(play(view(BOTH[::order], PLAIN), succeed))
    first, last = best
    assert last == "letter.translate"
    other = {"letter.read": "letter.photograph", "letter.photograph": "letter.read"}[first]
    steps = play(view(BOTH[::order], PLAIN), fail(first))
    assert given(steps) == [first, other, "letter.translate"]
    assert (end(steps).outcome, end(steps).answer) == ("done", "letter.translate says so")


def test_another_last_part_with_the_same_outputs_stands_in_and_one_with_others_does_not() -> None:
    machine = Skill("text.render", "Render a letter in German", ("letter.text",), ("letter.german",))
    poem = Skill("poem.write", "Write a poem in German about a letter", (), ("poem.text",))
    team = (*OFFICE, agent(4, "machine", machine), agent(5, "poet", poem))
    steps = play(view(team, PLAIN), fail("letter.translate"))
    assert given(steps) == ["letter.read", "letter.translate", "text.render"]
    assert end(steps).outcome == "done"
    assert "poem.write" not in given(play(view(team, PLAIN), fail("letter.translate", "text.render")))


def test_between_equal_ways_the_cheaper_is_taken() -> None:
    twins = [Skill(f"letter.{name}", "Read the letter", (), ("letter.text",)) for name in ("scan", "photo")]
    found = [agent(4, "one", twins[0]), agent(5, "two", twins[1])]
    for costs, skill in (((1, 5), "letter.scan"), ((5, 1), "letter.photo")):
        members = tuple(member(one, cost) for one, cost in zip(found, costs, strict=True))
        base = view((OFFICE[2],), PLAIN)
        assert given(play(replace(base, members=(*base.members, *members)), succeed))[0] == skill


def test_other_ways_are_hired_beside_the_best_and_without_them_all_parts_are_needed() -> None:
    roles = {role.name: role for role in wants(PLAIN, BOTH).roles}
    assert len(roles) == 3
    assert {name for name, role in roles.items() if role.needed} == {"letter.translate"}
    assert all(role.needed for role in wants(PLAIN, OFFICE).roles)


def test_no_part_of_one_need_alone_can_stop_a_launch_that_serves_two() -> None:
    assert not any(role.needed for role in wants(TWO, OFFICE).roles)


def test_cards_that_name_each_others_types_in_every_way_do_not_make_planning_explode() -> None:
    layers = [
        agent(20 * layer + place, f"a{layer}-{place}",
              Skill(f"s.l{layer}x{place}", "Move", (f"t{layer - 1}",) if layer else (), (f"t{layer}",)))
        for layer in range(8) for place in range(12)
    ]  # fmt: skip
    goal = agent(250, "last", Skill("cake.bake", "Bake a cake", ("t7",), ("cake.whole",)))
    deep = agent(251, "less", Skill("cake.cut", "Cut a cake", ("t6",), ("cake.cut",)))
    assert [role.name for role in wants("Cut a cake", [*layers, goal, deep]).roles][7] == "cake.cut", "behind t0 to t6"


# -- what must not happen twice

MAIL = Skill("mail.send", "Send a mail", (), ("mail.receipt",), effect="once")
POST = Skill("post.send", "Send a mail by post", (), ("mail.receipt",), effect="once")


@pytest.mark.parametrize("state", ["failed", "unknown", "dead-letter", "expired", "cancelled"])
def test_what_may_have_happened_is_not_done_again_in_another_way(state: str) -> None:
    steps = play(view((agent(1, "mail", MAIL), agent(2, "post", POST)), "Send a mail"), fail("mail.send", state=state))
    assert given(steps) == ["mail.send"]
    assert end(steps).outcome == "failed"


def test_what_may_have_happened_is_said_and_no_other_agent_recommended() -> None:
    steps = play(view((agent(1, "mail", MAIL),), "Send a mail"), fail("mail.send", state="unknown", reason="lost"))
    assert "mail.send may have had its effect, so it is not repeated" in end(steps).answer
    assert "ioa-p2p find" not in end(steps).answer


def test_a_task_of_a_member_that_left_still_counts() -> None:
    team = view((agent(2, "mail-2", MAIL),), "Send a mail")
    gone = TaskView(b"1" * 16, node(1), "mail-1", "mail.send", "unknown", reason="worker lost")
    step = next_step(replace(team, lines=PLAN, tasks=(gone,)))
    assert isinstance(step, Conclude)
    assert step.outcome == "failed"


# -- what ends it


def test_tasks_of_several_needs_stop_where_the_budget_is_spent_and_the_rest_is_named() -> None:
    done = succeed(TaskView(b"1" * 16, node(1), "device", "device.measure", "running"))
    base = replace(view(OFFICE, TWO), lines=PLAN, tasks=(done,))
    step = next_step(replace(base, left=Allowance(calls=0), spent=Spent(calls=1)))
    assert isinstance(step, Conclude)
    assert step.outcome == "partial"
    assert "it was not begun. Nothing more was tried: the budget of calls is spent." in step.answer


def test_no_more_tasks_are_given_than_calls_are_left() -> None:
    step = next_step(replace(view(OFFICE, TWO), lines=PLAN, left=Allowance(calls=1)))
    assert isinstance(step, Assign)
    assert len(step.orders) == 1


def test_who_was_given_no_tokens_from_the_start_works_without() -> None:
    step = next_step(replace(view(OFFICE, TWO), lines=PLAN, left=Allowance(tokens=0)))
    assert isinstance(step, Assign)


def test_an_answer_that_is_there_is_told_before_the_deadline_ends_the_rest() -> None:
    tasks = (
        succeed(TaskView(b"1" * 16, node(1), "device", "device.measure", "running")),
        TaskView(b"2" * 16, node(2), "scanner", "letter.read", "running"),
    )
    base = replace(view(OFFICE, TWO), lines=PLAN, tasks=tasks, seconds_left=60.0)
    assert next_step(base) == Await((b"2" * 16,), "all", 57)
    late = next_step(replace(base, seconds_left=2.5))
    assert isinstance(late, Conclude)
    assert (late.outcome, late.results) == ("partial", (b"1" * 16,))
    assert "not finished (running). Nothing more was tried: the time is over." in late.answer


def test_without_any_answer_the_deadline_is_waited_for() -> None:
    tasks = (TaskView(b"1" * 16, node(1), "device", "device.measure", "running"),)
    base = replace(view(OFFICE, "Measure my disks"), lines=PLAN, tasks=tasks, seconds_left=2.5)
    assert next_step(base) == Await((b"1" * 16,))


def test_a_team_that_has_done_all_it_may_do_says_so() -> None:
    done = tuple(
        TaskView(number.to_bytes(16), node(8), "other", "other.skill", "succeeded")
        for number in range(limits.TEAM_TASKS_MAX)
    )
    step = next_step(replace(view(OFFICE, TWO), lines=PLAN, tasks=done))
    assert isinstance(step, Conclude)
    assert step.outcome == "failed"
    assert "256 tasks at most" in step.answer


def test_a_long_end_stays_within_what_the_log_takes() -> None:
    many = tuple(agent(number, f"device-{number}", DEVICE) for number in range(1, 40))
    steps = play(view((*many, agent(50, "analyst", ANALYST)), "Find anything unusual"), fail("device.measure"))
    assert end(steps).outcome == "failed"
    assert "; and 31 more" in end(steps).answer


def test_a_success_without_words_is_told_by_what_was_done() -> None:
    steps = play(view(OFFICE, "Measure my disks"), lambda task: replace(task, state="succeeded"))
    assert end(steps).answer == f"device.measure was done by device@{node_short(node(1))}."


def test_a_refusal_tells_who_can_change_it() -> None:
    steps = play(view(OFFICE, PLAIN), fail("letter.read", reason="not-allowed: you are not on the list", retry=False))
    assert "can put who asked into `allow` there" in end(steps).answer


# -- the second search


def test_where_nobody_fits_the_search_goes_on_under_other_words_and_types() -> None:
    first = wants("Translation of letters", ())
    assert set(first.queries) == {"word:translation", "word:letter"}
    second = wants("Translation of letters", (), frozenset(first.queries))
    assert {"word:translate", "out:letter", "skill:translation"} <= set(second.queries)
    assert not second.done
    assert len(second.queries) <= 48
    third = wants("Translation of letters", (), frozenset(second.queries))
    assert third.queries == second.queries
    assert third.unserved == ("Translation of letters",)


def test_who_fits_is_not_searched_for_a_second_time() -> None:
    first = wants(PLAIN, OFFICE)
    assert wants(PLAIN, OFFICE, frozenset(first.queries)).queries == first.queries


def test_only_what_is_missing_is_searched_again() -> None:
    goal = "Measure my disks and bake a chocolate cake"
    more = wants(goal, OFFICE, frozenset(wants(goal, OFFICE).queries))
    assert {"out:cake", "skill:cake"} <= set(more.queries)
    assert "out:disk" not in more.queries


def test_a_word_of_the_same_family_fits_where_the_word_itself_is_not_there() -> None:
    found = FoundAgent(node(3), Card("linguist", "", "1", (Skill("text.translate", "Translate"),)))
    assert [role.name for role in wants("Translation, please", [found]).roles] == ["text.translate"]


@pytest.mark.parametrize(
    "words",
    ["measure measurement measuring", "translate translation translator", "analyse analysis", "document documentation"],
)
def test_words_of_one_family_are_found_by_each_other(words: str) -> None:
    first, *others = words.split()
    assert {family(each) for each in others} == {family(first)}
    assert len(forms(first)) <= FORMS_MAX


@pytest.mark.parametrize("pair", ["count country", "station state", "chart charity", "文章 文字"])
def test_words_that_only_look_alike_are_no_family(pair: str) -> None:
    one, other = pair.split()
    assert family(one) != family(other)


def test_a_goal_of_many_words_still_searches_the_types_it_leads_to() -> None:
    goal = " ".join(f"word{number}" for number in range(60)) + " report chart"
    assert "out:metrics.findings" in wants(goal, REAL).queries


# -- what is missing, for who launches again


def test_what_has_no_answer_is_known_from_a_view_alone() -> None:
    done = succeed(TaskView(b"1" * 16, node(1), "device", "device.measure", "running"))
    assert unmet(view(OFFICE, TWO)) == ("Measure my disks", "translate the letter to German")
    assert unmet(replace(view(OFFICE, TWO), tasks=(done,))) == ("translate the letter to German",)
    assert unmet(view((agent(5, "charter", CHARTER),), "Bake a cake")) == ("Bake a cake",)
