"""Signed frames between sender, receiver and mallory: only what its signer sealed opens, and only where it belongs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.crypto import envelope
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord, Pointer
from tests.wire import samples
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, fault_of, pointer, record

SEALED = envelope.seal(ALICE, NETWORK, Kind.RECORD, record())


def receive(raw: bytes, network: bytes = NETWORK, kind: Kind = Kind.RECORD, body: type[Any] = AgentRecord) -> Any:
    return envelope.open_frame(frames.parse(raw), network, kind, body)


def forge(raw: bytes, body: bytes | None = None, kind: int | None = None, signature: bytes | None = None) -> bytes:
    """`raw` with parts exchanged and a fitting length."""
    body = frames.parse(raw).body if body is None else body
    head = bytes([raw[0], raw[1] if kind is None else kind]) + len(body).to_bytes(2, "big")
    return head + body + (raw[-limits.SIGNATURE_BYTES :] if signature is None else signature)


@given(samples.records)
def test_the_receiver_reads_what_the_sender_sealed(sample: AgentRecord) -> None:
    sent = record(**{name: getattr(sample, name) for name in ("agent", "seq", "issued", "ttl", "skills", "endpoint")})
    assert receive(envelope.seal(ALICE, NETWORK, Kind.RECORD, sent)) == sent


def test_sealing_twice_gives_the_same_bytes() -> None:
    assert envelope.seal(ALICE, NETWORK, Kind.RECORD, record()) == SEALED


def test_mallory_cannot_sign_in_the_name_of_another() -> None:
    """The signature of a record for Alice's key, made with Mallory's."""
    mallory = envelope.seal(MALLORY, NETWORK, Kind.RECORD, record(MALLORY))
    claimed = forge(mallory, body=codec.encode(record(ALICE)))
    assert frames.parse(claimed).signer == ALICE.node
    assert fault_of(receive, claimed) == "bad-signature"


@pytest.mark.parametrize("kind", Kind)
def test_mallory_cannot_sign_in_the_name_of_another_whatever_the_kind(kind: Kind) -> None:
    """Public failure 1: whoever a frame speaks for must be who signed it."""
    claimed = forge(envelope.seal(MALLORY, NETWORK, kind, [MALLORY.node]), body=codec.encode([ALICE.node]))
    assert frames.parse(claimed).signer == ALICE.node
    assert fault_of(envelope.check, frames.parse(claimed), NETWORK) == "bad-signature"


def test_mallory_cannot_put_her_name_on_what_another_signed() -> None:
    stolen = forge(SEALED, body=codec.encode(record(MALLORY)))
    assert fault_of(receive, stolen) == "bad-signature"


def test_our_own_code_cannot_seal_in_the_name_of_another() -> None:
    with pytest.raises(AssertionError, match="signer"):
        envelope.seal(BOB, NETWORK, Kind.RECORD, record(ALICE))


def test_a_body_under_the_signature_of_another_body_is_refused() -> None:
    newer = codec.encode(record(seq=record().seq + 1))
    assert fault_of(receive, forge(SEALED, body=newer)) == "bad-signature"


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.RECORD, Kind.POINTER)])
def test_a_frame_relabelled_as_another_kind_is_refused(kind: Kind) -> None:
    assert fault_of(receive, forge(SEALED, kind=kind), NETWORK, kind) == "bad-signature"


def test_a_signature_made_for_one_kind_never_fits_another() -> None:
    """Domains differ by name, not only by the header's number."""
    signatures = {envelope.seal(ALICE, NETWORK, kind, [ALICE.node])[-64:] for kind in Kind}
    assert len(signatures) == len(Kind)


def test_a_frame_of_another_kind_than_wanted_is_refused_before_its_signature() -> None:
    sealed = envelope.seal(ALICE, NETWORK, Kind.POINTER, pointer())
    assert receive(sealed, kind=Kind.POINTER, body=Pointer) == pointer()
    assert fault_of(receive, sealed) == "wrong-kind"


def test_a_frame_of_another_mesh_is_refused() -> None:
    assert fault_of(receive, SEALED, OTHER_NETWORK) == "bad-signature"


def test_the_network_ends_where_its_length_says() -> None:
    """A shorter network name with the missing byte moved behind it is another signed text."""
    assert fault_of(receive, SEALED, NETWORK[:-1]) == "bad-signature"
    assert fault_of(receive, SEALED, NETWORK + b"\x00") == "bad-signature"


def test_the_signature_is_checked_before_the_body_is_decoded() -> None:
    assert fault_of(receive, forge(SEALED, body=b"\x91\xc4\x20" + ALICE.node)) == "bad-signature"


def test_a_well_signed_body_of_another_shape_is_undecodable() -> None:
    sealed = envelope.seal(ALICE, NETWORK, Kind.RECORD, [ALICE.node, "not an agent name!"])
    assert fault_of(receive, sealed) == "undecodable"


def test_a_signed_body_with_a_deep_unknown_field_opens_without_it() -> None:
    """A newer minor version may append what it likes: it is skipped, never built."""
    fields = [*record_fields(), nested(300)]
    assert receive(envelope.seal(ALICE, NETWORK, Kind.RECORD, fields)) == record()


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_the_received_bytes_are_verified_never_a_re_encoding() -> None:
    """Longer forms of the same values are valid when their signer wrote them so, and only with that signature."""
    short = codec.encode(record())
    long = bytes([0xDC, 0, short[0] & 0x0F]) + short[1:]  # array 16 in place of a short array
    assert codec.decode(long, AgentRecord) == record()
    assert fault_of(receive, forge(SEALED, body=long)) == "bad-signature"


@given(samples.mutations(SEALED))
def test_no_mutation_of_a_sealed_frame_opens(raw: bytes) -> None:
    if raw != SEALED:
        assert fault_of(receive, raw) is not None


@given(st.sampled_from(Kind), st.binary(max_size=200), st.binary(min_size=64, max_size=64))
def test_a_random_body_never_opens(kind: Kind, tail: bytes, signature: bytes) -> None:
    raw = forge(SEALED, body=b"\x9d\xc4\x20" + ALICE.node + tail, kind=kind, signature=signature)
    assert fault_of(receive, raw, NETWORK, kind) in {"bad-signature", "frame-too-large"}


def test_a_key_of_small_order_owns_no_record() -> None:
    body = codec.encode((bytes(32), *record_fields()[1:]))
    with pytest.raises(PeerError, match="bad-signature"):
        receive(forge(SEALED, body=body, signature=bytes(64)))


def record_fields() -> tuple[Any, ...]:
    return tuple(getattr(record(), name) for name in AgentRecord.__struct_fields__)
