"""The signed frame: `version u8 | kind u8 | length u16be | body | signature 64`. docs/wire.md, "Signed frames".

Every signed body is an array whose first element is the signer's key, so the claimed signer can be read
before anything costs much. Signing and verifying live in `crypto.envelope` alone.
"""

import re
import struct
from dataclasses import dataclass
from enum import IntEnum

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits

VERSION = 1
_HEADER = struct.Struct(">BBH")
# A non-empty array (fixarray or array 16) whose first element is 32 bytes (bin 8).
_SIGNED_BODY = re.compile(rb"(?:[\x91-\x9f]|\xdc(?!\x00\x00)..)\xc4\x20(.{32})", re.DOTALL)


class Kind(IntEnum):
    """What is signed. Each kind has its own domain string: its name in lower case."""

    RECORD = 1
    POINTER = 2
    LOG = 3
    VOTE = 4
    DECISION = 5
    GRANT = 6
    INVITE = 7
    BID = 8
    TASK = 9
    RESULT = 10
    CERT = 11
    REVOKE = 12
    TOKEN = 13
    RECEIPT = 14
    TICKET = 15
    SEEDS = 16
    TRANSCRIPT = 17


BODY_BYTES_MAX: dict[Kind, int] = {
    Kind.RECORD: limits.RECORD_BODY_BYTES_MAX,
    Kind.POINTER: limits.POINTER_BODY_BYTES_MAX,
}


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame taken apart, not yet verified. `raw` is the whole as received."""

    version: int
    kind: Kind
    signer: bytes
    body: bytes
    signature: bytes
    raw: bytes


def header(kind: Kind, body: bytes) -> bytes:
    """The four bytes before a body of ours."""
    assert len(body) <= BODY_BYTES_MAX.get(kind, limits.FRAME_BODY_BYTES_MAX), f"{kind.name} too large"
    return _HEADER.pack(VERSION, kind, len(body))


def parse(raw: bytes) -> Frame:
    """Cheap checks only. Raises PeerError: 'short-frame', 'unknown-version', 'unknown-kind',
    'frame-too-large', 'frame-length', 'no-signer'."""
    frame, rest = take(raw)
    if rest:
        raise PeerError("frame-length", f"{len(rest)} bytes after the frame")
    return frame


def take(data: bytes) -> tuple[Frame, bytes]:
    """One frame off the front of `data`, and the rest. Raises as `parse` does."""
    if len(data) < limits.FRAME_HEADER_BYTES + limits.SIGNATURE_BYTES:
        raise PeerError("short-frame", f"{len(data)} bytes")
    version, number, length = _HEADER.unpack_from(data)
    if version != VERSION:
        raise PeerError("unknown-version", f"frame version {version}; this node speaks {VERSION}")
    try:
        kind = Kind(number)
    except ValueError:
        raise PeerError("unknown-kind", f"frame kind {number}") from None
    if length > BODY_BYTES_MAX.get(kind, limits.FRAME_BODY_BYTES_MAX):
        raise PeerError("frame-too-large", f"{kind.name.lower()} of {length} bytes")
    end = limits.FRAME_HEADER_BYTES + length + limits.SIGNATURE_BYTES
    if len(data) < end:
        raise PeerError("short-frame", f"{len(data)} of {end} bytes")
    body = data[limits.FRAME_HEADER_BYTES : end - limits.SIGNATURE_BYTES]
    raw = data[:end]
    frame = Frame(version, kind, signer_of(body), body, raw[-limits.SIGNATURE_BYTES :], raw)
    return frame, data[end:]


def signer_of(body: bytes) -> bytes:
    """The claimed signer: first element of the body's array. Raises PeerError('no-signer')."""
    start = _SIGNED_BODY.match(body)
    if start is None:
        raise PeerError("no-signer", "a signed body begins with its signer's key")
    return start[1]
