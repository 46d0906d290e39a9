"""A member far behind gets a long snapshot in small parts, and arrives: whatever is lost, doubled or late, whoever
restarts on the way and whoever coordinates."""

import random
from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Committed, Compact, LinkPeer, Propose, StepDown
from ioa_p2p.team.role import Role
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import SnapshotPart
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, checkpoint_step, encode_step
from tests.sim.election import Trial
from tests.sim.teams import coordinator, members
from tests.sim.world import Weather, World

EVERY = 12  # entries between checkpoints
STATE_BYTES = 6_000
STORM_S = 25.0


class Behind:
    """Four members; one was away while three checkpoints were decided. Work goes on, and so do checkpoints."""

    def __init__(self, seed: int) -> None:
        self.trial = Trial(seed, Election, 4)
        self.world = self.trial.world
        self.parts = 0
        self.world.on_event.append(self._on_event)
        self.world.on_send.append(self._count)
        self.trial.start()
        assert self.world.run(5, until=lambda: self.trial.decided() > 0)
        self.node = next(node for node in self.trial.nodes if not self._leads(node))
        self.trial.crash(self.node)
        self._work()
        assert self.world.run(60, until=lambda: self._least() >= 3 * EVERY)

    def _leads(self, node: bytes) -> bool:
        return members(self.world)[node].role is Role.COORDINATOR

    def _least(self) -> int:
        """Where the logs of those that run begin at latest."""
        return min(member.first_index for member in members(self.world).values())

    def _count(self, world: World, source: Any, target: Any, message: Any) -> None:
        self.parts += isinstance(message, SnapshotPart)

    def _work(self) -> None:
        self.world.after(0.3, self._work)
        lead = coordinator(self.world)
        if lead is None or lead.coordinator is None or not self.trial.propose(lead.coordinator):
            return
        at = lead.commit_index
        if at >= lead.first_index + EVERY and (held := lead.entry_at(at)) is not None:
            step = Checkpoint(at, held.hash, 0, blake(state(at)), 1)
            self._propose(lead.coordinator, encode_step(step), at)

    def _propose(self, node: bytes, step: bytes, at: int) -> None:
        try:
            self.world.command(node, Propose(step, b"checkpoint %d" % at))
        except UsageError:
            return

    def _on_event(self, world: World, node: Any, event: Any) -> None:
        if isinstance(event, Committed) and (told := checkpoint_step(event.entry.step)) is not None:
            compact = Compact(told.index, state(told.index), event.index)
            self.world.after(0.0, lambda: self._compact(node, compact))

    def _compact(self, node: bytes, compact: Compact) -> None:
        member = members(self.world).get(node)
        if member is not None and member.commit_index >= compact.decided_at:
            self.world.command(node, compact)

    def storm(self, dice: random.Random) -> None:
        """Of loss, copies and delays; the one behind restarts, and others lead."""
        self.world.weather = Weather(dice.uniform(0.05, 0.35), dice.uniform(0, 0.3), (0.001, dice.choice([0.05, 0.4])))
        for _ in range(6):
            self.world.after(dice.uniform(0, STORM_S), dice.choice([self._restart, self._depose, self._unlink]))
        self.world.run(STORM_S)

    def _restart(self) -> None:
        """Nobody notices."""
        self.world.restart(self.node)

    def _depose(self) -> None:
        lead = coordinator(self.world)
        if lead is not None and lead.coordinator is not None:
            self.world.command(lead.coordinator, StepDown())

    def _unlink(self) -> None:
        lead = coordinator(self.world)
        if lead is not None and lead.coordinator not in (None, self.node):
            self.world.command(lead.coordinator, LinkPeer(self.node, False))
            self.world.command(lead.coordinator, LinkPeer(self.node, True))

    def has_arrived(self) -> bool:
        """It holds all but the very last."""
        mine = members(self.world)[self.node]
        return mine.commit_index + 3 >= self.trial.decided() and mine.first_index > 0


def state(index: int) -> bytes:
    """As if it had been folded: the same for all."""
    return random.Random(index).randbytes(STATE_BYTES)


@pytest.fixture(autouse=True)
def _parts_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_PART_BYTES_MAX", 200)
    monkeypatch.setattr(limits, "ARCHIVE_ENTRIES_MAX", EVERY)


@pytest.mark.parametrize("lost_disk", [False, True])
@pytest.mark.parametrize("seed", [*range(6), 8, 29])
def test_who_is_far_behind_arrives_after_any_storm(seed: int, lost_disk: bool) -> None:
    scene = Behind(seed)
    if lost_disk:
        scene.trial.crash(scene.node, lose_disk=True)
    scene.world.restart(scene.node)
    scene.storm(random.Random(f"lagging {seed}"))
    scene.trial.calm()
    assert scene.world.run(20, until=scene.has_arrived)
    assert members(scene.world)[scene.node]._log.state == state(members(scene.world)[scene.node].first_index)
    assert scene.parts >= STATE_BYTES // 200
    assert scene.world.faults == {}


def test_who_restarts_amid_a_snapshot_gets_it_from_its_beginning() -> None:
    """Its coordinator sees no link go."""
    scene = Behind(3)
    scene.world.restart(scene.node)
    before = scene.parts
    assert scene.world.run(5, until=lambda: scene.parts > before + 10)
    assert members(scene.world)[scene.node].first_index == 0
    scene.world.restart(scene.node)
    assert scene.world.run(10, until=scene.has_arrived)
