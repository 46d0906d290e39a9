"""The decision log: what is kept, what is saved, what a damaged disk is told."""

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.errors import PeerError, StorageError, UsageError
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team.decisions import Decisions, Held, founding_frame, next_entry, open_founding
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import blake
from tests.sim.teams import NETWORK, TEAM, Cast

CAST = Cast(3)
FOUNDING = Held(open_founding(CAST.founding, NETWORK, TEAM, 0), CAST.founding, blake(CAST.founding))
LOG_SPACE, VOTE_SPACE = f"decision/{TEAM.hex()}", f"vote/{TEAM.hex()}"


class Disk:
    """A log beside the storage that its saves went to."""

    def __init__(self) -> None:
        self.storage = MemoryStorage()
        self.log = self.load()

    def load(self, founding: Held = FOUNDING) -> Decisions:
        return Decisions(founding, NETWORK, lambda space: list(self.storage.scan(space)))

    def add(self, *steps: bytes, term: int = 1) -> None:
        if term > self.log.term:
            self.log.set_term(term)
        for step in steps:
            self.log.append(next_entry(self.log, CAST.keys[0], NETWORK, 0, step, ()))

    def save(self) -> list[Save]:
        saves = self.log.drain()
        self.storage.commit(saves)
        return saves


def test_a_restart_brings_back_entries_term_vote_and_commit() -> None:
    disk = Disk()
    disk.add(b"one", b"two")
    disk.log.set_term(4, vote=CAST.nodes[1])
    disk.log.set_commit(1)
    disk.save()
    again = disk.load()
    assert [held.entry.step for held in again.between(1, 9)] == [b"one", b"two"]
    assert (again.term, again.vote, again.commit, again.may_vote) == (4, CAST.nodes[1], 1, True)
    assert again.drain() == []


def test_a_first_start_saves_its_state_so_that_a_second_is_known() -> None:
    assert [(save.space, save.key) for save in Disk().save()] == [(VOTE_SPACE, b"state")]


def test_the_changes_of_one_input_become_one_save_a_row() -> None:
    disk = Disk()
    disk.add(b"one", b"two")
    disk.log.truncate(1)
    disk.add(b"other")
    saves = {(save.space, save.key[-1:]): save.value for save in disk.save() if save.space == LOG_SPACE}
    assert saves == {(LOG_SPACE, b"\x01"): disk.log[1].frame, (LOG_SPACE, b"\x02"): None}


def test_a_decided_entry_is_never_dropped() -> None:
    disk = Disk()
    disk.add(b"one")
    disk.log.set_commit(1)
    with pytest.raises(AssertionError):
        disk.log.truncate(1)


def test_the_commit_never_goes_back() -> None:
    disk = Disk()
    disk.add(b"one", b"two")
    disk.log.set_commit(2)
    with pytest.raises(AssertionError):
        disk.log.set_commit(1)


def test_a_vote_of_a_term_is_never_changed() -> None:
    disk = Disk()
    disk.log.set_term(2, vote=CAST.nodes[1])
    with pytest.raises(AssertionError):
        disk.log.set_term(2, vote=CAST.nodes[2])


def test_a_coordinator_goes_on_after_a_gap_or_after_the_commit() -> None:
    disk = Disk()
    disk.add(b"one", b"two", b"three")
    disk.log.set_commit(1)
    assert (disk.log.hint(9), disk.log.hint(3), disk.log.hint(2)) == (3, 1, 1)


def test_a_batch_is_bounded_in_entries_and_in_bytes() -> None:
    disk = Disk()
    disk.add(*[b"small"] * 100)
    assert len(disk.log.batch(1, 1_000)) == limits.APPEND_ENTRIES_MAX
    assert len(disk.log.batch(1, 10)) == 10
    disk.add(*[bytes(limits.DECISION_STEP_BYTES_MAX)] * 3)
    assert len(disk.log.batch(101, 1_000)) == 2


def test_the_largest_entry_still_fits_a_batch() -> None:
    disk = Disk()
    disk.add(bytes(limits.DECISION_STEP_BYTES_MAX))
    assert len(disk.log.batch(1, 1)) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ((1).to_bytes(8, "big"), b"garbage"),
        ((1).to_bytes(8, "big"), None),
        ((7).to_bytes(8, "big"), CAST.founding),
    ],
)
def test_a_damaged_log_is_told_not_guessed(key: bytes, value: bytes | None) -> None:
    disk = Disk()
    disk.add(b"one", b"two")
    disk.save()
    disk.storage.commit([Save(LOG_SPACE, key, value)])
    with pytest.raises(StorageError) as told:
        disk.load()
    assert told.value.code == "damaged"


def test_a_log_that_lost_decided_entries_is_damaged() -> None:
    disk = Disk()
    disk.add(b"one", b"two")
    disk.log.set_commit(2)
    disk.save()
    disk.storage.commit([Save(LOG_SPACE, (2).to_bytes(8, "big"), None)])
    with pytest.raises(StorageError):
        disk.load()


@pytest.mark.parametrize("index", [1, 2])
def test_one_flipped_bit_in_an_entry_is_noticed(index: int) -> None:
    disk = Disk()
    disk.add(b"one", b"two")
    disk.save()
    frame = bytearray(disk.log[index].frame)
    frame[-1] ^= 1
    disk.storage.commit([Save(LOG_SPACE, index.to_bytes(8, "big"), bytes(frame))])
    with pytest.raises(StorageError):
        disk.load()


def test_another_incarnation_does_not_take_this_disk() -> None:
    disk = Disk()
    disk.save()
    frame = founding_frame(CAST.keys[0], NETWORK, TEAM, 1, 0, b"roster")
    with pytest.raises(UsageError) as refused:
        disk.load(Held(open_founding(frame, NETWORK, TEAM, 1), frame, blake(frame)))
    assert refused.value.code == "other-incarnation"


@pytest.mark.parametrize(
    ("network", "team", "incarnation", "code"),
    [
        (bytes(16), TEAM, 0, "bad-signature"),
        (NETWORK, bytes(16), 0, "wrong-founding"),
        (NETWORK, TEAM, 1, "wrong-founding"),
    ],
)
def test_a_founding_entry_is_of_this_mesh_team_and_incarnation(
    network: bytes, team: bytes, incarnation: int, code: str
) -> None:
    with pytest.raises(PeerError) as refused:
        open_founding(CAST.founding, network, team, incarnation)
    assert refused.value.code == code


def test_entry_zero_is_no_later_entry() -> None:
    disk = Disk()
    disk.add(b"one")
    with pytest.raises(PeerError):
        open_founding(disk.log[1].frame, NETWORK, TEAM, 0)
