"""The fold: each rule once kept and once broken; a refused entry changes nothing."""

from copy import deepcopy

import msgpack  # pyright: ignore[reportMissingTypeStubs]
import pytest

from ioa_p2p.team.inputs import outputs_of, resolve
from ioa_p2p.team.phases import Phase
from ioa_p2p.team.state import (
    Committed,
    Ended,
    LineHeard,
    PhaseMoved,
    Refused,
    SaidLine,
    TaskMoved,
    TeamState,
    TurnGiven,
)
from ioa_p2p.team.tasks import TaskState
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import (
    Assign,
    Await,
    Cancel,
    Conclude,
    Discuss,
    Elect,
    Hear,
    Input,
    Outcome,
    Reassign,
    Resume,
    Spend,
    Step,
    TaskSpec,
)
from tests.team.people import ANN, BOB, COUNT, CY, DEE, MAIL, SUM, WALL, Log, spec

ONE, TWO = spec(1), spec(2, CY)
BOTH = Assign("async", (ONE, TWO))
DONE = Outcome(ONE.id, 1, "succeeded", b"", (), "17 words")


def refusal(log: Log, step: Step, at: int = WALL) -> str:
    """Why it is refused; and that nothing else changed."""
    before = deepcopy({**vars(log.state), "index": 0, "refused": {}, "term": 0, "at": 0})
    (change,) = log.add(step, at=at)
    assert isinstance(change, Refused)
    assert {**vars(log.state), "index": 0, "refused": {}, "term": 0, "at": 0} == before
    assert log.state.refused[change.code] >= 1
    return change.code


def test_tasks_are_offered_and_the_phase_moves() -> None:
    log = Log()
    changes = log.add(BOTH)
    assert changes[0] == PhaseMoved(Phase.DISCUSSION, Phase.ASYNC_ASSIGN)
    assert [change.row.spec for change in changes[1:] if isinstance(change, TaskMoved)] == [ONE, TWO]
    assert {row.state for row in log.state.tasks.values()} == {TaskState.OFFERED}


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Assign("sync", (ONE, TWO)), "sync-is-one"),
        (Assign("async", (ONE, ONE)), "task-exists"),
        (Assign("async", (codec.replace(ONE, attempt=2),)), "task-exists"),
        (Assign("async", (codec.replace(ONE, agent="nobody"),)), "no-such-skill"),
        (Assign("async", (codec.replace(ONE, skill="mail.send"),)), "no-such-skill"),
        (Assign("async", (codec.replace(ONE, effect="once"),)), "no-such-skill"),
        (Assign("async", (codec.replace(ONE, deadline=WALL + 601),)), "deadline-too-late"),
        (Assign("async", (codec.replace(ONE, inputs=(Input("count.result", (b"x" * 16,)),)),)), "input-missing"),
        (Await((ONE.id,), "all", WALL), "no-such-task"),
        (Outcome(ONE.id, 1, "succeeded"), "no-such-task"),
        (Reassign(ONE.id, 2, CY.node, "cy", ""), "no-such-task"),
        (Cancel((ONE.id,), ""), "no-such-task"),
        (Conclude("done", "", (ONE.id,)), "no-such-task"),
        (Discuss(CY.node, "bob", "hi"), "not-a-member"),
        (Discuss(BOB.node, "bob", "hi"), "words-in-anothers-mouth"),
        (Hear(1, "hi"), "no-such-turn"),
        (Resume(""), "phase-not-allowed"),
    ],
)
def test_an_entry_that_breaks_a_rule_changes_nothing(step: Step, code: str) -> None:
    assert refusal(Log(), step) == code


def test_a_task_that_exists_is_not_given_again() -> None:
    log = Log()
    log.add(BOTH)
    assert refusal(log, Assign("async", (ONE,))) == "task-exists"


def test_inputs_must_have_succeeded() -> None:
    log = Log()
    log.add(BOTH)
    needs = spec(3, CY, SUM, WALL + 600, Input("count.result", (ONE.id,)))
    assert refusal(log, Assign("async", (needs,))) == "input-missing"
    log.add(DONE)
    assert any(isinstance(change, TaskMoved) for change in log.add(Assign("async", (needs,))))


def test_a_team_has_no_more_tasks_than_it_may() -> None:
    log = Log()
    for first in range(0, limits.TEAM_TASKS_MAX, 16):
        many = tuple(codec.replace(ONE, id=(first + n).to_bytes(16, "big")) for n in range(16))
        log.add(Assign("async", many))
    assert refusal(log, Assign("async", (TWO,))) == "too-many-tasks"


def test_a_final_task_is_not_given_out_anew() -> None:
    """Its budget is settled; a liar's entry that every member folds must not make any of them fail."""
    log = Log()
    log.add(BOTH, DONE)
    for begun in (True, False):
        assert refusal(log, Reassign(ONE.id, 2, CY.node, "cy", "", begun)) == "task-final"


def test_an_outcome_is_of_the_newest_attempt_and_final() -> None:
    log = Log()
    log.add(BOTH, Reassign(ONE.id, 2, CY.node, "cy", "lost"))
    assert refusal(log, DONE) == "wrong-attempt"
    newest = codec.replace(DONE, attempt=2)
    (change,) = log.add(newest)
    assert isinstance(change, TaskMoved)
    assert (change.row.state, change.row.outcome) == (TaskState.SUCCEEDED, newest)
    assert refusal(log, newest) == "task-final"
    assert log.add(Cancel((ONE.id,), "")) == []
    assert log.state.tasks[ONE.id].state is TaskState.SUCCEEDED


def test_a_reassigned_task_keeps_its_key_and_changes_its_worker() -> None:
    log = Log()
    log.add(BOTH)
    (change,) = log.add(Reassign(ONE.id, 2, CY.node, "cy", "lost"), term=3)
    assert isinstance(change, TaskMoved)
    assert change.row.spec == codec.replace(ONE, node=CY.node, agent="cy", attempt=2)
    assert (change.row.state, change.row.term, change.row.reason) == (TaskState.OFFERED, 3, "lost")


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Reassign(ONE.id, 1, CY.node, "cy", ""), "wrong-attempt"),
        (Reassign(ONE.id, 3, CY.node, "cy", ""), "wrong-attempt"),
        (Reassign(ONE.id, 2, DEE.node, "dee", ""), "no-such-skill"),
        (Reassign(bytes([3]) * 16, 2, DEE.node, "dee", ""), "not-repeatable"),
        (Reassign(bytes([4]) * 16, 2, CY.node, "cy", ""), "pinned"),
    ],
)
def test_reassignments_that_are_refused(step: Step, code: str) -> None:
    log = Log()
    log.add(Assign("async", (ONE, TWO, spec(3, DEE, MAIL), codec.replace(spec(4), pinned=True))))
    assert refusal(log, step) == code


def test_a_pinned_task_may_run_again_at_its_own_member() -> None:
    log = Log()
    log.add(Assign("async", (codec.replace(ONE, pinned=True),)))
    assert isinstance(log.add(Reassign(ONE.id, 2, BOB.node, "bob", ""))[0], TaskMoved)


@pytest.mark.parametrize(("mode", "over"), [("all", False), ("any", True)])
def test_a_pause_ends_with_all_or_any_of_its_tasks(mode: str, over: bool) -> None:
    log = Log()
    log.add(BOTH, Await((ONE.id, TWO.id), "any" if mode == "any" else "all", WALL + 60), DONE)
    assert log.state.waiting_over is over
    if not over:
        assert refusal(log, Resume("done")) == "still-waiting"
        log.add(codec.replace(DONE, task=TWO.id))
    assert log.add(Resume("done")) == [PhaseMoved(Phase.PAUSE, Phase.DISCUSSION)]


def test_a_pause_ends_at_its_deadline_by_the_logs_own_time() -> None:
    log = Log()
    log.add(BOTH, Await((ONE.id,), "all", WALL + 60))
    assert refusal(log, Resume("deadline"), at=WALL + 59) == "still-waiting"
    assert log.add(Resume("deadline"), at=WALL + 60) == [PhaseMoved(Phase.PAUSE, Phase.DISCUSSION)]


def test_nothing_is_waited_for_that_does_not_run() -> None:
    log = Log()
    log.add(Assign("async", (ONE,)), DONE)
    assert refusal(log, Await((ONE.id,), "all", WALL + 60)) == "nothing-runs"


def test_sync_work_holds_the_talk_until_it_is_done() -> None:
    log = Log()
    assert log.add(Assign("sync", (ONE,)))[0] == PhaseMoved(Phase.DISCUSSION, Phase.SYNC_ASSIGN)
    assert refusal(log, Discuss(ANN.node, "ann", "hi")) == "phase-not-allowed"
    assert refusal(log, Resume("")) == "still-waiting"
    log.add(DONE)
    assert log.add(Resume("done")) == [PhaseMoved(Phase.SYNC_ASSIGN, Phase.DISCUSSION)]


def test_a_deadline_that_passed_in_the_log_expires_its_tasks_before_the_entry_counts() -> None:
    log = Log()
    log.add(Assign("async", (spec(1, BOB, COUNT, WALL + 10), TWO)))
    assert log.add(Elect(), at=WALL + 10) == []
    (change,) = log.add(Elect(), at=WALL + 11)
    assert isinstance(change, TaskMoved)
    assert change.row.state is TaskState.EXPIRED
    late = log.add(DONE, at=WALL + 12)
    assert late == [Refused("task-final")]


def test_the_logs_time_never_goes_back() -> None:
    log = Log()
    log.add(Elect(), at=WALL + 50)
    log.add(Elect(), at=WALL + 5)
    assert log.state.at == WALL + 50


def test_cancel_ends_the_named_tasks_or_all() -> None:
    log = Log()
    log.add(BOTH)
    log.add(Cancel((ONE.id,), "enough"))
    assert [row.state.value for row in log.state.tasks.values()] == ["cancelled", "offered"]
    log.add(Cancel((), "all"))
    assert log.state.open_tasks == []


def test_the_end_needs_all_tasks_final_and_is_the_end() -> None:
    log = Log()
    log.add(Assign("async", (ONE,)))
    assert refusal(log, Conclude("cap", "stop")) == "tasks-run"
    log.add(DONE)
    assert refusal(log, Conclude("done", "17")) == "phase-not-allowed"
    log.add(Discuss(ANN.node, "ann", "so"))
    end = Conclude("done", "17", (ONE.id,))
    assert log.add(end) == [PhaseMoved(Phase.DISCUSSION, Phase.CONCLUSION), Ended(end)]
    assert refusal(log, Discuss(ANN.node, "ann", "more")) == "phase-not-allowed"
    assert log.add(Elect()) == []


def test_a_line_of_the_coordinator_is_a_whole_turn() -> None:
    log = Log()
    line = SaidLine(1, ANN.node, "ann", "hello")
    assert log.add(Discuss(ANN.node, "ann", "hello")) == [LineHeard(line)]
    assert (log.state.turn, log.state.open_turn, log.state.lines) == (1, None, (line,))


def test_another_member_has_the_word_until_it_is_heard() -> None:
    log = Log()
    ask = Discuss(BOB.node, "bob", "", "what do you see?")
    assert log.add(ask) == [TurnGiven(1, ask)]
    assert refusal(log, Discuss(ANN.node, "ann", "hi")) == "turn-open"
    assert refusal(log, Hear(2, "early")) == "no-such-turn"
    assert log.add(Hear(1, "words")) == [LineHeard(SaidLine(1, BOB.node, "bob", "words"))]


@pytest.mark.parametrize(
    ("lines", "cap"),
    [
        (["a", "b", "c", "d"], "turns"),
        (["a", "A ", " a"], "repeats"),
        (["", " "], "empty"),
        (["a", "b", "a"], ""),
        ([], ""),
    ],
)
def test_caps_end_the_talk(lines: list[str], cap: str) -> None:
    log = Log(Caps(turns=4, repeats=1, empty=1))
    for turn, line in enumerate(lines, 1):
        log.add(Discuss(BOB.node, "bob", "", "go on"), Hear(turn, line))
    assert log.state.cap(WALL) == cap


def test_the_goals_deadline_is_a_cap() -> None:
    assert [Log().state.cap(WALL + 599), Log().state.cap(WALL + 600)] == ["", "deadline"]


def test_only_the_newest_lines_are_kept() -> None:
    log = Log()
    for turn in range(limits.LINES_KEPT_MAX + 5):
        log.add(Discuss(ANN.node, "ann", f"line {turn}"))
    assert len(log.state.lines) == limits.LINES_KEPT_MAX
    assert log.state.lines[-1].text == f"line {limits.LINES_KEPT_MAX + 4}"


def test_a_trial_leaves_the_state_as_it_was() -> None:
    log = Log()
    log.add(BOTH)
    shown = deepcopy(vars(log.state))
    assert log.state.refusal(Committed(2, 1, ANN.node, WALL, DONE)) == ""
    assert log.state.refusal(Committed(2, 1, ANN.node, WALL, Resume(""))) == "phase-not-allowed"
    assert vars(log.state) == shown


def test_the_same_entries_make_the_same_state() -> None:
    logs = [Log(), Log()]
    for log in logs:
        log.add(BOTH, DONE, Reassign(TWO.id, 2, BOB.node, "bob", "lost"), Cancel((), "stop"))
    assert vars(logs[0].state) == vars(logs[1].state)
    assert isinstance(logs[0].state, TeamState)


# -- the budget


def costly(task: TaskSpec, tokens: int) -> TaskSpec:
    return codec.replace(task, budget=Allowance(tokens, None, 2))


def limited(tokens: int = 100, calls: int = 9) -> Log:
    return Log(Caps(budget=Allowance(tokens, None, calls)))


def test_an_assignment_beyond_the_budget_changes_nothing() -> None:
    log = limited()
    assert refusal(log, Assign("async", (costly(ONE, 60), costly(TWO, 41)))) == "over-budget"
    assert refusal(log, Assign("async", (ONE,))) == "over-budget"
    log.add(Assign("async", (costly(ONE, 60), costly(TWO, 40))))
    assert log.state.budget.free == Allowance(0, None, 5)


def test_an_outcome_settles_what_its_worker_told() -> None:
    log = limited()
    log.add(Assign("async", (costly(ONE, 60),)), codec.replace(DONE, spent=Spent(25, 5, 1)))
    assert (log.state.budget.spent, log.state.budget.free) == (Spent(25, 5, 1), Allowance(75, None, 8))


def test_what_nobody_told_counts_as_lost_by_outcome_cancel_and_deadline() -> None:
    for end, at in ((DONE, WALL), (Cancel((), ""), WALL), (Elect(), WALL + 601)):
        log = limited()
        log.add(Assign("async", (costly(ONE, 60),)))
        log.add(end, at=at)
        assert (log.state.budget.lost, log.state.budget.free.tokens) == (Spent(60, 0, 2), 40)


def test_the_next_attempt_gets_the_rest_unless_the_last_never_began() -> None:
    log = limited()
    log.add(Assign("async", (costly(ONE, 60),)), Reassign(ONE.id, 2, CY.node, "cy", "busy", begun=False))
    assert log.state.tasks[ONE.id].spec.budget == Allowance(60, None, 2)
    log.add(Reassign(ONE.id, 3, BOB.node, "bob", "lost"))
    assert log.state.tasks[ONE.id].spec.budget == Allowance(40, None, 2)
    assert refusal(log, Reassign(ONE.id, 4, CY.node, "cy", "lost")) == "over-budget"
    log.add(Outcome(ONE.id, 3, "succeeded", spent=Spent(40)))
    assert (log.state.budget.spent, log.state.budget.lost) == (Spent(40, 0, 1), Spent(60, 0, 2))


def test_what_the_planner_used_is_spent() -> None:
    log = limited()
    log.add(Spend(Spent(99, 1, 1)))
    assert (log.state.budget.spent, log.state.budget.free.tokens) == (Spent(99, 1, 1), 1)


def test_outputs_with_odd_names_or_values_hurt_nobody_who_reads_them() -> None:
    log, total = Log(), spec(3, BOB, SUM, WALL + 600, Input("count.result", (ONE.id,)))
    odd = msgpack.packb({"count.result": msgpack.Timestamp(7), 7: 8, b"bytes": 9})
    log.add(Assign("async", (ONE,)), codec.replace(DONE, outputs=odd))
    (value,) = resolve(total, log.state)
    assert [codec.read_any(each) for each in value.values] == [7]
    assert outputs_of(codec.replace(DONE, outputs=odd)) == {"count.result": 7}
