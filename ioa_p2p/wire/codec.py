"""The one door to MessagePack: msgspec for what we know, msgpack for what we do not.

typed Struct ── encode ──> bytes        bytes ── decode(type) ──> Struct | PeerError
any bytes ── read_any ──> plain Python, for people and unknown versions
"""

from typing import Any, TypeVar, cast

import msgpack  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits

T = TypeVar("T")
M = TypeVar("M", bound=msgspec.Struct)

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=False):
    """Base of every wire type: an array, so that a newer minor version may append fields."""


def encode(value: Any) -> bytes:
    """Our own bytes, to be sent or signed. Never re-encode what was received."""
    return _encoder.encode(value)


def decode(data: bytes, kind: type[T]) -> T:
    """Strictly typed decode. Raises PeerError('undecodable') for anything but a valid `kind`.

    `kind` may be a union type of tagged Messages.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    try:
        return cast(T, decoder.decode(data))
    except (msgspec.DecodeError, ValueError, RecursionError, OverflowError) as fault:
        raise PeerError("undecodable", str(fault)[:200]) from None


def replace(message: M, **changes: Any) -> M:
    """The same message with some fields changed."""
    return msgspec.structs.replace(message, **changes)


def read_any(data: bytes) -> Any:
    """Schema-less read of one MessagePack value. Raises PeerError('undecodable')."""
    try:
        return cast(Any, msgpack).unpackb(
            data,
            strict_map_key=False,
            max_buffer_size=limits.LINK_FRAME_BYTES_MAX,
        )
    except (ValueError, msgpack.UnpackException, RecursionError) as fault:
        raise PeerError("undecodable", str(fault)[:200]) from None
