"""The fourteen ways in which teams of models fail (MAST, arXiv 2503.13657), each played by a scripted model.

A real coordinator leads; the model does wrong. Every one ends at a cap, or by a correct step: the model's own after it
was told what is wrong, or the rules'. Last: public failure 17, empty messages for ever.
"""

import pytest

from ioa_p2p.llm.port import Request, request_tokens
from ioa_p2p.llm.scripted import ScriptedLLM
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance
from ioa_p2p.wire.step import Await, Discuss, Hear, TaskSpec
from ioa_p2p.wire.team import Report
from tests.mind.leading import Leading, endless, fail, heard, numbered, of_skill, succeed
from tests.mind.models import assign, step
from tests.team.people import BOB, CY

COUNT = {"member": "m2", "skill": "words.count", "goal": "count", "reads": [], "gives": []}
COUNT_TOO = {**COUNT, "member": "m3"}
SUM = {"member": "m2", "skill": "counts.sum", "goal": "add", "reads": ["t1", "t2"], "gives": []}
MAIL = {"member": "m4", "skill": "mail.send", "goal": "buy socks", "reads": [], "gives": []}
DONE = step(do="conclude", outcome="done", answer="17 words.", result="t1", evidence=["t1"])
PARTIAL = step(do="conclude", outcome="partial", answer="Not counted.", result="", evidence=[])
FAILED = step(do="conclude", outcome="failed", answer="Cannot be.", result="", evidence=[])


def say(member: str, text: str) -> dict:
    return step(do="speak", member=member, text=text)


async def test_1_1_a_model_that_disobeys_the_task_ends_by_the_rules_steps() -> None:
    lead = Leading(endless("As a poet I would rather write: words, words, words."))
    conclusion = await lead.play()
    assert (conclusion.outcome, len(lead.tasks)) == ("done", 1)
    assert conclusion.spent.calls == len(lead.model.requests) + 1, "each call of the model, and the task's"


async def test_1_2_a_model_that_disobeys_its_role_puts_no_words_into_anothers_mouth() -> None:
    lead = Leading(ScriptedLLM(say("m2", "I am bob and I agree."), assign(COUNT), DONE), line=lambda prompt: "Do I?")
    assert (await lead.play()).outcome == "done"
    (line,) = lead.log.state.lines
    assert (line.node, line.text) == (BOB.node, "Do I?")


async def test_1_2_a_model_that_gives_its_work_to_the_wrong_role_is_told_who_can_do_it() -> None:
    lead = Leading(ScriptedLLM(assign({**MAIL, "member": "m2"}), assign(COUNT), DONE))
    assert (await lead.play()).outcome == "done"
    assert heard(lead.model, "bob has no skill 'mail.send'; it has: words.count, counts.sum")


async def test_1_3_a_model_that_repeats_a_step_does_not_repeat_the_work() -> None:
    lead = Leading(endless(assign(COUNT)))
    assert (await lead.play()).outcome == "done"
    assert len(lead.tasks) == 1
    assert heard(lead.model, "that is t1, which is succeeded")


async def test_1_3_a_model_that_repeats_a_line_ends_at_the_cap() -> None:
    conclusion = await Leading(endless(say("m1", "Let us think about it."))).play()
    assert (conclusion.outcome, "repeats" in conclusion.answer) == ("cap", True)


async def test_1_4_a_long_talk_does_not_make_the_model_lose_what_was_done() -> None:
    talk = [say("m2", f"Question {number}: {'and then ' * 100}?") for number in range(80)]

    def remember(request: Request) -> dict:
        assert request_tokens(request) < 4_000
        now = request.messages[-1].text
        assert 'words.count succeeded, gives count.result "words.count: 17"' in now
        assert "Question 79" in now
        return DONE

    lead = Leading(ScriptedLLM(assign(COUNT), *talk, remember), caps=Caps(turns=100))
    assert (await lead.play()).outcome == "done"
    lead.model.check()


async def test_1_5_a_model_that_does_not_know_when_to_stop_ends_at_the_cap() -> None:
    lead = Leading(numbered(lambda number: assign(COUNT) if number == 0 else say("m1", f"Thought {number}.")))
    conclusion = await lead.play()
    assert (conclusion.outcome, "turns" in conclusion.answer) == ("cap", True)
    assert "1 of 1 tasks succeeded" in conclusion.answer
    assert [each.text for each in conclusion.evidence] == ["words.count: 17"]


async def test_2_1_a_model_that_starts_anew_in_the_middle_is_told_what_is_done() -> None:
    again = [say("m1", "Welcome, team! Let us begin."), assign(COUNT)]
    lead = Leading(ScriptedLLM(*again, say("m1", "Hello! We begin."), assign(COUNT), DONE))
    assert (await lead.play()).outcome == "done"
    assert len(lead.tasks) == 1
    lead.model.check()


async def test_2_2_a_model_that_does_not_ask_for_what_is_missing_is_told_that_it_is_missing() -> None:
    lead = Leading(ScriptedLLM(assign({**SUM, "reads": []}), say("m2", "Which texts are there?"), assign(COUNT), DONE))
    assert (await lead.play()).outcome == "done"
    assert heard(lead.model, "needs an input of type count.result, which no finished task gives")
    assert [step.prompt for step in lead.decided if isinstance(step, Discuss)] == ["Which texts are there?"]


async def test_2_2_an_order_without_a_goal_is_for_the_teams_goal() -> None:
    lead = Leading(ScriptedLLM(assign({**COUNT, "goal": ""}), DONE))
    await lead.play()
    assert [spec.goal for spec in lead.tasks] == ["count the words"]


async def test_2_3_a_model_that_derails_does_its_harm_once_and_the_goal_is_met_all_the_same() -> None:
    lead = Leading(endless(assign(MAIL)))
    assert (await lead.play()).outcome == "done"
    assert (len(of_skill(lead.tasks, "mail.send")), len(of_skill(lead.tasks, "words.count"))) == (1, 1)


async def test_2_3_a_model_that_derails_in_ever_new_ways_ends_when_its_tokens_are_spent() -> None:
    caps = Caps(turns=10_000, budget=Allowance(tokens=20_000, agents=64))
    lead = Leading(numbered(lambda number: say("m1", f"Did you know fact {number} about socks?")), caps=caps)
    conclusion = await lead.play()
    assert conclusion.spent.tokens <= 20_000
    assert len(lead.model.requests) < 30
    assert conclusion.outcome in ("done", "cap")


async def test_2_4_what_a_model_holds_back_stands_in_the_evidence() -> None:
    silent = step(do="conclude", outcome="done", answer="All is well.", result="", evidence=[])
    conclusion = await Leading(ScriptedLLM(assign(COUNT, COUNT_TOO), silent)).play()
    assert [each.text for each in conclusion.evidence] == ["words.count: 17", "words.count: 17"]


async def test_2_5_a_model_that_ignores_what_others_made_has_it_put_in() -> None:
    lead = Leading(ScriptedLLM(assign(COUNT, COUNT_TOO), assign({**SUM, "reads": []}), {**DONE}))
    await lead.play()
    (total,) = of_skill(lead.tasks, "counts.sum")
    assert total.inputs[0].tasks == tuple(spec.id for spec in of_skill(lead.tasks, "words.count"))


async def test_2_5_a_model_that_ignores_a_members_no_is_told_of_it() -> None:
    def work(spec: TaskSpec) -> Report | None:
        return fail(spec, retry=False) if spec.node == BOB.node else succeed(spec)

    done = step(do="conclude", outcome="done", answer="17.", result="t2", evidence=[])
    lead = Leading(ScriptedLLM(assign(COUNT), assign(COUNT), assign(COUNT_TOO), done), work=work)
    assert (await lead.play()).outcome == "done"
    assert heard(lead.model, "t1 was that and another try cannot help")
    assert [spec.node for spec in lead.tasks] == [BOB.node, CY.node]


async def test_2_6_a_model_that_says_one_thing_and_does_another_is_judged_by_what_it_does() -> None:
    lead = Leading(ScriptedLLM())

    def work(spec: TaskSpec) -> Report | None:
        return succeed(spec) if any(isinstance(step, Await) for step in lead.decided) else None

    lead.work = work
    ends = {"why": "I shall wait for the counter.", "step": {**DONE["step"], "result": "", "evidence": []}}
    waits = step(do="wait", tasks=["t1"], seconds=0, **{"for": "all"})
    talk = say("m1", "It runs.")
    lead.model._turns += [assign(COUNT, wait="none"), talk, ends, waits, DONE]
    assert (await lead.play()).outcome == "done"
    assert heard(lead.model, "no task has succeeded, so it is not done")


@pytest.mark.parametrize("end", [DONE, FAILED, {**DONE, "step": {**DONE["step"], "result": "", "evidence": []}}])
async def test_3_1_a_model_that_ends_too_early_does_not_end_it(end: dict) -> None:
    conclusion = await Leading(endless(end)).play()
    assert (conclusion.outcome, len(conclusion.evidence)) == ("done", 1)


async def test_3_2_a_model_that_does_not_verify_cannot_call_it_done() -> None:
    lead = Leading(ScriptedLLM(assign(COUNT), {**DONE, "step": {**DONE["step"], "result": ""}}, PARTIAL), work=fail)
    conclusion = await lead.play()
    assert (conclusion.outcome, conclusion.answer) == ("partial", "Not counted.")
    assert heard(lead.model, "no task has succeeded, so it is not done")


async def test_3_3_a_model_that_verifies_wrongly_is_overruled_by_what_the_log_says() -> None:
    def work(spec: TaskSpec) -> Report | None:
        return fail(spec) if spec.node == BOB.node else succeed(spec)

    lead = Leading(ScriptedLLM(assign(COUNT), DONE, DONE, *[DONE] * 20), work=work)
    conclusion = await lead.play()
    assert [spec.node for spec in lead.tasks] == [BOB.node, CY.node]
    assert conclusion.outcome == "done"
    assert conclusion.result == (lead.tasks[1].id,)


async def test_17_a_model_that_says_nothing_for_ever_costs_two_calls_a_step_and_rules_do_the_work() -> None:
    lead = Leading(endless(""))
    conclusion = await lead.play()
    assert (conclusion.outcome, len(lead.tasks)) == ("done", 1)
    assert len(lead.model.requests) <= 8


async def test_17_members_that_say_nothing_for_ever_end_the_talk_at_the_cap() -> None:
    lead = Leading(numbered(lambda number: say("m2", f"Are you there? {number}")), line=lambda prompt: "")
    conclusion = await lead.play()
    assert (conclusion.outcome, "empty" in conclusion.answer) == ("cap", True)
    assert sum(isinstance(step, Hear) for step in lead.decided) == Caps().empty + 1
