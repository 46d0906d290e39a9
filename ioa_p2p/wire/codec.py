"""The one door to MessagePack: msgspec for what we know, msgpack for what we do not.

typed Struct ── encode ──> bytes        bytes ── decode(type) ──> Struct | PeerError
any bytes ── read_any ──> plain Python, for people and unknown versions

Both libraries refuse what is nested about 1,000 deep by themselves; free-form values are held to
`limits.NESTING_MAX`, since whoever walks them later (JSON, prints) recurses too.
"""

from functools import cache
from typing import Any, TypeVar, cast

import msgpack  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits

T = TypeVar("T")
M = TypeVar("M", bound=msgspec.Struct)

_encoder = msgspec.msgpack.Encoder()


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=False):
    """Base of every wire type: an array, so that a newer minor version may append fields."""


def encode(value: Any) -> bytes:
    """Our own bytes, to be sent or signed. Never re-encode what was received."""
    return _encoder.encode(value)


def decode(data: bytes, kind: type[T]) -> T:
    """Strictly typed decode. Raises PeerError('undecodable') for anything but a valid `kind`.

    `kind` may be a union type of tagged Messages. A field typed `Any` is not held to the nesting bound
    here: its Struct does that (`check_nesting` in `__post_init__`).
    """
    try:
        return _decoder(kind).decode(data)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise PeerError("undecodable", str(fault)[:200]) from None


def replace(message: M, **changes: Any) -> M:
    """A copy with some fields changed; not checked, so for our own values only."""
    return msgspec.structs.replace(message, **changes)


def read_any(data: bytes) -> Any:
    """Schema-less read of one MessagePack value: only what `encode` takes again, so a moment in time is its seconds
    since 1970. Raises PeerError('undecodable'), for other extension types too."""
    try:
        value = cast(Any, msgpack).unpackb(data, strict_map_key=False, timestamp=1, ext_hook=_no_extension)
        check_nesting(value)
    except (ValueError, TypeError, msgpack.UnpackException) as fault:  # TypeError: a map as a map's key
        raise PeerError("undecodable", str(fault)[:200]) from None
    return value


def read_tag(data: bytes) -> str:
    """The tag of a message of a union, whatever else it holds; empty if these bytes are none."""
    unpacker = cast(Any, msgpack).Unpacker()
    unpacker.feed(data)
    try:
        tag = unpacker.unpack() if unpacker.read_array_header() else ""
    except (ValueError, TypeError, msgpack.UnpackException):
        return ""
    return tag if isinstance(tag, str) else ""


def check_nesting(value: Any, levels: int = limits.NESTING_MAX) -> None:
    """Raises ValueError if containers stand more than `levels` deep within `value`."""
    if isinstance(value, dict):
        inside = [*cast(dict[Any, Any], value).keys(), *cast(dict[Any, Any], value).values()]
    elif isinstance(value, list | tuple):
        inside = cast(list[Any], value)
    else:
        return
    if not levels:
        raise ValueError(f"nested deeper than {limits.NESTING_MAX}")
    for item in inside:
        check_nesting(item, levels - 1)


def _no_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"extension type {code}")


@cache
def _decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    return msgspec.msgpack.Decoder(kind)
