"""The door to MessagePack: strict for known types, forgiving for newer ones, never anything but PeerError."""

from typing import Annotated, Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from tests.wire.samples import fault_of


class Point(Message, frozen=True):
    x: Annotated[int, Meta(ge=0)]
    label: Annotated[str, Meta(max_length=4)] = ""
    data: bytes = b""


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=5), inside, max_size=4),
    max_leaves=20,
)


@given(st.integers(0, (1 << 64) - 1), st.text(max_size=4), st.binary())
def test_a_message_survives_the_wire(x: int, label: str, data: bytes) -> None:
    assert codec.decode(codec.encode(Point(x, label, data)), Point) == Point(x, label, data)


def test_a_message_is_an_array() -> None:
    assert codec.encode(Point(7, "a", b"z")) == b"\x93\x07\xa1a\xc4\x01z"


def test_fields_of_a_newer_minor_version_are_ignored() -> None:
    assert codec.decode(codec.encode((7, "a", b"", "new", {"more": 1})), Point) == Point(7, "a")


def test_fields_left_out_by_an_older_minor_version_take_their_defaults() -> None:
    assert codec.decode(codec.encode((7,)), Point) == Point(7)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",  # never used by MessagePack
        b"\x90",  # a required field is missing
        b"\x91\xff",  # negative
        b"\x91\xc3",  # true is no number
        b"\x91\xa11",  # nor is text
        b"\x91\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00",  # nor 1.0
        b"\x92\x07\xc4\x01a",  # bytes are no text
        b"\x92\x07\xa5abcde",  # too long
        b"\x92\x07\xa1\xff",  # not UTF-8
        b"\x93\x07\xa0\xa0",  # text is no bytes
        b"\x81\xa1x\x07",  # a map
        b"\x91\x07\x07",  # something after the end
        b"\xdd\xff\xff\xff\xff",  # four thousand million elements, none there
        b"\x93\x07\xa0\xc6\xff\xff\xff\xff",  # four gigabytes, none there
    ],
)
def test_anything_but_a_valid_message_is_undecodable(data: bytes) -> None:
    assert fault_of(codec.decode, data, Point) == "undecodable"


@given(json_like)
def test_the_schemaless_reader_agrees_with_the_codec(value: Any) -> None:
    assert codec.read_any(codec.encode(value)) == value == codec.decode(codec.encode(value), Any)


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_undecodable(data: bytes) -> None:
    assert fault_of(codec.read_any, data) in {"undecodable", None}
    assert fault_of(codec.decode, data, Point) in {"undecodable", None}


BOMBS = {
    "arrays": b"\x91" * 10_000 + b"\x90",
    "maps": b"\x81\xa1a" * 10_000 + b"\x80",
    "map keys": b"\x81" * 10_000 + b"\x01" * 10_001,
    "in an unknown field": b"\x94\x07\xa0\xc4\x00" + b"\x91" * 10_000 + b"\x90",
    "a map as a key": b"\x81\x80\x01",
    "an array as a key": b"\x81\x90\x01",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_depth_bomb_is_undecodable(bomb: bytes) -> None:
    assert fault_of(codec.read_any, bomb) == fault_of(codec.decode, bomb, Point) == "undecodable"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_free_form_values_are_nested_up_to_the_bound_and_no_deeper() -> None:
    assert codec.read_any(msgpack.packb(nested(limits.NESTING_MAX))) == nested(limits.NESTING_MAX)
    for deeper in (nested(limits.NESTING_MAX + 1), {"a": nested(limits.NESTING_MAX)}):
        with pytest.raises(PeerError, match="nested deeper"):
            codec.read_any(msgpack.packb(deeper))


def test_a_moment_is_read_as_seconds_and_other_extensions_are_refused() -> None:
    """So whatever was read can be written again, by every library."""
    moment = codec.read_any(msgpack.packb({"when": msgpack.Timestamp(5, 500_000_000)}))
    assert codec.read_any(codec.encode(moment)) == moment == {"when": 5.5}
    assert fault_of(codec.read_any, msgpack.packb([msgpack.ExtType(5, b"x")])) == "undecodable"
