"""Checkpoints that are false: no honest member takes one before it is decided, nor hears who proposed it."""

from typing import Any

import pytest

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.errors import PeerError
from ioa_p2p.team.events import Halted
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Append
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, encode_step
from tests.sim.jobs import NETWORK, TEAM, Jobs
from tests.sim.world import Weather

HOMES = {"device-3": "device-2", "analyst": "device-1", "charter": "device-2", "writer": "device-1"}


@pytest.fixture(autouse=True)
def _checkpoints_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)


def three(seed: int = 1, weather: Weather | None = None) -> Jobs:
    """Three nodes that are in a team, long before its first checkpoint."""
    jobs = Jobs(seed, homes=HOMES)
    jobs.world.weather = weather or Weather()
    jobs.start()
    jobs.launch()
    assert jobs.world.run(30, until=lambda: len(jobs.teams()) == 3 and jobs.coordinator() is not None)
    return jobs


def halted(jobs: Jobs) -> list[bytes]:
    return [node for _, node, event in jobs.world.events if isinstance(event, Halted)]


@pytest.mark.parametrize("seed", range(4))
def test_a_coordinator_with_a_false_state_is_replaced_and_stops_alone(seed: int) -> None:
    jobs = three(seed)
    wrong = jobs.coordinator()
    assert wrong is not None
    jobs.teams()[wrong].state.repeats += 1
    jobs.world.run(120, until=lambda: _rests(jobs, wrong))
    assert _rests(jobs, wrong), "the honest two decide a checkpoint of their own"
    assert jobs.world.faults["other-state"] > 0
    assert set(halted(jobs)) <= {wrong}
    assert jobs.coordinator() != wrong


def _rests(jobs: Jobs, wrong: bytes) -> bool:
    others = [team for node, team in jobs.teams().items() if node != wrong]
    return all(team.election.first_index >= 4 for team in others)


@pytest.mark.parametrize("seed", range(3))
def test_honest_checkpoints_are_never_taken_for_false_ones(seed: int) -> None:
    """Whatever is lost and comes twice, in whatever pieces."""
    jobs = three(seed, Weather(loss=0.15, duplicate=0.1, delay_s=(0.001, 0.3)))
    jobs.world.run(120, until=jobs.settled)
    assert {"other-state", "early-checkpoint"}.isdisjoint(jobs.world.faults)
    assert not halted(jobs)
    assert max(team.election.first_index for team in jobs.teams().values()) >= 4


class Follower:
    """A member with a mark, and what the coordinator may tell it."""

    def __init__(self) -> None:
        self.jobs = three()
        node = next(node for node in self.jobs.nodes if node != self.jobs.coordinator())
        assert self.jobs.world.run(60, until=lambda: self.team(node).state.index >= 4)
        self.member = self.team(node)
        self.checkpoints = self.member._affairs.checkpoints
        self.peer = self.jobs.coordinator() or b""
        self.true = self._mark()

    def team(self, node: bytes) -> Team:
        return self.jobs.teams()[node]

    def _mark(self) -> Checkpoint:
        self.member.state.index = 400
        held = self.member.election.entry_at(self.member.election.last_index)
        assert held is not None
        self.checkpoints.mark(self.member.state, held.frame)
        self.member.election._log.commit = 400
        return self.checkpoints._marks[-1].step

    def append(self, *steps: Any, first: int = 401, commit: int = 400, term: int | None = None) -> Append:
        lead = self.jobs.teams()[self.peer].election
        last = lead.entry_at(lead.last_index)
        assert last is not None
        frames = tuple(
            _signed(self.jobs, self.peer, codec.replace(last.entry, index=first + place, step=encode_step(step)))
            for place, step in enumerate(steps)
        )
        return Append(TEAM, 0, term or lead.term, first - 1, lead.term, frames, commit, 1_000)


def _signed(jobs: Jobs, node: bytes, entry: Any) -> bytes:
    return seal(jobs.keys[jobs.names[node]], NETWORK, Kind.DECISION, entry)


def refused(scene: Follower, message: Append) -> str:
    with pytest.raises(PeerError) as fault:
        scene.checkpoints.screen(scene.peer, message)
    return fault.value.code


def test_a_true_checkpoint_is_taken() -> None:
    scene = Follower()
    message = scene.append(scene.true)
    assert scene.checkpoints.screen(scene.peer, message) == message


@pytest.mark.parametrize("changed", [{"state": bytes(32)}, {"entry": bytes(32)}, {"roster": 399}])
def test_a_false_one_is_refused_and_its_sender_is_not_heard_in_that_term(changed: dict[str, Any]) -> None:
    scene = Follower()
    assert refused(scene, scene.append(codec.replace(scene.true, **changed))) == "other-state"
    assert refused(scene, scene.append()) == "other-state"
    later = scene.append(term=scene.member.election.term + 1)
    assert scene.checkpoints.screen(scene.peer, later) == later


def test_a_false_one_that_the_others_have_decided_goes_through_to_be_judged() -> None:
    scene = Follower()
    false = codec.replace(scene.true, state=bytes(32))
    refused(scene, scene.append(false))
    decided = scene.append(false, commit=401)
    assert scene.checkpoints.screen(scene.peer, decided) == decided


def test_one_of_what_is_not_decided_is_refused() -> None:
    scene = Follower()
    assert refused(scene, scene.append(codec.replace(scene.true, index=408))) == "early-checkpoint"


def test_entries_up_to_one_that_cannot_be_judged_yet_are_taken_and_the_rest_comes_again() -> None:
    scene = Follower()
    scene.member.election._log.commit = 399
    message = scene.append(scene.true, scene.true)
    assert scene.checkpoints.screen(scene.peer, message).entries == ()


def test_one_of_another_version_is_neither_judged_nor_believed() -> None:
    scene = Follower()
    message = scene.append(codec.replace(scene.true, version=9, state=blake(b"")))
    assert scene.checkpoints.screen(scene.peer, message) == message


def test_a_stranger_leaves_no_memory() -> None:
    scene = Follower()
    message = scene.append(codec.replace(scene.true, state=bytes(32)))
    scene.peer = bytes(32)
    assert refused(scene, message) == "other-state"
    assert scene.checkpoints._doubts == {}
