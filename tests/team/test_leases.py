"""Which tasks are alive, and what becomes of the others."""

import pytest

from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.team.leases import Leases
from ioa_p2p.team.tasks import LAN
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import Assign, Outcome, Reassign, TaskSpec
from ioa_p2p.wire.team import Report
from tests.team.people import ANN, BOB, CY, DEE, MAIL, NOW, TEAM, WALL, Log, later, spec

ONE = spec(1)
ACCEPTED = Report(TEAM, ONE.id, 1, "accepted")
MOVE = Reassign(ONE.id, 2, CY.node, "cy", "worker lost")
LOST = Outcome(ONE.id, 1, "failed", reason="worker lost")
ALONE = codec.replace(ONE, pinned=True)


def leased(task: TaskSpec = ONE) -> tuple[Leases, Log]:
    log = Log()
    log.add(Assign("async", (task,)))
    return Leases(log.state, LAN, ANN.node, NOW), log


def due(leases: Leases, log: Log, seconds: float) -> object:
    return leases.due(later(seconds), log.state.open_tasks[0])


def test_a_lease_lasts_from_the_assignment_and_each_report_renews_it() -> None:
    leases, log = leased()
    assert due(leases, log, 10) is None
    leases.on_report(later(9), BOB.node, ACCEPTED)
    assert due(leases, log, 19) is None
    assert due(leases, log, 19.1) == MOVE


def test_time_asleep_counts_in_a_lease_and_a_jump_of_the_wall_clock_does_not() -> None:
    """Public failure 19: an hour of boot time passes while the wall clock stands still, and the other way round."""
    leases, log = leased()
    task = log.state.open_tasks[0]
    for wall in (NOW.wall - 3_600, NOW.wall + 300):
        assert leases.due(Now(wall, NOW.boot + 9.9), task) is None
    assert leases.due(Now(NOW.wall, NOW.boot + 3_600), task) == MOVE


def test_a_silent_worker_loses_its_task_to_another() -> None:
    assert due(*leased(), 10.1) == MOVE


def test_what_nobody_else_can_do_waits_for_grace_and_then_fails() -> None:
    leases, log = leased(ALONE)
    assert due(leases, log, 14.9) is None
    assert due(leases, log, 15.1) == LOST


def test_a_task_that_may_run_once_becomes_unknown_never_moved() -> None:
    mail = spec(1, DEE, MAIL)
    leases, log = leased(mail)
    assert due(leases, log, 14.9) is None
    assert due(leases, log, 15.1) == Outcome(mail.id, 1, "unknown", reason="worker lost")


def test_a_lost_link_moves_the_task_at_once_when_a_majority_says_so() -> None:
    leases, log = leased()
    for reporter in (ANN, CY):
        leases.on_lost(reporter.node, frozenset({BOB.node}))
    assert due(leases, log, 0.1) is None
    leases.on_lost(BOB.node, frozenset({BOB.node}))
    assert due(leases, log, 0.1) is None
    leases.on_lost(DEE.node, frozenset({BOB.node}))
    assert not leases.here(BOB.node)
    assert due(leases, log, 0.1) == MOVE
    leases.on_lost(DEE.node, frozenset())
    assert due(leases, log, 0.1) is None


def test_a_lost_link_alone_ends_nothing_that_cannot_move() -> None:
    leases, log = leased(ALONE)
    for reporter in (ANN, CY, DEE):
        leases.on_lost(reporter.node, frozenset({BOB.node}))
    assert due(leases, log, 9) is None


def test_who_is_lost_does_not_stand_in() -> None:
    leases, log = leased()
    for reporter in (ANN, BOB, DEE):
        leases.on_lost(reporter.node, frozenset({CY.node}))
    assert due(leases, log, 11) is None
    assert due(leases, log, 15.1) == LOST


def test_a_busy_worker_is_relieved_if_another_can_do_it() -> None:
    busy = Report(TEAM, ONE.id, 1, "busy", retry_s=3)
    leases, log = leased()
    leases.on_report(NOW, BOB.node, busy)
    assert due(leases, log, 0.1) == codec.replace(MOVE, reason="busy", begun=False)
    alone, log = leased(ALONE)
    alone.on_report(NOW, BOB.node, busy)
    assert due(alone, log, 12.9) is None


def test_a_result_is_due_as_it_was_told() -> None:
    leases, log = leased()
    leases.on_report(later(1), BOB.node, Report(TEAM, ONE.id, 1, "failed", note="no ink", summary="s", retry=False))
    assert due(leases, log, 1) == Outcome(ONE.id, 1, "failed", summary="s", reason="no ink", retry=False, spent=Spent())


def test_a_passed_deadline_is_due_whatever_the_lease() -> None:
    leases, log = leased(codec.replace(ONE, deadline=WALL + 5))
    leases.on_report(later(5), BOB.node, ACCEPTED)
    assert due(leases, log, 5) is None
    assert due(leases, log, 5.1) == Outcome(ONE.id, 1, "expired", reason="deadline passed")


def test_only_the_worker_of_the_attempt_reports() -> None:
    leases, _ = leased()
    with pytest.raises(PeerError, match="not-the-worker"):
        leases.on_report(NOW, CY.node, ACCEPTED)


def test_a_new_attempt_has_a_new_lease() -> None:
    leases, log = leased()
    due(leases, log, 10.1)
    log.add(MOVE)
    assert due(leases, log, 11) is None
    assert due(leases, log, 20.9) is None
    assert due(leases, log, 21.1) == Reassign(ONE.id, 3, BOB.node, "bob", "worker lost")


def test_attempts_are_bounded() -> None:
    leases, log = leased()
    seconds = 0.0
    for attempt in range(2, limits.TASK_ATTEMPTS_MAX + 1):
        seconds += 10.1
        step = due(leases, log, seconds)
        assert isinstance(step, Reassign)
        assert step.attempt == attempt
        log.add(step)
        due(leases, log, seconds)
    assert due(leases, log, seconds + 10.1) is None
    assert due(leases, log, seconds + 15.1) == codec.replace(LOST, attempt=limits.TASK_ATTEMPTS_MAX)


def test_a_lost_worker_may_have_spent_its_part_so_without_a_rest_nobody_tries_again() -> None:
    log = Log(Caps(budget=Allowance(tokens=100)))
    log.add(Assign("async", (codec.replace(ONE, budget=Allowance(tokens=100)),)))
    leases = Leases(log.state, LAN, ANN.node, NOW)
    end = Outcome(ONE.id, 1, "failed", reason="worker lost, and no budget left for another try")
    assert due(leases, log, 10.1) == end
    leases.on_report(later(1), BOB.node, Report(TEAM, ONE.id, 1, "busy"))
    assert due(leases, log, 1) == codec.replace(MOVE, reason="busy", begun=False)


def test_what_a_lost_worker_put_out_stays_with_the_task() -> None:
    leases, log = leased(ALONE)
    leases.on_report(later(1), BOB.node, Report(TEAM, ONE.id, 1, "running", summary="one, two, "))
    leases.on_report(later(2), BOB.node, Report(TEAM, ONE.id, 1, "running"))
    assert due(leases, log, 17.1) == codec.replace(LOST, summary="one, two, ")
