"""The conversation: five phases as a table. A missing entry is the error.

DISCUSSION ──> SYNC_ASSIGN ──> DISCUSSION        ASYNC_ASSIGN ──> DISCUSSION | ASYNC_ASSIGN | PAUSE
    │  └─────> ASYNC_ASSIGN | PAUSE              PAUSE ──> DISCUSSION
    └────────> CONCLUSION (any phase, by force: a cap, a cancel, the deadline)
"""

from enum import StrEnum

from ioa_p2p.errors import PeerError
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
    Spend,
    Step,
)


class Phase(StrEnum):
    DISCUSSION = "discussion"
    SYNC_ASSIGN = "sync-assign"
    ASYNC_ASSIGN = "async-assign"
    PAUSE = "pause"
    CONCLUSION = "conclusion"


class Role(StrEnum):
    """Who moves: the coordinator by log entries, a member by messages to the coordinator."""

    COORDINATOR = "coordinator"
    MEMBER = "member"


class Move(StrEnum):
    """What a step (or a member's message) does to the conversation."""

    DISCUSS = "discuss"
    HEAR = "hear"
    ASSIGN_SYNC = "assign-sync"
    ASSIGN_ASYNC = "assign-async"
    AWAIT = "await"
    RESUME = "resume"
    CONCLUDE = "conclude"
    FORCE = "force"  # a conclusion nobody planned: cap, cancel, deadline
    TASK = "task"  # outcome, reassign, cancel, spend: tasks and sums change, the talk does not
    ELECT = "elect"
    ASIDE = "aside"  # who is in the team, a checkpoint: the talk does not change
    REPORT = "report"
    WISH = "wish"


FORCED = frozenset({"cap", "cancelled", "deadline"})

_D, _S, _A, _P, _C = Phase

_COORDINATOR: dict[Phase, dict[Move, Phase]] = {
    _D: {
        Move.DISCUSS: _D,
        Move.HEAR: _D,
        Move.ASSIGN_SYNC: _S,
        Move.ASSIGN_ASYNC: _A,
        Move.AWAIT: _P,
        Move.CONCLUDE: _C,
        Move.FORCE: _C,
        Move.TASK: _D,
        Move.ELECT: _D,
        Move.ASIDE: _D,
    },
    _S: {Move.RESUME: _D, Move.FORCE: _C, Move.TASK: _S, Move.ELECT: _S, Move.ASIDE: _S},
    _A: {
        Move.DISCUSS: _D,
        Move.ASSIGN_ASYNC: _A,
        Move.AWAIT: _P,
        Move.FORCE: _C,
        Move.TASK: _A,
        Move.ELECT: _A,
        Move.ASIDE: _A,
    },
    _P: {Move.RESUME: _D, Move.FORCE: _C, Move.TASK: _P, Move.ELECT: _P, Move.ASIDE: _P},
    _C: {Move.ELECT: _C, Move.ASIDE: _C},
}

_MEMBER: dict[Phase, dict[Move, Phase]] = {
    _D: {Move.HEAR: _D, Move.REPORT: _D, Move.WISH: _D},
    _S: {Move.REPORT: _S, Move.WISH: _S},
    _A: {Move.REPORT: _A, Move.WISH: _A},
    _P: {Move.REPORT: _P, Move.WISH: _P},
    _C: {},
}

TABLE: dict[Role, dict[Phase, dict[Move, Phase]]] = {Role.COORDINATOR: _COORDINATOR, Role.MEMBER: _MEMBER}


def next_phase(role: Role, phase: Phase, move: Move) -> Phase:
    """Raises PeerError('phase-not-allowed')."""
    after = TABLE[role][phase].get(move)
    if after is None:
        raise PeerError("phase-not-allowed", f"{move} by the {role} in {phase}")
    return after


def move_of(step: Step) -> Move:
    """What a log entry does to the conversation. Raises PeerError('phase-not-allowed') for a second founding."""
    match step:
        case Discuss():
            return Move.DISCUSS
        case Hear():
            return Move.HEAR
        case Assign():
            return Move.ASSIGN_SYNC if step.mode == "sync" else Move.ASSIGN_ASYNC
        case Await():
            return Move.AWAIT
        case Resume():
            return Move.RESUME
        case Conclude():
            return Move.FORCE if step.outcome in FORCED else Move.CONCLUDE
        case Outcome() | Reassign() | Cancel() | Spend():
            return Move.TASK
        case Elect():
            return Move.ELECT
        case Admit() | Promote() | Remove() | Checkpoint():
            return Move.ASIDE
        case Found():
            raise PeerError("phase-not-allowed", "a team is founded once")
