import pytest

from ioa_p2p.errors import PeerError
from ioa_p2p.team.phases import FORCED, TABLE, Move, Phase, Role, move_of, next_phase
from ioa_p2p.wire.step import (
    Admit,
    Assign,
    Await,
    Cancel,
    Checkpoint,
    Conclude,
    Discuss,
    Elect,
    Found,
    Hear,
    Outcome,
    Promote,
    Reassign,
    Remove,
    Resume,
    Step,
)
from tests.team.people import spec

D, S, A, P, C = Phase
TASK = b"t" * 16

ALLOWED = {
    (D, "discuss"): D,
    (D, "hear"): D,
    (D, "assign-sync"): S,
    (D, "assign-async"): A,
    (D, "await"): P,
    (D, "conclude"): C,
    (S, "resume"): D,
    (A, "discuss"): D,
    (A, "assign-async"): A,
    (A, "await"): P,
    (P, "resume"): D,
    **{(phase, "force"): C for phase in (D, S, A, P)},
    **{(phase, "task"): phase for phase in (D, S, A, P)},
    **{(phase, move): phase for phase in Phase for move in ("elect", "aside")},
}
HEARD = {
    (D, "hear"): D,
    **{(phase, move): phase for phase in (D, S, A, P) for move in ("report", "wish")},
}
CASES = [(role, phase, move) for role in Role for phase in Phase for move in Move]


@pytest.mark.parametrize(("role", "phase", "move"), CASES)
def test_every_move_in_every_phase_is_as_designed_and_all_others_are_refused(
    role: Role, phase: Phase, move: Move
) -> None:
    expected = (ALLOWED if role is Role.COORDINATOR else HEARD).get((phase, move.value))
    if expected is not None:
        assert next_phase(role, phase, move) is expected
        return
    with pytest.raises(PeerError, match=phase.value) as refused:
        next_phase(role, phase, move)
    assert refused.value.code == "phase-not-allowed"


def test_the_table_knows_every_phase_for_both_roles() -> None:
    assert {role: set(rows) for role, rows in TABLE.items()} == {role: set(Phase) for role in Role}


STEPS: list[tuple[Step, Move]] = [
    (Discuss(b"n" * 32, "ann", "hello"), Move.DISCUSS),
    (Hear(1, "hello"), Move.HEAR),
    (Assign("sync", (spec(1),)), Move.ASSIGN_SYNC),
    (Assign("async", (spec(1),)), Move.ASSIGN_ASYNC),
    (Await((TASK,), "all", 9), Move.AWAIT),
    (Resume("done"), Move.RESUME),
    (Reassign(TASK, 2, b"n" * 32, "bob", "lost"), Move.TASK),
    (Outcome(TASK, 1, "succeeded"), Move.TASK),
    (Cancel((), "stop"), Move.TASK),
    (Elect(), Move.ELECT),
    (Admit(b"", b""), Move.ASIDE),
    (Promote(b"n" * 32), Move.ASIDE),
    (Remove(b"n" * 32), Move.ASIDE),
    (Checkpoint(1, bytes(32), 0, bytes(32), 1), Move.ASIDE),
    *((Conclude(outcome, "it"), Move.CONCLUDE) for outcome in ("done", "partial", "failed")),
    *((Conclude(outcome, "it"), Move.FORCE) for outcome in ("cap", "cancelled", "deadline")),
]


@pytest.mark.parametrize(("step", "move"), STEPS)
def test_every_step_is_one_move(step: Step, move: Move) -> None:
    assert move_of(step) is move


def test_only_caps_cancels_and_deadlines_force_an_end() -> None:
    assert {"cap", "cancelled", "deadline"} == FORCED


def test_a_team_is_founded_once() -> None:
    with pytest.raises(PeerError, match="once"):
        move_of(Found(b"", ()))
