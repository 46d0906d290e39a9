"""The frame around signed bytes: every cheap check has its code, and no input gets past with another error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.crypto import envelope
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.frames import Kind
from tests.wire import samples
from tests.wire.samples import ALICE, NETWORK, fault_of, record

FRAME = envelope.seal(ALICE, NETWORK, Kind.RECORD, record())
CODES = {"short-frame", "unknown-version", "unknown-kind", "frame-too-large", "frame-length", "no-signer"}


def framed(kind: int, body: bytes, version: int = frames.VERSION) -> bytes:
    """A frame with any header and an empty signature."""
    return bytes([version, kind]) + len(body).to_bytes(2, "big") + body + bytes(limits.SIGNATURE_BYTES)


def test_a_frame_comes_apart_into_what_it_was_made_of() -> None:
    frame = frames.parse(FRAME)
    assert (frame.version, frame.kind, frame.signer, frame.raw) == (1, Kind.RECORD, ALICE.node, FRAME)
    assert frame.body == codec.encode(record())
    assert frame.raw == FRAME[:4] + frame.body + frame.signature


def test_frames_one_after_another_are_taken_in_order() -> None:
    first, rest = frames.take(FRAME + FRAME + b"tail")
    second, rest = frames.take(rest)
    assert (first.raw, second.raw, rest) == (FRAME, FRAME, b"tail")


@pytest.mark.parametrize("length", [0, 3, 4, 67, 68, len(FRAME) - 1])
def test_a_truncated_frame_is_short(length: int) -> None:
    assert fault_of(frames.parse, FRAME[:length]) == "short-frame"


def test_bytes_after_the_frame_are_refused() -> None:
    assert fault_of(frames.parse, FRAME + b"\x00") == "frame-length"


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_major_version_is_refused_by_name(version: int) -> None:
    with pytest.raises(PeerError, match=f"version {version}; this node speaks 1") as caught:
        frames.parse(bytes([version]) + FRAME[1:])
    assert caught.value.code == "unknown-version"


@pytest.mark.parametrize("kind", [0, len(Kind) + 1, 255])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    assert fault_of(frames.parse, framed(kind, FRAME[4:100])) == "unknown-kind"


@pytest.mark.parametrize(
    ("kind", "bound"),
    [(Kind.RECORD, limits.RECORD_BODY_BYTES_MAX), (Kind.POINTER, limits.POINTER_BODY_BYTES_MAX)],
)
def test_a_body_is_refused_above_the_bound_of_its_kind_and_not_below(kind: Kind, bound: int) -> None:
    start = b"\x91\xc4\x20" + ALICE.node
    assert len(frames.parse(framed(kind, start.ljust(bound, b"\x00"))).body) == bound
    assert fault_of(frames.parse, framed(kind, start.ljust(bound + 1, b"\x00"))) == "frame-too-large"


def test_the_size_is_refused_before_the_bytes_are_there() -> None:
    assert fault_of(frames.parse, bytes([1, Kind.RECORD, 0xFF, 0xFF]) + bytes(64)) == "frame-too-large"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x90",
        b"\x91",
        b"\x90\xc4\x20" + ALICE.node,  # an empty array has no first element
        b"\x91\xc4\x1f" + bytes(31),
        b"\x91\xc4\x21" + bytes(33),
        b"\x91\xc4\x20" + bytes(31),
        b"\x91\xd9\x20" + b"a" * 32,  # text
        b"\x91\x91\xc4\x20" + ALICE.node,
        b"\x81\xc4\x20" + ALICE.node,  # a map
        b"\xdc\x00\x00\xc4\x20" + ALICE.node,
        b"\xdc\x00",
    ],
)
def test_a_body_that_does_not_begin_with_a_key_has_no_signer(body: bytes) -> None:
    assert fault_of(frames.parse, framed(Kind.LOG, body)) == "no-signer"


@pytest.mark.parametrize("start", [b"\x91", b"\x9f", b"\xdc\x00\x10", b"\xdc\xff\xff"])
def test_the_signer_is_read_from_short_and_long_arrays(start: bytes) -> None:
    assert frames.signer_of(start + b"\xc4\x20" + ALICE.node) == ALICE.node


def test_our_own_body_above_its_bound_is_our_bug() -> None:
    with pytest.raises(AssertionError, match="too large"):
        frames.header(Kind.POINTER, bytes(limits.POINTER_BODY_BYTES_MAX + 1))


@given(st.binary(max_size=300))
def test_random_bytes_are_never_more_than_a_counted_fault(data: bytes) -> None:
    assert fault_of(frames.take, data) in CODES


@given(st.integers(0, 3), st.sampled_from(Kind), st.binary(max_size=1_100))
def test_a_random_body_is_never_more_than_a_counted_fault(version: int, kind: Kind, body: bytes) -> None:
    assert fault_of(frames.parse, framed(kind, body, version)) in {*CODES, None}


@given(samples.mutations(FRAME))
def test_a_mutated_frame_is_never_more_than_a_counted_fault(raw: bytes) -> None:
    assert fault_of(frames.parse, raw) in {*CODES, None}
