"""Signed frames: the only place that signs and verifies. docs/wire.md, "Signed frames".

    body ── seal(key, network, kind) ──> frame        frame ── frames.parse ──> Frame ── open_frame ──> typed body

The signature covers `"ioa-p2p/" kind 0x00 | version | kind | len(network) | network | length | body`, over the
bytes as received. Each kind has its own domain; `network` keeps one mesh's frames out of another.
"""

from typing import Any, TypeVar

from ioa_p2p.crypto.keys import NodeKey, verify
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames
from ioa_p2p.wire.frames import Frame, Kind

T = TypeVar("T")


def seal(key: NodeKey, network: bytes, kind: Kind, body: Any) -> bytes:
    """Encode, sign and frame a body of ours. Its first field must be our own key."""
    encoded = codec.encode(body)
    head = frames.header(kind, encoded)
    assert frames.signer_of(encoded) == key.node, "a signed body begins with its signer's key"
    return head + encoded + key.sign(_covered(network, kind, head, encoded))


def check(frame: Frame, network: bytes) -> None:
    """Verify the signature of its claimed signer. Raises PeerError('bad-signature')."""
    head = frame.raw[:4]
    verify(frame.signer, _covered(network, frame.kind, head, frame.body), frame.signature)


def open_frame(frame: Frame, network: bytes, kind: Kind, body: type[T]) -> T:
    """Check kind and signature, then decode strictly. Raises PeerError."""
    if frame.kind is not kind:
        raise PeerError("wrong-kind", f"{frame.kind.name.lower()} where {kind.name.lower()} belongs")
    check(frame, network)
    return codec.decode(frame.body, body)


def _covered(network: bytes, kind: Kind, head: bytes, body: bytes) -> bytes:
    domain = b"ioa-p2p/" + kind.name.lower().encode() + b"\x00"
    return b"".join((domain, head[:2], bytes([len(network)]), network, head[2:4], body))
