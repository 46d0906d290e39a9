"""Two nodes with one key are noticed; one that merely starts again is not."""

import itertools

import pytest

from ioa_p2p.dht.clones import Clones
from ioa_p2p.dht.commands import NeighbourUp, Publish
from ioa_p2p.dht.events import CloneAlarm
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Store
from tests.dht.frames import item, sealed
from tests.dht.mesh import card
from tests.dht.test_machine import BOBS, Driven, emitted
from tests.wire.samples import ALICE, BOB, pointer, record

Alarm = tuple[bytes, str, int]


@pytest.fixture
def alarms() -> list[Alarm]:
    return []


@pytest.fixture
def clones(alarms: list[Alarm]) -> Clones:
    return Clones(ALICE.node, 5, lambda *alarm: alarms.append(alarm))


def of_bob(seq: int, boot: int):
    return item(record(BOB, seq=seq, boot=boot), BOB)


def test_a_newer_record_of_an_older_start_raises_the_alarm(clones: Clones, alarms: list[Alarm]):
    clones.kept(of_bob(1, boot=9), of_bob(2, boot=5))
    assert alarms == [(BOB.node, "analyst", 2)]


def test_starting_again_and_issuing_again_raise_none(clones: Clones, alarms: list[Alarm]):
    versions = [None, of_bob(1, boot=5), of_bob(2, boot=5), of_bob(3, boot=9)]
    for old, new in itertools.pairwise(versions):
        assert new is not None
        clones.kept(old, new)
    clones.kept(item(pointer()), item(pointer(seq=1_900_000_000_000)))
    assert alarms == []


def test_a_record_of_our_key_by_a_newer_start_than_ours_raises_the_alarm(clones: Clones, alarms: list[Alarm]):
    clones.kept(None, item(record(boot=5)))
    clones.kept(None, item(record(boot=4)))
    assert alarms == []
    clones.kept(None, item(record(boot=6)))
    assert alarms == [(ALICE.node, "analyst", record().seq)]


def test_a_link_of_an_older_start_than_heard_of_raises_the_alarm(clones: Clones, alarms: list[Alarm]):
    for boot in (5, 5, 9):
        clones.linked(BOB.node, boot)
    clones.linked(ALICE.node, 1)
    assert alarms == []
    clones.linked(BOB.node, 5)
    clones.kept(None, of_bob(1, boot=20))
    clones.linked(BOB.node, 9)
    assert alarms == [(BOB.node, "", 5), (BOB.node, "", 9)]


def test_only_so_many_starts_are_remembered(clones: Clones, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "BOOTS_MAX", 3)
    for number in range(9):
        clones.linked(bytes([number]) * 32, 1)
    assert len(clones._newest) == 3


def test_the_owner_hears_of_a_stored_record_and_of_a_link():
    alice = Driven()
    for seq, boot in ((1, 9), (2, 5)):
        raw = sealed(record(BOB, seq=seq, boot=boot), BOB)
        effects = alice.hear(BOBS, Store(1, True, alice.token(), raw))
    assert emitted(effects)[-1] == CloneAlarm(BOB.node, "analyst", 2)
    assert emitted(alice.command(NeighbourUp(BOB.node, 8))) == [CloneAlarm(BOB.node, "", 8)]


def test_a_copy_of_us_that_publishes_is_told_to_us():
    alice = Driven()
    alice.command(Publish(card("analyst")))
    raw = sealed(record(seq=1 << 60, boot=2))
    assert emitted(alice.hear(BOBS, Store(1, True, alice.token(), raw))) == [CloneAlarm(ALICE.node, "analyst", 1 << 60)]
