"""What a coordinator finds due, from what is decided, reported, wished and planned."""

import random
from dataclasses import replace

import pytest

from ioa_p2p import steps
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.team.coordinator import Coordinator
from ioa_p2p.team.tasks import LAN
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import (
    Assign,
    Await,
    Cancel,
    Conclude,
    Credit,
    Discuss,
    Evidence,
    Hear,
    Outcome,
    Resume,
    Spend,
    Step,
    TaskSpec,
    decode_step,
)
from ioa_p2p.wire.team import Report, Said, Wish
from tests.team.people import ANN, BOB, CY, DEE, NOW, TEAM, WALL, Log, later, spec

ONE, TWO = spec(1), spec(2, CY)
ME = (ANN.node, "ann")
DONE = Report(TEAM, ONE.id, 1, "succeeded", 100, summary="17 words")
ORDER = steps.Order(BOB.node, "bob", "words.count", "count")


class Lead:
    """Ann coordinates; what is due is decided at once."""

    def __init__(self, *decided: Step, caps: Caps | None = None) -> None:
        self.log = Log(caps)
        self.log.add(*decided)
        self.coordinator = Coordinator(self.log.state, ME, LAN, random.Random(1), NOW)

    def due(self, now: Now = NOW) -> list[Step]:
        return [decode_step(due.step) for due in self.coordinator.due(now)]

    def decide(self, now: Now = NOW) -> list[Step]:
        """All that is due and becomes due by it, in the log."""
        decided: list[Step] = []
        while fresh := self.coordinator.due(now):
            for due in fresh:
                step = decode_step(due.step)
                decided.append(step)
                changes = self.log.add(step, at=int(now.wall))
                refused = next((getattr(change, "code", "") for change in changes), "")
                self.coordinator.on_decided(due.step, refused)
            assert len(decided) < 1_000, "it comes to no end"
        return decided

    def plan(self, step: steps.Step, now: Now = NOW) -> str:
        view = self.coordinator.ask(now, {})
        assert view is not None
        return self.coordinator.on_plan(now, view.version, step)


def test_the_planner_is_asked_once_and_sees_the_team() -> None:
    lead = Lead(Discuss(ANN.node, "ann", "hello"))
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    assert (view.team, view.version, view.goal, view.me) == (TEAM, 1, "count the words", ME)
    assert [(one.agent, [skill.name for skill in one.skills], one.here) for one in view.members] == [
        ("ann", [], True),
        ("bob", ["words.count", "counts.sum"], True),
        ("cy", ["words.count", "counts.sum"], True),
        ("dee", ["mail.send"], True),
    ]
    assert (view.phase, view.turns_left, view.seconds_left) == ("discussion", 39, 600.0)
    assert view.lines == (steps.LineView(ANN.node, "ann", "hello"),)
    assert lead.coordinator.ask(NOW, {}) is None


def test_the_view_tells_what_workers_reported_and_what_came_out() -> None:
    outcome = Outcome(TWO.id, 1, "failed", b"", (), "no ink", "broken", retry=False)
    lead = Lead(Assign("async", (ONE, TWO)), outcome)
    view = lead.coordinator.ask(NOW, {ONE.id: "running"})
    assert view is not None
    one, two = view.tasks
    assert (one.state, one.final, one.attempt) == ("running", False, 1)
    assert (two.state, two.summary, two.reason, two.retry) == ("failed", "no ink", "broken", False)


def test_a_plan_becomes_one_entry_and_then_the_planner_is_asked_again() -> None:
    lead = Lead()
    assert lead.plan(steps.Speak(*ME, text="hello")) == ""
    assert lead.coordinator.ask(NOW, {}) is None
    assert lead.decide() == [Discuss(ANN.node, "ann", "hello")]
    assert lead.coordinator.ask(NOW, {}) is not None


def test_an_order_gets_an_id_a_key_and_its_members_effect() -> None:
    lead = Lead()
    lead.plan(
        steps.Assign("async", (ORDER, steps.Order(DEE.node, "dee", "mail.send", "mail it", seconds=30, pinned=True)))
    )
    (assign,) = lead.decide()
    assert isinstance(assign, Assign)
    count, mail = assign.tasks
    assert len({count.id, count.key, mail.id, mail.key}) == 4
    assert (count.effect, count.deadline, count.pinned) == ("pure", WALL + 600, False)
    assert (mail.effect, mail.deadline, mail.pinned) == ("once", WALL + 30, True)


def test_a_stale_plan_is_ignored() -> None:
    lead = Lead()
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    assert lead.coordinator.on_plan(NOW, view.version - 1, steps.Speak(*ME, text="old")) == ""
    assert lead.due() == []
    lead.coordinator.on_plan(NOW, view.version, steps.Speak(*ME, text="new"))
    lead.coordinator.on_plan(NOW, view.version, steps.Speak(*ME, text="again"))
    assert lead.decide() == [Discuss(ANN.node, "ann", "new")]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (steps.Assign("async", (steps.Order(BOB.node, "bob", "fly", "up"),)), "bob has no skill fly"),
        (steps.Assign("sync", (ORDER, ORDER)), "sync-is-one"),
        (steps.Await((b"?" * 16,)), "no-such-task"),
        (steps.Speak(BOB.node, "bob", text="I say"), "words-in-anothers-mouth"),
        (steps.FormTeam(ORDER), "bob forms no team for words.count"),
        (
            steps.Assign("async", tuple(steps.Order(BOB.node, "bob", "words.count", "é" * 2_000) for _ in range(16))),
            "too large",
        ),
    ],
)
def test_a_plan_that_breaks_a_rule_is_refused_and_the_planner_told_why(step: steps.Step, problem: str) -> None:
    lead = Lead()
    assert problem in lead.plan(step)
    assert lead.due() == []
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    assert problem in view.problem


def test_a_planner_that_never_makes_sense_is_a_cap() -> None:
    lead = Lead(caps=Caps(plans=2))
    for _ in range(2):
        lead.plan(steps.Await((b"?" * 16,)))
        assert lead.due() == []
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    lead.coordinator.on_plan_failed(view.version, "model unreachable")
    (end,) = lead.decide()
    assert isinstance(end, Conclude)
    assert (end.outcome, "model unreachable" in end.answer) == ("cap", True)


def test_a_planner_that_fails_in_many_words_still_ends_the_team() -> None:
    """An answer that is too long no member could read, and the end would be proposed for ever."""
    lead = Lead(caps=Caps(plans=0))
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    lead.coordinator.on_plan_failed(view.version, "x" * 100_000)
    (end,) = lead.decide()
    assert isinstance(end, Conclude)
    assert end.outcome == "cap"


def test_a_planned_end_that_the_team_refuses_is_a_bad_plan_and_not_proposed_for_ever() -> None:
    lead = Lead(caps=Caps(plans=0))
    lead.plan(steps.Conclude("done", "all is well", (), (b"no such task 16B",)))
    refused, end = lead.decide()
    assert isinstance(refused, Conclude)
    assert isinstance(end, Conclude)
    assert (refused.outcome, end.outcome) == ("done", "cap")


def test_a_planner_that_says_nothing_has_failed() -> None:
    lead = Lead()
    assert lead.coordinator.ask(NOW, {}) is not None
    assert lead.due(later(121)) == []
    view = lead.coordinator.ask(later(121), {})
    assert view is not None
    assert view.problem == "the planner did not answer"


def test_results_are_decided_and_the_pause_ends_without_the_planner() -> None:
    lead = Lead(Assign("async", (ONE,)), Await((ONE.id,), "all", WALL + 60))
    assert lead.coordinator.ask(NOW, {}) is None
    lead.coordinator.on_report(NOW, BOB.node, DONE)
    assert lead.decide() == [
        Outcome(ONE.id, 1, "succeeded", summary="17 words", spent=Spent()),
        Resume("done"),
    ]


def test_what_is_proposed_is_not_proposed_again_until_it_is_lost() -> None:
    lead = Lead(Assign("async", (ONE,)))
    lead.coordinator.on_report(NOW, BOB.node, DONE)
    (due,) = lead.coordinator.due(NOW)
    assert lead.coordinator.due(later(1)) == []
    lead.coordinator.on_not_proposed(due.step)
    assert lead.coordinator.due(later(1)) == [due]


def test_a_pause_ends_at_its_deadline() -> None:
    lead = Lead(Assign("async", (ONE,)), Await((ONE.id,), "all", WALL + 8))
    assert lead.due(later(7)) == []
    assert lead.due(later(8)) == [Resume("deadline")]


def test_a_member_that_has_the_word_is_heard() -> None:
    lead = Lead(Discuss(BOB.node, "bob", "", "well?"))
    assert lead.coordinator.ask(NOW, {}) is None
    with pytest.raises(PeerError, match="not-your-turn"):
        lead.coordinator.on_said(CY.node, Said(TEAM, 1, "me!"))
    with pytest.raises(PeerError, match="not-your-turn"):
        lead.coordinator.on_said(BOB.node, Said(TEAM, 2, "next"))
    lead.coordinator.on_said(BOB.node, Said(TEAM, 1, "words"))
    assert lead.due() == [Hear(1, "words")]


def test_a_member_that_says_nothing_in_its_time_said_nothing() -> None:
    lead = Lead(Discuss(BOB.node, "bob", "", "well?"))
    assert lead.due(NOW) == []
    assert lead.due(later(LAN.turn_s)) == []
    assert lead.due(later(LAN.turn_s + 0.1)) == [Hear(1, "")]


def test_a_planned_end_cancels_what_runs_then_names_who_did_what() -> None:
    lead = Lead(Assign("async", (ONE, TWO)), Outcome(ONE.id, 1, "succeeded"), Discuss(ANN.node, "ann", "enough"))
    assert lead.plan(steps.Conclude("done", "17", ((ONE.id, "17 words"),), (ONE.id,))) == ""
    credits = (Credit(BOB.node, "bob", "words.count", "succeeded"), Credit(CY.node, "cy", "words.count", "cancelled"))
    assert lead.decide() == [
        Cancel((), "concluded"),
        Conclude("done", "17", (ONE.id,), (Evidence(ONE.id, "17 words"),), credits),
    ]
    assert lead.due() == []
    assert lead.coordinator.ask(NOW, {}) is None


def test_a_long_end_in_a_script_of_many_bytes_is_cut_until_an_entry_holds_it() -> None:
    lead = Lead(Assign("async", (ONE,)), Outcome(ONE.id, 1, "succeeded"), Discuss(ANN.node, "ann", "enough"))
    evidence = tuple((ONE.id, "\U00020000" * 200) for _ in range(limits.EVIDENCE_MAX))
    assert lead.plan(steps.Conclude("done", "\U00020000" * limits.ANSWER_CHARS_MAX, evidence, (ONE.id,))) == ""
    [end] = lead.decide()
    assert isinstance(end, Conclude)
    assert len(codec.encode(end)) <= limits.DECISION_STEP_BYTES_MAX
    assert (end.outcome, len(end.answer), end.result) == ("done", limits.ANSWER_CHARS_MAX, (ONE.id,))
    assert 0 < len(end.evidence) < limits.EVIDENCE_MAX


def test_an_end_is_planned_in_the_discussion_only() -> None:
    lead = Lead(Assign("async", (ONE,)))
    assert lead.plan(steps.Conclude("done", "17")) == "phase-not-allowed"


@pytest.mark.parametrize(
    ("caps", "seconds", "outcome"),
    [(Caps(turns=1), 0, "cap"), (Caps(), 600, "deadline")],
)
def test_a_cap_ends_the_talk_with_what_there_is(caps: Caps, seconds: float, outcome: str) -> None:
    done = Outcome(TWO.id, 1, "succeeded", summary="9 words")
    lead = Lead(Discuss(ANN.node, "ann", "go"), Assign("async", (ONE, TWO)), done, caps=caps)
    cancel, end = lead.decide(later(seconds))
    assert isinstance(cancel, Cancel)
    assert isinstance(end, Conclude)
    assert (end.outcome, end.evidence) == (outcome, (Evidence(TWO.id, "9 words"),))
    assert "1 of 2 tasks succeeded" in end.answer


def test_a_wish_to_stop_is_carried_out() -> None:
    lead = Lead(Assign("async", (ONE,)))
    lead.coordinator.on_wish(Wish(TEAM, "conclude", reason="asked by the user"))
    cancel, end = lead.decide()
    assert cancel == Cancel((), "asked by the user")
    assert isinstance(end, Conclude)
    assert end.outcome == "cancelled"


def test_a_wish_to_cancel_some_tasks_leaves_the_others() -> None:
    lead = Lead(Assign("async", (ONE, TWO)))
    lead.coordinator.on_wish(Wish(TEAM, "cancel", (ONE.id, b"?" * 16), "wrong file"))
    assert lead.decide() == [Cancel((ONE.id,), "wrong file")]


def test_a_new_coordinator_goes_on_where_the_log_stands() -> None:
    lead = Lead(Assign("async", (ONE,)), Await((ONE.id,), "all", WALL + 60), Outcome(ONE.id, 1, "succeeded"))
    assert lead.due() == [Resume("done")]


def test_a_forced_end_is_bounded_whatever_was_done() -> None:
    lead = Lead()
    for number in range(40):
        task = spec(number)
        lead.log.add(Assign("async", (task,)), Outcome(task.id, 1, "succeeded", summary="é" * limits.SUMMARY_CHARS_MAX))
    lead.coordinator.on_wish(Wish(TEAM, "conclude"))
    (end,) = lead.decide()
    assert isinstance(end, Conclude)
    assert len(end.evidence) == 16


# -- what it may cost


def capped(**budget: int) -> Caps:
    return Caps(budget=Allowance(**budget, agents=8))


def test_every_task_gets_its_share_and_one_share_stays() -> None:
    lead = Lead(caps=capped(tokens=900, calls=9))
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    assert view.left == Allowance(900, None, 9, 5)
    lead.coordinator.on_plan(NOW, view.version, steps.Assign("async", (ORDER, ORDER)))
    (assign,) = lead.decide()
    assert isinstance(assign, Assign)
    assert [task.budget for task in assign.tasks] == [Allowance(300, None, 3)] * 2


def test_an_assignment_that_the_budget_does_not_cover_is_refused_in_plain_words() -> None:
    lead = Lead(caps=capped(tokens=900))
    dear = replace(ORDER, budget=Allowance(1_000))
    assert lead.plan(steps.Assign("async", (dear,))) == "over budget: 1000 tokens wanted, 900 left"
    assert lead.due() == []
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    assert "1000 tokens wanted" in view.problem


def test_several_tasks_must_fit_together() -> None:
    lead = Lead(caps=capped(tokens=900))
    half = replace(ORDER, budget=Allowance(500))
    assert lead.plan(steps.Assign("async", (half, half))) == "over budget: 500 tokens wanted, 400 left"


def test_while_tasks_run_that_may_give_something_back_they_are_waited_for() -> None:
    lead = Lead(Assign("async", (paid(ONE, calls=1),)), caps=capped(calls=1))
    assert "1 calls wanted, 0 left" in lead.plan(steps.Assign("async", (ORDER,)))
    assert lead.decide() == [Await((ONE.id,), "any", WALL + 600)]


def test_when_all_is_spent_the_team_ends_with_what_it_has_and_says_so() -> None:
    lead = Lead(Assign("async", (paid(ONE, calls=1),)), caps=capped(calls=1))
    lead.coordinator.on_report(NOW, BOB.node, DONE)
    lead.decide()
    assert lead.plan(steps.Assign("async", (ORDER,))) == "the budget of calls is spent"
    (end,) = lead.decide()
    assert isinstance(end, Conclude)
    assert (end.outcome, end.spent) == ("cap", Spent(calls=1))
    assert end.answer == "Stopped before the end: the budget of calls is spent. 1 of 1 tasks succeeded."


def test_a_planned_end_needs_no_budget() -> None:
    lead = Lead(Assign("async", (paid(ONE, calls=1),)), caps=capped(calls=1))
    lead.coordinator.on_report(NOW, BOB.node, DONE)
    lead.decide()
    assert lead.plan(steps.Speak(*ME, text="that was all")) == ""
    lead.decide()
    assert lead.plan(steps.Conclude("done", "17")) == ""
    assert [type(step) for step in lead.decide()] == [Conclude]


def test_talk_for_which_nothing_is_left_ends() -> None:
    """No model talks its way out of the cap on its tokens."""
    lead = Lead(caps=capped(tokens=1_000))
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    lead.coordinator.on_plan(NOW, view.version, steps.Speak(*ME, text="well"), Spent(1_200, 0, 1))
    spend, end = lead.decide()
    assert spend == Spend(Spent(1_200, 0, 1))
    assert isinstance(end, Conclude)
    assert (end.outcome, end.spent) == ("cap", Spent(1_000, 0, 1))
    assert lead.log.state.budget.over == Spent(200)


def test_what_the_planner_used_is_counted_even_for_an_answer_that_came_too_late_or_failed() -> None:
    lead = Lead()
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    lead.coordinator.on_plan(NOW, view.version - 1, steps.Speak(*ME, text="old"), Spent(10))
    lead.coordinator.on_plan_failed(view.version, "model unreachable", Spent(5))
    assert lead.decide() == [Spend(Spent(10)), Spend(Spent(5))]
    assert lead.log.state.budget.spent == Spent(15)


def test_the_end_tells_what_all_of_it_cost() -> None:
    lead = Lead(Assign("async", (ONE,)), Outcome(ONE.id, 1, "succeeded", spent=Spent(70, 700, 2)))
    lead.log.add(Discuss(ANN.node, "ann", "enough"))
    view = lead.coordinator.ask(NOW, {})
    assert view is not None
    assert (view.spent, view.tasks[0].spent) == (Spent(70, 700, 2), Spent(70, 700, 2))
    lead.coordinator.on_plan(NOW, view.version, steps.Conclude("done", "17"), Spent(30, 300, 1))
    spend, end = lead.decide()
    assert isinstance(spend, Spend)
    assert isinstance(end, Conclude)
    assert end.spent == Spent(100, 1_000, 3)


def paid(task: TaskSpec, **budget: int) -> TaskSpec:
    return codec.replace(task, budget=Allowance(**budget))


# -- what is left of unfinished work


def test_a_forced_end_shows_what_unfinished_tasks_put_out() -> None:
    lead = Lead(Assign("async", (ONE, TWO)), Outcome(TWO.id, 1, "failed", summary="half of it", reason="no ink"))
    lead.coordinator.on_report(NOW, BOB.node, Report(TEAM, ONE.id, 1, "running", summary="one, two, "))
    lead.coordinator.on_wish(Wish(TEAM, "conclude", reason="asked by the user"))
    _, end = lead.decide()
    assert isinstance(end, Conclude)
    assert end.evidence == (Evidence(ONE.id, "unfinished: one, two, "), Evidence(TWO.id, "unfinished: half of it"))
    assert end.answer.endswith("0 of 2 tasks succeeded. 2 unfinished left a part.")
