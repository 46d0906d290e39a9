"""Whom we trust how far, and that what went well is remembered, once, within bounds."""

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.node import trust
from ioa_p2p.node.trust import Acquaintances, Level, Past
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.wire import limits

OWN, FRIEND, STRANGER, KNOWN = (bytes([number]) * 32 for number in range(1, 5))


@pytest.fixture
def disk() -> MemoryStorage:
    return MemoryStorage()


def load(disk: MemoryStorage) -> Past:
    return Past(lambda space: list(disk.scan(space)))


def conclude(past: Past, disk: MemoryStorage, number: int, *results: tuple[bytes, str, bool]) -> list[Save]:
    saves = past.concluded(number.to_bytes(16), 1_000 + number, results)
    disk.commit(saves)
    return saves


def test_levels_stand_in_their_order_whoever_asks(disk: MemoryStorage) -> None:
    past = load(disk)
    conclude(past, disk, 1, (KNOWN, "cook", True))
    trusted = Acquaintances(OWN, [FRIEND], past, introduced=lambda node: node == bytes(32))
    nodes = (OWN, FRIEND, bytes(32), KNOWN, STRANGER)
    levels = [trusted.standing(node, "cook").level for node in nodes]
    assert levels == sorted(levels) == list(Level)
    assert trusted.standing(KNOWN, "cook").why == "did 1 of 1 tasks for us"
    assert trusted.standing(KNOWN, "gardener").level is Level.STRANGER, "another agent of the same node"


def test_more_failures_than_successes_make_a_stranger_again_and_it_is_said(disk: MemoryStorage) -> None:
    past = load(disk)
    conclude(past, disk, 1, (KNOWN, "cook", True), (KNOWN, "cook", False))
    standing = Acquaintances(OWN, [], past).standing(KNOWN, "cook")
    assert standing.level is Level.STRANGER
    assert "failed 1 of 2" in standing.why


def test_a_conclusion_told_twice_or_after_a_restart_counts_once(disk: MemoryStorage) -> None:
    past = load(disk)
    conclude(past, disk, 1, (KNOWN, "cook", True))
    assert conclude(past, disk, 1, (KNOWN, "cook", True)) == []
    again = load(disk)
    assert conclude(again, disk, 1, (KNOWN, "cook", True)) == []
    assert again.of(KNOWN, "cook") == past.of(KNOWN, "cook") == (1, 0)


def test_the_oldest_teams_are_forgotten_on_disk_too(disk: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAST_TEAMS_MAX", 2)
    past = load(disk)
    for number in range(4):
        conclude(past, disk, number, (bytes([number]) * 32, "cook", True))
    assert [past.of(bytes([number]) * 32, "cook")[0] for number in range(4)] == [0, 0, 1, 1]
    assert len(list(disk.scan(trust.SPACE))) == 2


def test_a_damaged_row_is_an_experience_less(disk: MemoryStorage) -> None:
    conclude(load(disk), disk, 1, (KNOWN, "cook", True))
    disk.commit([Save(trust.SPACE, b"damaged", b"\xc1")])
    assert load(disk).of(KNOWN, "cook") == (1, 0)
