"""The trials of `./dev sim teams`: in their short form all bars are met; planted faults miss them, or break a rule."""

from types import ModuleType

import pytest

from bench.sim._trials import met
from ioa_p2p.errors import PeerError
from ioa_p2p.wire.step import Step, decode_step, encode_step
from tests.linear import linearizable
from tests.sim.mutants import DecidesEarly, SkipsCheckQuorum, SleepsUnnoticed
from tests.sim.scenario import Violation
from tests.sim.team_mutants import with_election
from tests.sim.trials import t12_partition, t13_pause, t14_membership, t25_versions, t26_history


@pytest.mark.parametrize(
    "trial", [t12_partition, t13_pause, t14_membership, t25_versions, t26_history], ids=lambda each: each.__name__
)
def test_in_its_short_form_a_trial_meets_its_bars(trial: ModuleType) -> None:
    found = trial.run(True)
    assert {key: value for key, value in found.items() if not met(value, trial.BARS[key])} == {}


@pytest.mark.parametrize("part", [DecidesEarly, SkipsCheckQuorum])
def test_a_smaller_side_that_goes_on_alone_is_seen(part) -> None:
    with pytest.raises(Violation, match=r"I[28]"):
        _play_splits(part)


def _play_splits(part) -> None:
    """Until the coordinator is on the smaller side."""
    for seed in range(0, 16, 4):
        t12_partition.play(seed, part)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_coordinator_that_speaks_after_its_pause_is_seen(seed: int) -> None:
    with pytest.raises(Violation, match="I8"):
        t13_pause.play(seed, with_election(SleepsUnnoticed))


def test_a_version_that_refuses_longer_steps_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioa_p2p.team.state.decode_step", exactly)
    monkeypatch.setattr(t25_versions, "END_S", 20.0)  # the sound product needs 15
    assert t25_versions.play(0)["mixed_unfinished"] == 1


def exactly(data: bytes) -> Step:
    """No field more than we know."""
    step = decode_step(data)
    if encode_step(step) != data:
        raise PeerError("undecodable")
    return step


def test_reads_without_a_lease_leave_a_history_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invariants do not watch here: the history alone shows it."""
    monkeypatch.setattr("tests.sim.election.watch_election", lambda world, timing: None)
    monkeypatch.setattr(t26_history, "LEASE_SHARE", 1e6)
    assert not all(linearizable(t26_history.play(seed, SleepsUnnoticed)) for seed in range(12))


def test_one_partition_leaves_one_set_of_figures() -> None:
    assert t12_partition.play(3) == t12_partition.play(3)
