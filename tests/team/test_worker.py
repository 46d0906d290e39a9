"""The worker's side: full lists of what it wants done."""

from dataclasses import replace

import pytest

from ioa_p2p.effects import Emit, Now, Rows, Save
from ioa_p2p.team.commands import TaskDone, TaskFailed, TaskProgress, WorkerDied
from ioa_p2p.team.events import CancelTask, InputValue, Orphan, StartTask
from ioa_p2p.team.life import Life
from ioa_p2p.team.queue import Queue
from ioa_p2p.team.tasks import LAN
from ioa_p2p.team.worker import Job, Worker
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import Assign, Blob, Cancel, Input, Outcome, Reassign, TaskSpec
from ioa_p2p.wire.team import Report
from tests.team.people import ANN, BOB, CY, DEE, MAIL, NOW, SUM, TEAM, WALL, Log, later, no_rows, spec

SPACE = f"task/{TEAM.hex()}"
ONE = spec(1)
RESULT = codec.encode({"count.result": 17})
DONE = TaskDone(TEAM, ONE.id, 1, RESULT, (), "17 words")
TOLD = Report(TEAM, ONE.id, 1, "succeeded", 100, "", 0, RESULT, (), "17 words")


UNTIL_S = NOW.boot + 600.0


def worker(rows: Rows = no_rows, key: bytes = BOB.node, queue: Queue | None = None, life: Life | None = None) -> Worker:
    return Worker(key, TEAM, ANN.node, rows, LAN, queue or Queue(), life)


def job(starts: int = 1, report: Report | None = None, deaths: int = 0) -> Job:
    """Bob's row for task one while it runs."""
    return Job(1, starts, ONE, report, deaths, until_s=UNTIL_S)


def disk(*jobs: tuple[bytes, Job]) -> Rows:
    rows = [(task, codec.encode(job)) for task, job in jobs]
    return lambda space: rows if space == SPACE else []


def saved(task: bytes, job: Job) -> Save:
    return Save(SPACE, task, codec.encode(job))


def start(one: TaskSpec, *inputs: InputValue, seconds: float = 600.0) -> Emit:
    return Emit(StartTask(TEAM, one, inputs, seconds))


def assigned(*tasks: TaskSpec) -> Log:
    log = Log()
    log.add(Assign("async", tasks or (ONE,)), term=4)
    return log


def working() -> tuple[Worker, Log]:
    """Bob works on task one."""
    log, bob = assigned(), worker()
    bob.reconcile(NOW, log.state, new=True)
    return bob, log


def test_a_committed_task_of_ours_is_saved_with_its_fence_then_told_then_started() -> None:
    assert worker().reconcile(NOW, assigned().state, new=True) == [
        Save(SPACE, b"fence", codec.encode((0, 4))),
        Report(TEAM, ONE.id, 1, "accepted"),
        saved(ONE.id, job()),
        start(ONE),
    ]


def test_it_is_taken_on_once() -> None:
    bob, log = working()
    assert bob.reconcile(NOW, log.state, new=True) == []


def test_others_tasks_are_left_alone() -> None:
    assert worker(key=CY.node).reconcile(NOW, assigned().state, new=True) == []


def test_nothing_new_is_taken_on_while_no_coordinator_is_heard() -> None:
    assert worker().reconcile(NOW, assigned().state, new=False) == []


def test_a_task_past_its_deadline_is_not_begun() -> None:
    assert worker().reconcile(later(601), assigned().state, new=True) == []


def test_an_assignment_of_an_older_term_than_one_we_took_is_refused() -> None:
    rows = [(b"fence", codec.encode((0, 5)))]
    assert worker(lambda space: rows).reconcile(NOW, assigned().state, new=True) == []


def test_inputs_are_resolved_from_the_outcomes_before() -> None:
    log = assigned(ONE, spec(2, CY))
    blob = Blob("big", "application/msgpack", b"h" * 32, 5, "count.result")
    file = Blob("plot.png", "image/png", b"p" * 32, 5)
    log.add(Outcome(ONE.id, 1, "succeeded", RESULT, (file,)), Outcome(bytes([2]) * 16, 1, "succeeded", b"", (blob,)))
    given = codec.encode(3)
    both = Input("count.result", (ONE.id, bytes([2]) * 16))
    needs = spec(3, BOB, SUM, WALL + 600, both, Input("limit", (), given))
    log.add(Assign("async", (needs,)))
    *_, begin = worker().reconcile(NOW, log.state, new=True)
    values = InputValue("count.result", (codec.encode(17),), (file, blob))
    assert begin == start(needs, values, InputValue("limit", (given,), ()))


def test_a_result_is_saved_before_it_is_told() -> None:
    bob, _ = working()
    assert bob.done(DONE) == [saved(ONE.id, job(report=TOLD)), TOLD]
    assert bob.done(DONE) == []


def test_a_result_is_told_every_beat_until_its_outcome_is_committed() -> None:
    bob, log = working()
    bob.done(DONE)
    assert bob.beat(later(2)) == [TOLD]
    assert list(bob.open_reports()) == [TOLD]
    log.add(Outcome(ONE.id, 1, "succeeded", RESULT))
    assert bob.reconcile(later(3), log.state, new=True) == [saved(ONE.id, Job(1))]
    assert bob.beat(later(4)) == []
    assert not bob.busy


def test_what_runs_beats_with_its_progress() -> None:
    bob, _ = working()
    assert bob.beat(later(2)) == [Report(TEAM, ONE.id, 1, "accepted")]
    assert bob.progress(later(2), TaskProgress(TEAM, ONE.id, 1, 0.256, "a quarter")) == [
        Report(TEAM, ONE.id, 1, "running", 26, "a quarter")
    ]
    assert bob.progress(later(2.1), TaskProgress(TEAM, ONE.id, 1, 0.3)) == []
    assert bob.beat(later(4.5)) == [Report(TEAM, ONE.id, 1, "running", 30, "")]


def test_progress_out_of_bounds_or_of_nothing_known_is_harmless() -> None:
    bob, _ = working()
    assert bob.progress(later(1), TaskProgress(TEAM, ONE.id, 2, 0.5)) == []
    assert bob.progress(later(1), TaskProgress(TEAM, b"?" * 16, 1, 0.5)) == []
    (report,) = bob.progress(later(1), TaskProgress(TEAM, ONE.id, 1, 7.0, "n" * 999))
    assert isinstance(report, Report)
    assert (report.fraction, len(report.note)) == (100, limits.REASON_CHARS_MAX)


def test_a_failure_is_kept_like_a_result() -> None:
    bob, _ = working()
    report = Report(TEAM, ONE.id, 1, "failed", note="no ink", retry=False)
    assert bob.failed(TaskFailed(TEAM, ONE.id, 1, "no ink", False)) == [saved(ONE.id, job(report=report)), report]


def test_a_higher_attempt_elsewhere_fences_ours() -> None:
    bob, log = working()
    log.add(Reassign(ONE.id, 2, CY.node, "cy", "worker lost"))
    assert bob.reconcile(NOW, log.state, new=True) == [
        saved(ONE.id, Job(1)),
        Emit(CancelTask(TEAM, ONE.id, 1, "worker lost")),
    ]


def test_a_late_result_of_a_fenced_attempt_is_kept_and_shown_but_not_told() -> None:
    bob, log = working()
    log.add(Reassign(ONE.id, 2, CY.node, "cy", "worker lost"))
    bob.reconcile(NOW, log.state, new=True)
    orphan = Emit(Orphan(TEAM, ONE.id, 1, "succeeded", "17 words"))
    assert bob.done(DONE) == [Save(SPACE, ONE.id + b"\x01", codec.encode(TOLD)), orphan]
    assert bob.beat(later(9)) == []


def test_a_result_that_was_told_too_late_becomes_an_orphan() -> None:
    bob, log = working()
    bob.done(DONE)
    log.add(Reassign(ONE.id, 2, CY.node, "cy", "worker lost"))
    assert bob.reconcile(NOW, log.state, new=True) == [
        saved(ONE.id, Job(1)),
        Save(SPACE, ONE.id + b"\x01", codec.encode(TOLD)),
        Emit(Orphan(TEAM, ONE.id, 1, "succeeded", "17 words")),
    ]


def test_a_higher_attempt_at_ourselves_starts_anew() -> None:
    bob, log = working()
    log.add(Reassign(ONE.id, 2, BOB.node, "bob", "busy"), term=6)
    second = codec.replace(ONE, attempt=2)
    assert bob.reconcile(NOW, log.state, new=True) == [
        saved(ONE.id, Job(1)),
        Emit(CancelTask(TEAM, ONE.id, 1, "busy")),
        Save(SPACE, b"fence", codec.encode((0, 6))),
        Report(TEAM, ONE.id, 2, "accepted"),
        saved(ONE.id, Job(2, 1, second, until_s=UNTIL_S)),
        start(second),
    ]


def test_a_cancelled_task_is_stopped_and_forgotten() -> None:
    bob, log = working()
    log.add(Cancel((), "enough"))
    assert bob.reconcile(NOW, log.state, new=True) == [
        saved(ONE.id, Job(1)),
        Emit(CancelTask(TEAM, ONE.id, 1, "enough")),
    ]


def test_what_ended_is_not_begun_again_after_a_restart() -> None:
    log = assigned()
    log.add(Cancel((), "enough"))
    assert worker(disk((ONE.id, Job(1)))).reconcile(NOW, log.state, new=True) == []
    assert worker(disk((ONE.id, Job(1)))).reconcile(NOW, assigned().state, new=True) == []


def test_after_a_restart_what_may_run_again_does_under_its_key_and_is_counted() -> None:
    bob = worker(disk((ONE.id, Job(1, 1, ONE))))
    assert bob.beat(NOW) == []
    assert bob.reconcile(NOW, assigned().state, new=True) == [
        Report(TEAM, ONE.id, 1, "accepted"),
        saved(ONE.id, job(2)),
        start(ONE),
    ]


def test_the_second_death_of_its_process_makes_it_a_dead_letter() -> None:
    bob, log = working()
    died = WorkerDied(TEAM, ONE.id, 1, "killed by signal 9")
    assert bob.died(NOW, log.state, died) == [saved(ONE.id, job(2, deaths=1)), start(ONE)]
    bob.progress(later(1), TaskProgress(TEAM, ONE.id, 1, text="one, two, "))
    report = Report(
        TEAM, ONE.id, 1, "dead-letter", note="the worker died twice. killed by signal 9", summary="one, two, "
    )
    assert bob.died(NOW, log.state, died) == [saved(ONE.id, job(2, report=report, deaths=2)), report]
    assert bob.died(NOW, log.state, died) == []


@pytest.mark.parametrize(
    ("boot", "life", "starts"),
    [
        (b"one", Life(b"one", clean=True), 1),  # the node was stopped
        (b"one", Life(b"two"), 1),  # the machine went down
        (b"one", Life(b"one"), 2),  # the node alone crashed: this may be the task's doing
    ],
)
def test_an_end_of_the_node_that_is_not_the_tasks_doing_is_not_held_against_it(
    boot: bytes, life: Life, starts: int
) -> None:
    bob = worker(disk((ONE.id, Job(1, 1, ONE, deaths=1, boot=boot))), life=life)
    _, save, begin = bob.reconcile(NOW, assigned().state, new=True)
    assert save == saved(ONE.id, Job(1, starts, ONE, deaths=1, boot=life.boot, until_s=UNTIL_S))
    assert begin == start(ONE)


def test_two_crashes_of_the_node_are_not_two_deaths_but_many_are_enough() -> None:
    rows, seen = {ONE.id: Job(1, 1, ONE)}, list[int]()
    while True:
        bob = worker(disk(*rows.items()))
        deeds = bob.reconcile(NOW, assigned().state, new=True)
        rows[ONE.id] = next(codec.decode(deed.value or b"", Job) for deed in deeds if isinstance(deed, Save))
        if rows[ONE.id].report is not None:
            break
        seen.append(rows[ONE.id].starts)
    assert seen == [2, 3, 4]
    assert deeds[-1] == Report(TEAM, ONE.id, 1, "dead-letter", note="the worker's node crashed 4 times while it ran")


def test_a_task_that_may_run_once_is_unknown_after_a_crash_and_never_begun_again() -> None:
    mail = spec(5, DEE, MAIL)
    for life in (Life(), Life(clean=True), Life(b"other")):
        dee = worker(disk((mail.id, Job(1, 1, mail))), DEE.node, life=life)
        report = Report(TEAM, mail.id, 1, "unknown", note="the worker's node ended while it ran")
        assert dee.reconcile(NOW, assigned(mail).state, new=True) == [saved(mail.id, Job(1, 1, mail, report)), report]
        assert dee.reconcile(NOW, assigned(mail).state, new=True) == []


def test_a_task_that_may_run_once_is_unknown_when_its_process_died() -> None:
    mail = spec(5, DEE, MAIL)
    dee, log = worker(key=DEE.node), assigned(mail)
    dee.reconcile(NOW, log.state, new=True)
    save, report = dee.died(NOW, log.state, WorkerDied(TEAM, mail.id, 1))
    assert report == Report(TEAM, mail.id, 1, "unknown", note="the worker died while it ran")
    assert isinstance(save, Save)


def test_after_a_restart_a_saved_result_is_told_not_made_again() -> None:
    bob = worker(disk((ONE.id, Job(1, 1, ONE, TOLD))))
    assert bob.reconcile(NOW, assigned().state, new=True) == []
    assert bob.beat(NOW) == [TOLD]


def test_a_run_past_its_deadline_is_stopped_without_any_majority() -> None:
    bob, _ = working()
    report = Report(TEAM, ONE.id, 1, "expired", note="deadline passed")
    assert bob.beat(later(601)) == [
        Emit(CancelTask(TEAM, ONE.id, 1, "deadline passed")),
        saved(ONE.id, job(report=report)),
        report,
    ]


def test_within_one_boot_no_jump_of_the_wall_clock_moves_a_deadline() -> None:
    bob, _ = working()
    assert bob.beat(Now(NOW.wall + 9_999, NOW.boot + 599)) == [Report(TEAM, ONE.id, 1, "accepted")]
    assert len(bob.beat(Now(NOW.wall - 9_999, NOW.boot + 601))) == 3


def test_a_deadline_saved_in_another_boot_is_counted_by_the_wall_clock() -> None:
    kept = Job(1, 1, ONE, boot=b"before", until_s=7.0)
    bob = worker(disk((ONE.id, kept)), life=Life(b"now"))
    assert bob.beat(NOW) == []
    assert start(ONE, seconds=590.0) in bob.reconcile(later(10), assigned().state, new=True)
    late = worker(disk((ONE.id, kept)), life=Life(b"now"))
    assert len(late.beat(later(601))) == 3


# -- budgets, partial output


def priced(tokens: int) -> TaskSpec:
    return codec.replace(ONE, budget=Allowance(tokens))


def used(tokens: int, text: str = "") -> TaskProgress:
    return TaskProgress(TEAM, ONE.id, 1, spent=Spent(tokens), text=text)


def test_what_a_run_spent_is_saved_as_it_grows_and_told() -> None:
    bob, log = worker(), assigned(priced(100))
    bob.reconcile(NOW, log.state, new=True)
    save, report = bob.progress(later(1), used(30))
    assert isinstance(report, Report)
    assert save == saved(ONE.id, Job(1, 1, priced(100), until_s=UNTIL_S, spent=Spent(30)))
    assert report.spent == Spent(30)
    assert bob.progress(later(1.1), used(30)) == []
    _, last = bob.done(replace(DONE, spent=Spent(90)))
    assert isinstance(last, Report)
    assert (last.state, last.spent) == ("succeeded", Spent(90))


def test_a_run_that_tells_more_than_it_was_given_is_stopped() -> None:
    bob, log = worker(), assigned(priced(100))
    bob.reconcile(NOW, log.state, new=True)
    _, stop, _, report = bob.progress(later(1), used(101, "so far"))
    assert stop == Emit(CancelTask(TEAM, ONE.id, 1, "over budget: its tokens are spent"))
    assert report == Report(
        TEAM, ONE.id, 1, "failed", note="over budget: its tokens are spent", summary="so far", retry=False,
        spent=Spent(101),
    )  # fmt: skip


def test_the_run_after_a_death_has_what_is_left() -> None:
    bob, log = worker(), assigned(priced(100))
    bob.reconcile(NOW, log.state, new=True)
    bob.progress(later(1), used(30))
    _, again = bob.died(later(2), log.state, WorkerDied(TEAM, ONE.id, 1))
    assert again == start(priced(70), seconds=598.0)
    _, last = bob.failed(TaskFailed(TEAM, ONE.id, 1, "no", spent=Spent(5)))
    assert isinstance(last, Report)
    assert last.spent == Spent(35)


def test_after_a_restart_what_was_spent_before_still_counts() -> None:
    bob = worker(disk((ONE.id, Job(1, 1, priced(100), spent=Spent(60)))))
    assert start(priced(40)) in bob.reconcile(NOW, assigned(priced(100)).state, new=True)
    _, last = bob.failed(TaskFailed(TEAM, ONE.id, 1, "no"))
    assert isinstance(last, Report)
    assert last.spent == Spent(60)


def test_the_end_of_what_a_run_put_out_is_told_and_stays_with_its_failure() -> None:
    bob, _ = working()
    bob.progress(later(1), TaskProgress(TEAM, ONE.id, 1, text="x" * 999))
    bob.progress(later(1.1), TaskProgress(TEAM, ONE.id, 1, text="the end"))
    (beat,) = bob.beat(later(2))
    assert isinstance(beat, Report)
    assert (beat.state, beat.summary[-8:], len(beat.summary)) == ("running", "xthe end", limits.SUMMARY_CHARS_MAX)
    _, last = bob.failed(TaskFailed(TEAM, ONE.id, 1, "no ink"))
    assert isinstance(last, Report)
    assert last.summary == beat.summary


# -- nobody left


def test_when_its_team_is_gone_results_are_kept_to_be_seen_and_places_are_free() -> None:
    queue = Queue()
    bob, log = worker(queue=queue), assigned(ONE, spec(2))
    bob.reconcile(NOW, log.state, new=True)
    bob.done(DONE)
    assert queue.taken == 2
    deeds = bob.abandon()
    assert queue.taken == 0
    assert not bob.busy
    orphans = [deed.event for deed in deeds if isinstance(deed, Emit) and isinstance(deed.event, Orphan)]
    assert [(orphan.task, orphan.state) for orphan in orphans] == [(ONE.id, "succeeded"), (bytes([2]) * 16, "expired")]
    assert Emit(CancelTask(TEAM, bytes([2]) * 16, 1, "its team is gone")) in deeds
    assert not any(isinstance(deed, Report) for deed in deeds)
    assert bob.reconcile(NOW, log.state, new=True) == []


STRANGERS_MAX = limits.QUEUE_MAX - limits.QUEUE_KEPT


@pytest.mark.parametrize(
    ("others", "room"), [(0, limits.QUEUE_PER_REQUESTER_MAX), (STRANGERS_MAX - 1, 1), (STRANGERS_MAX, 0)]
)
def test_the_queue_is_bounded_and_what_does_not_fit_is_busy(others: int, room: int) -> None:
    queue = Queue()
    for number in range(others):
        assert queue.take(bytes([number % 16]) * 32)
    log = Log()
    for first in range(0, 48, 16):
        many = tuple(codec.replace(ONE, id=bytes([first + n + 1]) * 16) for n in range(16))
        log.add(Assign("async", many))
    deeds = worker(queue=queue).reconcile(NOW, log.state, new=True)
    states = [deed.state for deed in deeds if isinstance(deed, Report)]
    assert states == ["accepted"] * room + ["busy"] * (48 - room)
    assert all(deed.retry_s == 3 for deed in deeds if isinstance(deed, Report) and deed.state == "busy")


def test_room_that_comes_free_is_used() -> None:
    queue = Queue()
    for _ in range(limits.QUEUE_PER_REQUESTER_MAX):
        assert queue.take(ANN.node)
    bob, log = worker(queue=queue), assigned()
    assert bob.reconcile(NOW, log.state, new=True) == [Report(TEAM, ONE.id, 1, "busy", retry_s=3)]
    queue.give(ANN.node)
    assert start(ONE, seconds=597.0) in bob.reconcile(later(3), log.state, new=True)


def test_what_was_taken_on_counts_after_a_restart_too() -> None:
    queue = Queue()
    worker(disk(*((bytes([n]) * 16, Job(1, 1, spec(n))) for n in range(limits.QUEUE_PER_REQUESTER_MAX))), queue=queue)
    assert not queue.take(ANN.node)


def test_the_owner_says_how_much_work_is_taken_on() -> None:
    queue = Queue(3, 2)
    assert [queue.take(one) for one in (b"a", b"a", b"a", b"b", b"b")] == [True, True, False, True, False]


def test_strangers_together_leave_places_to_the_owner() -> None:
    queue = Queue(own=ANN.node)
    taken = sum(queue.take(bytes([number % 100])) for number in range(10_000))
    assert taken == STRANGERS_MAX
    assert sum(queue.take(ANN.node) for _ in range(100)) == limits.QUEUE_PER_REQUESTER_MAX
    assert queue.taken == limits.QUEUE_MAX


def test_one_stranger_has_its_share_and_no_more() -> None:
    queue = Queue(own=ANN.node)
    assert sum(queue.take(b"one") for _ in range(10_000)) == limits.QUEUE_PER_REQUESTER_MAX


def test_a_queue_that_was_fuller_once_lets_go_of_what_it_holds() -> None:
    queue = Queue(1, 1)
    queue.hold(b"a")
    queue.hold(b"a")
    queue.give(b"a")
    assert not queue.take(b"a")
    queue.give(b"a")
    assert queue.take(b"a")


def test_in_the_next_incarnation_what_runs_goes_on() -> None:
    bob, log = working()
    assert bob.move(1, log.state) == []
    assert bob.busy


def test_an_attempt_that_the_next_incarnation_does_not_know_is_stopped_and_may_come_again() -> None:
    bob, _ = working()
    deeds = bob.move(1, Log().state)
    assert [deed.event for deed in deeds if isinstance(deed, Emit)] == [
        CancelTask(TEAM, ONE.id, 1, "decided by a majority that was lost")
    ]
    assert not bob.busy
    again = bob.reconcile(NOW, assigned().state, new=True)
    assert start(ONE) in again
    assert Save(SPACE, b"fence", codec.encode((1, 4))) in again
