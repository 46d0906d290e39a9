"""Records, pointers and cards: what fits, what is refused, and that a datagram holds what it must."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, ids, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord, Card, Pointer, RecordHead, Skill
from tests.wire import samples
from tests.wire.samples import ALICE, card, pointer, record


@given(samples.records)
def test_a_record_survives_the_wire(record: AgentRecord) -> None:
    assert codec.decode(codec.encode(record), AgentRecord) == record


@given(samples.pointers)
def test_a_pointer_survives_the_wire(pointer: Pointer) -> None:
    assert codec.decode(codec.encode(pointer), Pointer) == pointer


def test_a_card_survives_the_wire() -> None:
    assert codec.decode(codec.encode(card()), Card) == card()


@given(samples.records)
def test_the_head_of_a_record_is_read_alone(record: AgentRecord) -> None:
    head = codec.decode(codec.encode(record), RecordHead)
    assert head == RecordHead(record.node, record.agent, record.seq, record.issued, record.ttl)


@given(samples.pointers)
def test_every_pointer_fits_its_bound(pointer: Pointer) -> None:
    frames.header(Kind.POINTER, codec.encode(pointer))


def test_a_datagram_holds_four_of_the_largest_pointers() -> None:
    largest = pointer(agent="x" * 32, seq=(1 << 63) - 1, issued=(1 << 40) - 1, sketch=bytes(64), endpoint=bytes(18))
    size = limits.FRAME_HEADER_BYTES + len(codec.encode(largest)) + limits.SIGNATURE_BYTES
    assert 4 * size < limits.DATAGRAM_BYTES_MAX - 100


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": bytes(31)},
        {"agent": "Analyst"},
        {"agent": "analyst\n"},
        {"agent": "x" * 33},
        {"seq": -1},
        {"seq": 1 << 63},
        {"issued": 1 << 40},
        {"issued": 1.0},
        {"ttl": limits.TTL_S_MIN - 1},
        {"ttl": limits.TTL_S_MAX + limits.GONE_EXTRA_TTL_S + 1},
        {"gone": 0},
        {"addresses": ("/ip4/127.0.0.1/tcp/1",) * 5},
        {"addresses": ("x" * (limits.ADDRESS_BYTES_MAX + 1),)},
        {"addresses": ("\x1b[2J",)},
        {"endpoint": "127.0.0.1:1 "},
        {"skills": ("a",) * 11},
        {"skills": ("a b",)},
        {"skills": ("a\n",)},
        {"features": ("x" * 25,)},
        {"features": ("x",) * 17},
        {"index_model": "x" * 33},
        {"card": bytes(33)},
        {"owner_cert": bytes(141)},
    ],
    ids=str,
)
def test_a_record_with_one_wrong_field_is_undecodable(wrong: dict[str, Any]) -> None:
    codec.decode(codec.encode(record()), AgentRecord)
    with pytest.raises(PeerError, match="Expected"):
        codec.decode(codec.encode(record(**wrong)), AgentRecord)


@pytest.mark.parametrize(
    "wrong",
    [{"index": bytes(15)}, {"depth": 9}, {"depth": -1}, {"sketch": bytes(65)}, {"endpoint": bytes(19)}],
    ids=str,
)
def test_a_pointer_with_one_wrong_field_is_undecodable(wrong: dict[str, Any]) -> None:
    codec.decode(codec.encode(pointer()), Pointer)
    with pytest.raises(PeerError, match="Expected"):
        codec.decode(codec.encode(pointer(**wrong)), Pointer)


def test_a_record_of_an_older_minor_version_has_no_owner_certificate() -> None:
    fields = msgspec.structs.astuple(record())[:-1]
    assert codec.decode(codec.encode(fields), AgentRecord) == record()


def test_a_record_of_a_newer_minor_version_is_read_without_what_is_new() -> None:
    fields = (*msgspec.structs.astuple(record(owner_cert=b"c")), "new", 7)
    assert codec.decode(codec.encode(fields), AgentRecord) == record(owner_cert=b"c")


def test_a_schema_nested_too_deep_is_refused() -> None:
    schema: Any = {}
    for _ in range(limits.NESTING_MAX):
        schema = {"properties": schema}
    deep = {"name": "a", "skills": [{"name": "b", "input_schema": schema}]}
    with pytest.raises(PeerError, match="nested deeper"):
        codec.decode(codec.encode(deep), Card)


def test_unknown_fields_of_a_card_are_ignored() -> None:
    assert codec.decode(codec.encode({"name": "a", "provider": {"url": "x"}}), Card) == Card("a")


def test_a_card_names_its_skills_as_records_do() -> None:
    with pytest.raises(PeerError, match="Expected"):
        codec.decode(codec.encode({"name": "a", "skills": [{"name": "Not A Name"}]}), Card)


def test_the_default_effect_of_a_skill_is_pure_and_others_are_named() -> None:
    assert Skill("a").effect == "pure"
    with pytest.raises(PeerError, match="Invalid enum"):
        codec.decode(codec.encode({"name": "a", "effect": "maybe"}), Skill)


def test_a_card_hash_changes_with_the_card() -> None:
    other = msgspec.structs.replace(card(), version="2")
    assert ids.blake(codec.encode(card())) != ids.blake(codec.encode(other))


def test_a_record_begins_with_its_signer() -> None:
    assert frames.signer_of(codec.encode(record())) == frames.signer_of(codec.encode(pointer())) == ALICE.node
