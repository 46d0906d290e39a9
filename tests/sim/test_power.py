"""T18 in short; `./dev sim disk` plays a thousand points. Failures 12 and 13."""

import ctypes
import random
from collections.abc import Callable

import pytest

from ioa_p2p.storage.sqlite import SqliteStorage
from tests.sim.disk import Sync, library
from tests.sim.power import Figures, lose_power, record

POINTS = 60
GROUPS = 60


@pytest.fixture(scope="module")
def sqlite() -> ctypes.CDLL:
    found = library()
    if found is None:
        pytest.skip("this Python's SQLite cannot be reached")
    return found


def figures(sqlite: ctypes.CDLL, spoil: Callable[[SqliteStorage], None] = lambda _: None) -> Figures:
    dice, found = random.Random(5), Figures()
    recording = record(sqlite, dice, GROUPS, spoil)
    for _ in range(POINTS):
        lose_power(recording, dice, found)
    return found


def test_power_losses_anywhere_lose_nothing_that_was_acknowledged_and_no_vote_is_given_twice(
    sqlite: ctypes.CDLL,
) -> None:
    assert figures(sqlite) == Figures(points=POINTS, starts=POINTS, acked_lost=0, votes_twice=0)


def test_a_store_that_does_not_sync_is_caught_by_the_same_points(sqlite: ctypes.CDLL) -> None:
    found = figures(sqlite, never_sync)
    assert found.acked_lost > 0
    assert found.votes_twice > 0


def test_every_group_is_synced_before_it_is_acknowledged(sqlite: ctypes.CDLL) -> None:
    recording = record(sqlite, random.Random(1), 10)
    assert all(isinstance(recording.operations[at - 1], Sync) for at in recording.acknowledged)


def never_sync(storage: SqliteStorage) -> None:
    """A planted fault: an acknowledgement before it is durable."""
    assert storage._connection is not None
    storage._connection.execute("PRAGMA synchronous = OFF")
