"""Forming anew where the launcher is so far behind that it needs a snapshot, or many batches."""

import pytest

from ioa_p2p.team.machine import Teams
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import SnapshotPart
from ioa_p2p.wire.team import Tail
from tests.sim import reform
from tests.sim.world import World


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """All messages of all worlds."""
    messages: list[object] = []
    make = World.__init__

    def watched(world: World, *args: object, **options: object) -> None:
        make(world, *args, **options)
        world.on_send.append(lambda world, source, target, message: messages.append(message))

    monkeypatch.setattr(World, "__init__", watched)
    return messages


def test_the_longest_log_is_adopted_though_it_begins_after_the_launchers_ends(
    monkeypatch: pytest.MonkeyPatch, sent: list[object]
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 3)
    monkeypatch.setattr(limits, "SNAPSHOT_PART_BYTES_MAX", 2_000)
    reform.longest_log_elsewhere(Teams)
    parts = [message for message in sent if isinstance(message, SnapshotPart) and not message.round]
    assert len({part.offset for part in parts}) > 1


def test_the_longest_log_is_taken_over_in_as_many_batches_as_it_takes(
    monkeypatch: pytest.MonkeyPatch, sent: list[object]
) -> None:
    monkeypatch.setattr(limits, "APPEND_ENTRIES_MAX", 1)
    reform.longest_log_elsewhere(Teams)
    tails = {message.after for message in sent if isinstance(message, Tail) and message.entries}
    assert len(tails) > 1
