import pytest

from ioa_p2p.errors import PeerError
from ioa_p2p.team.tasks import LAN, WAN, Profile, TaskEvent, TaskState, may_repeat, next_state

O, A, R = TaskState.OFFERED, TaskState.ACCEPTED, TaskState.RUNNING  # noqa: E741
OPEN = (O, A, R)
ENDS = {
    "reassigned": O,
    "succeeded": TaskState.SUCCEEDED,
    "failed": TaskState.FAILED,
    "cancelled": TaskState.CANCELLED,
    "expired": TaskState.EXPIRED,
    "dead-letter": TaskState.DEAD_LETTER,
    "unknown": TaskState.UNKNOWN,
}
ALLOWED = {
    (O, "busy"): O,
    (O, "accepted"): A,
    (O, "running"): R,
    (A, "accepted"): A,
    (A, "running"): R,
    (R, "running"): R,
    **{(state, event): after for state in OPEN for event, after in ENDS.items()},
}


@pytest.mark.parametrize("state", TaskState)
@pytest.mark.parametrize("event", TaskEvent)
def test_every_event_in_every_state_is_as_designed_and_all_others_are_refused(
    state: TaskState, event: TaskEvent
) -> None:
    expected = ALLOWED.get((state, event.value))
    if expected is not None:
        assert next_state(state, event) is expected
        return
    with pytest.raises(PeerError) as refused:
        next_state(state, event)
    assert refused.value.code == ("task-event" if state in OPEN else "task-final")


def test_a_terminal_state_is_final() -> None:
    assert [state for state in TaskState if not state.final] == list(OPEN)


def test_only_what_may_have_had_its_effect_is_never_repeated() -> None:
    assert [may_repeat("pure"), may_repeat("idempotent"), may_repeat("once")] == [True, True, False]


@pytest.mark.parametrize("profile", [LAN, WAN])
def test_a_lease_outlives_three_lost_beats(profile: Profile) -> None:
    assert profile.lease_s > 3 * profile.beat_s
