"""Changes of who votes in a bare election: in force once appended, one at a time, none before a first decision."""

from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.team.election import Election, Role
from ioa_p2p.team.election_events import Compact, Propose, StandAside
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, Promote, Remove, encode_step
from tests.sim.election import Trial
from tests.sim.teams import coordinator, members
from tests.sim.world import World


def settled(size: int = 5) -> Trial:
    trial = Trial(7, Election, size)
    trial.start()
    assert trial.world.run(5, until=lambda: trial.decided() > 0)
    trial.world.run(1)
    return trial


def lead(world: World) -> Any:
    found = coordinator(world)
    assert found is not None
    return found


def others(trial: Trial) -> list[bytes]:
    return [node for node in trial.nodes if node != lead(trial.world).coordinator]


def remove(trial: Trial, node: bytes) -> None:
    trial.world.command(lead(trial.world).coordinator, Propose(encode_step(Remove(node)), b"remove" + node))


def refused(trial: Trial, step: bytes) -> str:
    with pytest.raises(UsageError) as told:
        trial.world.command(lead(trial.world).coordinator, Propose(step, b"other"))
    return told.value.code


def test_an_electorate_is_in_force_from_the_append_on() -> None:
    trial = settled()
    gone = others(trial)[0]
    remove(trial, gone)
    assert gone not in lead(trial.world).electorate.voters
    trial.world.run(1)
    for node in trial.nodes:
        assert gone not in members(trial.world)[node].electorate.voters


def test_a_second_change_waits_for_the_first_to_be_decided() -> None:
    trial = settled()
    first, second, *_ = others(trial)
    for node in others(trial):
        trial.world.cut(node, lead(trial.world).coordinator)
    remove(trial, first)
    assert refused(trial, encode_step(Remove(second))) == "change-open"


def test_no_change_before_the_terms_first_entry_is_decided() -> None:
    """Ongaro's correction of the thesis, section 4.1."""
    trial = settled(3)
    old = lead(trial.world).coordinator
    trial.world.crash(old)
    assert trial.world.run(5, until=lambda: coordinator(trial.world) is not None)
    early = lead(trial.world)
    early._log.commit = early.last_index - 1
    assert refused(trial, encode_step(Remove(old))) == "too-early"


def test_a_change_that_may_not_be_changes_nothing() -> None:
    trial = settled()
    before = lead(trial.world).last_index
    assert refused(trial, encode_step(Promote(bytes(32)))) == "not-a-learner"
    assert lead(trial.world).last_index == before


def test_a_change_that_is_truncated_gives_back_the_electorate_before() -> None:
    trial = settled()
    old, gone = lead(trial.world).coordinator, others(trial)[0]
    trial.world.split([old], others(trial))
    remove(trial, gone)
    assert gone not in members(trial.world)[old].electorate.voters
    assert trial.world.run(6, until=lambda: coordinator(trial.world) not in (None, members(trial.world)[old]))
    trial.world.mend()
    trial.world.run(3)
    assert members(trial.world)[old].electorate.voters == frozenset(trial.nodes)


def test_a_certificate_under_another_roster_elects_and_a_restart_knows_it() -> None:
    trial = settled()
    first, gone = lead(trial.world).coordinator, others(trial)[0]
    remove(trial, gone)
    trial.world.run(1)
    trial.world.crash(first)
    assert trial.world.run(6, until=lambda: coordinator(trial.world) is not None)
    trial.world.run(1)
    trial.restart(first)
    trial.world.run(2)
    assert members(trial.world)[first].coordinator == lead(trial.world).coordinator
    assert gone not in members(trial.world)[first].electorate.voters


def test_who_stands_aside_hands_over_and_does_not_stand() -> None:
    trial = settled(3)
    old = lead(trial.world).coordinator
    trial.world.command(old, StandAside(True))
    assert trial.world.run(
        2, until=lambda: coordinator(trial.world) is not None and lead(trial.world).coordinator != old
    )
    second = lead(trial.world).coordinator
    trial.world.crash(second)
    assert trial.world.run(5, until=lambda: coordinator(trial.world) is not None)
    assert lead(trial.world).coordinator not in (old, second)


def test_the_only_one_that_may_lead_does_not_stand_aside() -> None:
    trial = Trial(7, Election, 3, leads=1)
    trial.start()
    assert trial.world.run(5, until=lambda: trial.decided() > 0)
    trial.world.command(trial.nodes[0], StandAside(True))
    assert members(trial.world)[trial.nodes[0]].role is Role.COORDINATOR


def test_a_decided_checkpoint_stands_for_entries_and_they_go_to_the_archive() -> None:
    trial = settled(3)
    node = lead(trial.world).coordinator
    for _ in range(5):
        trial.propose(node)
    trial.world.run(1)
    member = members(trial.world)[node]
    at = member.commit_index
    step = Checkpoint(at, member.entry_at(at).hash, 0, blake(b"state"), 1)
    trial.world.command(node, Propose(encode_step(step), b"checkpoint"))
    trial.world.run(1)
    trial.world.command(node, Compact(at, b"state", at + 1))
    assert (member.first_index, member.entry_at(at - 1)) == (at, None)
    disk = trial.world.hosts[node].disk
    team = member.electorate.team.hex()
    assert [int.from_bytes(key, "big") for key, _ in disk.scan(f"archive/{team}")] == list(range(1, at + 1))
    assert [int.from_bytes(key, "big") for key, _ in disk.scan(f"decision/{team}")] == [at + 1]
