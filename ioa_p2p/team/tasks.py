"""The life of a task as a table. A terminal state is final: it has no row.

OFFERED ──> ACCEPTED ──> RUNNING ──> SUCCEEDED | FAILED | CANCELLED | EXPIRED | DEAD_LETTER | UNKNOWN
   └───────────┴────────────┴──> OFFERED (reassigned: a higher attempt)
"""

from dataclasses import dataclass
from enum import StrEnum

from ioa_p2p.errors import PeerError
from ioa_p2p.wire.records import EffectClass


class TaskState(StrEnum):
    OFFERED = "offered"
    ACCEPTED = "accepted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    DEAD_LETTER = "dead-letter"
    UNKNOWN = "unknown"

    @property
    def final(self) -> bool:
        return self not in TABLE


class TaskEvent(StrEnum):
    ACCEPT = "accepted"
    START = "running"
    BUSY = "busy"
    REASSIGN = "reassigned"
    SUCCEED = "succeeded"
    FAIL = "failed"
    CANCEL = "cancelled"
    EXPIRE = "expired"
    DIE = "dead-letter"
    LOSE = "unknown"


_ENDS: dict[TaskEvent, TaskState] = {
    TaskEvent.SUCCEED: TaskState.SUCCEEDED,
    TaskEvent.FAIL: TaskState.FAILED,
    TaskEvent.CANCEL: TaskState.CANCELLED,
    TaskEvent.EXPIRE: TaskState.EXPIRED,
    TaskEvent.DIE: TaskState.DEAD_LETTER,
    TaskEvent.LOSE: TaskState.UNKNOWN,
    TaskEvent.REASSIGN: TaskState.OFFERED,
}
# Reports are lost and overtaken by the log, so a result may come before the beat that announces the start.
TABLE: dict[TaskState, dict[TaskEvent, TaskState]] = {
    TaskState.OFFERED: {
        TaskEvent.BUSY: TaskState.OFFERED,
        TaskEvent.ACCEPT: TaskState.ACCEPTED,
        TaskEvent.START: TaskState.RUNNING,
        **_ENDS,
    },
    TaskState.ACCEPTED: {TaskEvent.ACCEPT: TaskState.ACCEPTED, TaskEvent.START: TaskState.RUNNING, **_ENDS},
    TaskState.RUNNING: {TaskEvent.START: TaskState.RUNNING, **_ENDS},
}


def next_state(state: TaskState, event: TaskEvent) -> TaskState:
    """Raises PeerError('task-final') after the end, PeerError('task-event') for any other missing entry."""
    if state.final:
        raise PeerError("task-final", f"{event} after {state}")
    after = TABLE[state].get(event)
    if after is None:
        raise PeerError("task-event", f"{event} in {state}")
    return after


@dataclass(frozen=True, slots=True)
class Profile:
    """How long silence means what. All in seconds of boot time.

    lease_s: a beat counts so long. beat_s: reports while tasks run. grace_s: added before a lost lease of a
    task that cannot move becomes final. turn_s: a member that has the word may think so long.
    """

    lease_s: float = 60.0
    beat_s: float = 15.0
    grace_s: float = 30.0
    turn_s: float = 60.0


WAN = Profile()
LAN = Profile(lease_s=10.0, beat_s=2.5, grace_s=5.0, turn_s=20.0)


def may_repeat(effect: EffectClass) -> bool:
    """A task whose worker is lost may run again: freely (pure) or under its key (idempotent)."""
    return effect != "once"
