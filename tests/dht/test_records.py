"""The order of checks, and Mallory at each of them. (Public failure 1: a record for a victim, signed by another.)"""

import random
from collections.abc import Callable

import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.dht import records
from ioa_p2p.dht.records import Claim, Gate
from ioa_p2p.dht.store import Store
from ioa_p2p.effects import Now
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import Verdict
from ioa_p2p.wire.frames import Frame, Kind
from tests.dht.frames import NOW, WALL, forged, later, sealed
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, fault_of, pointer, record

SOURCE = b"192.0.2"


class Counted:
    """The real check of signatures, counted."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, frame: Frame, network: bytes) -> None:
        self.times += 1
        envelope.check(frame, network)


class Desk:
    """A Gate and its Store."""

    def __init__(self) -> None:
        self.check = Counted()
        self.store = Store(lambda item: None, random.Random(1))
        self.gate = Gate(NETWORK, self.store, self.check)

    def admit(self, raw: bytes, now: Now = NOW) -> Verdict:
        return self.gate.admit(now, Claim(raw), SOURCE, sender=BOB.node)

    def fault(self, raw: bytes, now: Now = NOW) -> str | None:
        return fault_of(self.admit, raw, now)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize("body", [record(), pointer()], ids=["record", "pointer"])
def test_a_valid_frame_is_kept_under_its_key(desk: Desk, body):
    raw = sealed(body)
    assert desk.admit(raw) is Verdict.KEPT
    assert [held.item.raw for held in desk.store.under(NOW, records.key_of(body))] == [raw]


@pytest.mark.parametrize("body", [record(), pointer()], ids=["record", "pointer"])
def test_mallory_cannot_publish_for_alice(desk: Desk, body):
    assert desk.fault(forged(body)) == "bad-signature"
    assert len(desk.store) == 0


@pytest.mark.parametrize("body", [record(), pointer()], ids=["record", "pointer"])
def test_a_frame_of_another_mesh_is_refused(desk: Desk, body):
    assert desk.fault(sealed(body, network=OTHER_NETWORK)) == "bad-signature"


@pytest.mark.parametrize("body", [record(), pointer()], ids=["record", "pointer"])
def test_a_record_is_no_pointer_and_the_other_way_round(desk: Desk, body):
    """The kind is in the signature's domain."""
    raw = bytearray(sealed(body))
    raw[1] = Kind.POINTER if raw[1] == Kind.RECORD else Kind.RECORD
    assert desk.fault(bytes(raw)) in ("bad-signature", "undecodable", "frame-too-large")
    assert len(desk.store) == 0


def test_other_signed_frames_are_not_kept(desk: Desk):
    vote = envelope.seal(ALICE, NETWORK, Kind.VOTE, (ALICE.node, 1))
    assert desk.fault(vote) == "wrong-kind"


def test_a_value_of_ten_megabytes_is_refused_before_anything_reads_it(desk: Desk):
    """Public failure 2."""
    raw = sealed(record())
    assert desk.fault(raw + bytes(10 * 1024 * 1024)) == "frame-length"
    assert desk.check.times == 0


def test_every_flipped_bit_is_noticed(desk: Desk):
    raw = sealed(record())
    for place in range(len(raw)):
        broken = bytearray(raw)
        broken[place] ^= 0x10
        assert desk.fault(bytes(broken), later(place)) is not None, place
    assert len(desk.store) == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"issued": WALL + limits.CLOCK_SKEW_S + 1}, "not-yet-valid"),
        ({"issued": WALL - 600 - limits.CLOCK_SKEW_S, "ttl": 600}, "expired"),
        ({"ttl": limits.TTL_S_MAX + 1}, "ttl-too-long"),
        ({"ttl": limits.TTL_S_MIN - 1}, "undecodable"),
        ({"agent": "Not Canonical"}, "undecodable"),
        ({"skills": ("Bad Skill",)}, "undecodable"),
        ({"skills": tuple(f"s{number}" for number in range(11))}, "undecodable"),
        ({"seq": -1}, "undecodable"),
    ],
)
def test_a_signed_record_that_breaks_a_rule_is_refused(desk: Desk, changes, code: str):
    assert desk.fault(sealed(record(**changes))) == code
    assert len(desk.store) == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"depth": 9}, "undecodable"), ({"index": bytes(15)}, "undecodable"), ({"endpoint": bytes(6)}, "bad-endpoint")],
)
def test_a_signed_pointer_that_breaks_a_rule_is_refused(desk: Desk, changes, code: str):
    assert desk.fault(sealed(pointer(**changes))) == code
    assert len(desk.store) == 0


def test_a_clock_that_is_ten_minutes_off_is_borne_both_ways(desk: Desk):
    assert desk.admit(sealed(record(issued=WALL + limits.CLOCK_SKEW_S))) is Verdict.KEPT
    late = record(agent="late", issued=WALL - 600 - limits.CLOCK_SKEW_S + 1, ttl=600)
    assert desk.admit(sealed(late)) is Verdict.KEPT


def test_a_gone_record_may_outlive_the_longest_life(desk: Desk):
    assert desk.admit(sealed(record(gone=True, ttl=limits.TTL_S_MAX + limits.GONE_EXTRA_TTL_S))) is Verdict.KEPT


def test_what_was_seen_before_costs_no_second_signature_check(desk: Desk):
    raw = sealed(record())
    assert [desk.admit(raw), desk.admit(raw)] == [Verdict.KEPT, Verdict.KNOWN]
    assert desk.check.times == 1


def test_an_older_seq_costs_no_signature_check(desk: Desk):
    desk.admit(sealed(record(seq=20)))
    assert desk.admit(sealed(record(seq=19))) is Verdict.OLDER
    assert desk.check.times == 1


def test_a_forged_higher_seq_shuts_nobody_out(desk: Desk):
    assert desk.fault(forged(record(seq=1 << 60))) == "bad-signature"
    assert desk.admit(sealed(record(seq=20))) is Verdict.KEPT


def test_a_sender_over_its_budget_waits_and_others_do_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "STORE_BUDGET", (3, 1))
    desk = Desk()
    junk = forged(record())
    assert [desk.fault(junk) for _ in range(4)] == ["bad-signature"] * 3 + ["over-budget"]
    assert desk.check.times == 3
    assert desk.gate.admit(NOW, Claim(sealed(record())), SOURCE, sender=ALICE.node) is Verdict.KEPT
    assert desk.admit(sealed(record(agent="other")), later(1.0)) is Verdict.KEPT


def test_a_reader_takes_only_what_it_asked_for(desk: Desk):
    asked = ids.record_key(ALICE.node, "analyst")
    assert desk.gate.read(NOW, sealed(record()), asked).body == record()
    for other in (record(agent="other"), record(key=MALLORY), pointer()):
        raw = sealed(other, MALLORY if other.node == MALLORY.node else ALICE)
        assert fault_of(desk.gate.read, NOW, raw, asked) == "not-asked-for"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: forged(record()), "bad-signature"),
        (lambda: sealed(record(), network=OTHER_NETWORK), "bad-signature"),
        (lambda: sealed(record(issued=WALL - 8_000)), "expired"),
        (lambda: b"", "short-frame"),
    ],
)
def test_a_reader_checks_as_a_holder_does(desk: Desk, make: Callable[[], bytes], code: str):
    assert fault_of(desk.gate.read, NOW, make(), ids.record_key(ALICE.node, "analyst")) == code


def test_a_field_of_a_newer_minor_version_is_ignored(desk: Desk):
    body = [*codec.read_any(codec.encode(record())), "from the future"]
    raw = envelope.seal(ALICE, NETWORK, Kind.RECORD, body)
    assert desk.admit(raw) is Verdict.KEPT
    assert desk.gate.read(NOW, raw, ids.record_key(ALICE.node, "analyst")).raw == raw


def test_what_another_passed_on_counts_as_the_publishers_from_when_that_one_brings_it(desk: Desk):
    """Or whoever copies the pointers of others to a holder could have them weighed as her own flood."""
    raw, slot = sealed(pointer()), records.slot_of(pointer())
    for sender, source, counted in ((BOB, b"bob", b"bob"), (MALLORY, b"m", b"bob"), (ALICE, b"alice", b"alice")):
        desk.gate.admit(NOW, Claim(raw), source, sender=sender.node)
        held = desk.store.get(NOW, slot)
        assert held is not None
        assert held.source == counted
