"""Real member processes, killed and frozen while clients append and read: what they answered is one history."""

import asyncio
from dataclasses import replace

import pytest

from tests.linear import Operation, linearizable
from tests.live.voters import Play, play

SEED, SIZE, FAULTS = 1, 3, 4


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Play:
    return asyncio.run(play(tmp_path_factory.mktemp("voters"), SEED, SIZE, FAULTS))


def test_what_killed_and_frozen_members_answered_is_one_history(life: Play) -> None:
    assert linearizable(life.history)


def test_appends_went_on_through_every_fault(life: Play) -> None:
    assert life.kills == FAULTS
    assert life.freezes >= FAULTS
    assert life.deposed >= 1
    assert len(answered(life.history)) >= 2 * FAULTS


def test_a_stale_read_planted_in_their_history_is_found(life: Play) -> None:
    fresh = max((each for each in life.history if each.kind == "read"), key=lambda each: each.call_s)
    must = {each.value for each in answered(life.history) if (each.end_s or 0) < fresh.call_s}
    last = max(place for place, value in enumerate(fresh.value) if value in must)
    stale = replace(fresh, value=fresh.value[:last])
    assert not linearizable([*(each for each in life.history if each is not fresh), stale])


def answered(history: list[Operation]) -> list[Operation]:
    """The appends that somebody was told of as decided."""
    return [each for each in history if each.kind == "append" and each.end_s is not None]
