"""What the DHT says: requests and answers in boxed datagrams, digests and cards over links. docs/wire.md, "DHT".

    asker ── Ping FindNode FindRecord FindPointers Store Have DialBack Introduce ──> holder
    asker <── Pong Found                            Stored Had ─────────────────── holder
    neighbour <── Digest, Want, Records, CardWanted, CardGiven ──> neighbour       (LinkKind.DIRECTORY)

An answer carries its request's `id`. Requests whose answers may be large carry padding, so that no answer is
more than three times as large as what asked for it: a forged source address gains nothing.
"""

import ipaddress
from enum import IntEnum
from functools import lru_cache
from typing import Annotated, NamedTuple

from msgspec import Meta

from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.ids import node_from_text, node_text
from ioa_p2p.wire.records import Hash, Sequence, Wall

_CONTACT_SIZES = (38, 50)  # key, IPv4 or IPv6 address, port


class Contact(NamedTuple):
    """A node and one endpoint of it. host: a literal IP address in its usual text form."""

    key: bytes
    host: str
    port: int

    def __str__(self) -> str:
        """`key@host:port`, as seeds are written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{node_text(self.key)}@{host}:{self.port}"


def parse_seed(text: str) -> Contact:
    """`key@host:port` -> Contact; `host` may be a name, for the edge to resolve. Raises UsageError('bad-seed')."""
    key, at, endpoint = text.strip().partition("@")
    host, colon, port = endpoint.rpartition(":")
    if not (at and colon and host and port.isascii() and port.isdigit() and 0 < int(port) <= 0xFFFF):
        raise UsageError("bad-seed", f"not a seed: {text[:120]!r}", "write it as key@host:port")
    return Contact(node_from_text(key), host.strip("[]"), int(port))


@lru_cache(maxsize=limits.PLACES_CACHED)
def pack_endpoint(host: str, port: int) -> bytes:
    """6 B (IPv4) or 18 B (IPv6). Raises UsageError('not-an-address') for a name."""
    try:
        return ipaddress.ip_address(host).packed + port.to_bytes(2)
    except (ValueError, OverflowError):
        raise UsageError("not-an-address", f"not a literal IP address and port: {host!r} {port}") from None


@lru_cache(maxsize=limits.PLACES_CACHED)
def unpack_endpoint(packed: bytes) -> tuple[str, int]:
    """Inverse of `pack_endpoint`. Raises PeerError('bad-endpoint') for what nobody can be sent to, and for an IPv4
    address dressed up as an IPv6 one, which would count to no subnet of its own."""
    if len(packed) not in (6, 18):
        raise PeerError("bad-endpoint", f"{len(packed)} bytes")
    address, port = ipaddress.ip_address(packed[:-2]), int.from_bytes(packed[-2:])
    mapped = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped
    if not port or address.is_unspecified or address.is_multicast or mapped:
        raise PeerError("bad-endpoint", f"{address} port {port}")
    return str(address), port


def pack_contact(contact: Contact) -> bytes:
    """38 or 50 B. Raises UsageError('not-an-address')."""
    return contact.key + pack_endpoint(contact.host, contact.port)


def unpack_contact(packed: bytes) -> Contact:
    """Inverse of `pack_contact`. Raises PeerError('bad-endpoint')."""
    return Contact(packed[:32], *unpack_endpoint(packed[32:]))


def pack_cursor(start: int, given: int) -> bytes:
    """Where to go on among a key's pointers. start: 32 bits, see "Popular keys"; given: how many were so far."""
    return start.to_bytes(4) + min(given, 0xFFFF).to_bytes(2)


def unpack_cursor(cursor: bytes) -> tuple[int, int]:
    """Inverse of `pack_cursor`. Raises PeerError('bad-cursor')."""
    if len(cursor) != limits.POINTERS_CURSOR_BYTES:
        raise PeerError("bad-cursor", f"{len(cursor)} bytes")
    return int.from_bytes(cursor[:4]), int.from_bytes(cursor[4:])


RequestId = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
Key = Annotated[bytes, Meta(min_length=limits.DHT_ID_BYTES, max_length=limits.DHT_ID_BYTES)]
Token = Annotated[bytes, Meta(min_length=limits.DHT_TOKEN_BYTES, max_length=limits.DHT_TOKEN_BYTES)]
PackedEndpoint = Annotated[bytes, Meta(min_length=6, max_length=18)]
PackedContact = Annotated[bytes, Meta(min_length=_CONTACT_SIZES[0], max_length=_CONTACT_SIZES[1])]
SignedFrame = Annotated[bytes, Meta(max_length=limits.RECORD_FRAME_BYTES_MAX)]
Cursor = Annotated[bytes, Meta(max_length=limits.POINTERS_CURSOR_BYTES)]
Sketch = Annotated[bytes, Meta(max_length=limits.SKETCH_BYTES)]
Padding = Annotated[bytes, Meta(min_length=limits.DHT_PAD_BYTES, max_length=limits.DHT_PAD_BYTES)]
PADDING = bytes(limits.DHT_PAD_BYTES)


class Verdict(IntEnum):
    """What a holder did with a frame it was given. The first two count as a copy held."""

    KEPT = 0
    KNOWN = 1  # these very bytes were held already
    OLDER = 2  # a newer seq is held
    FULL = 3  # a quota is met and nothing has expired, or the key is crowded and this is not in its sample
    TOKEN = 4  # the token does not prove this address (any more)
    TIME = 5  # issued in the future, or its time is over: one of our clocks is wrong
    BUSY = 6  # you store too much at once, try again later


class Rpc(Message, frozen=True):
    """Common to all datagrams. client: the sender is in nobody's table, for strangers cannot reach it."""

    id: RequestId
    client: bool


class Ping(Rpc, frozen=True, tag=1):
    pass


class Pong(Rpc, frozen=True, tag=2):
    """token: for later Stores. seen: the asker's endpoint as we see it. wall: the time we have, 0 if untold."""

    token: Token
    seen: PackedEndpoint
    wall: Wall = 0


class FindNode(Rpc, frozen=True, tag=3):
    """The nodes closest to `key`."""

    key: Key
    pad: Padding = PADDING


class FindRecord(Rpc, frozen=True, tag=4):
    """The AgentRecord under `key`, and the nodes closest to it."""

    key: Key
    pad: Padding = PADDING


class FindPointers(Rpc, frozen=True, tag=5):
    """Pointers under `key` that follow `cursor` in the holder's order. sketch: of the query, 64 B, or empty; with one
    the nearest come first."""

    key: Key
    cursor: Cursor = b""
    sketch: Sketch = b""
    pad: Padding = PADDING


class Found(Rpc, frozen=True, tag=6):
    """frames: signed frames, contacts: the closest first, both as many as fit one datagram.

    cursor: where to go on, empty at the end. split: the key is crowded here, look at its shards too. sources: of
    each pointer 4 B that stand for where it was stored from. card: of the record, from the agent's own node, if it fits
    too; else empty.
    """

    token: Token
    frames: Annotated[tuple[SignedFrame, ...], Meta(max_length=16)] = ()
    contacts: Annotated[tuple[PackedContact, ...], Meta(max_length=limits.DHT_CONTACTS_MAX)] = ()
    cursor: Cursor = b""
    split: bool = False
    sources: Annotated[bytes, Meta(max_length=16 * limits.POINTER_SOURCE_BYTES)] = b""
    card: Annotated[bytes, Meta(max_length=limits.DATAGRAM_BODY_BYTES_MAX)] = b""


class Store(Rpc, frozen=True, tag=7):
    """Keep this frame. token: from the holder's earlier answer to this very key and endpoint."""

    token: Token
    frame: SignedFrame


class Stored(Rpc, frozen=True, tag=8):
    """verdict: see Verdict. split: the key is crowded here, store in its shards too."""

    verdict: Annotated[int, Meta(ge=0, le=255)]
    split: bool = False


class Have(Rpc, frozen=True, tag=9):
    """Do you hold these frames? hashes: the first 8 B of each frame's BLAKE2b-256, one after another."""

    hashes: Annotated[bytes, Meta(max_length=8 * limits.HAVE_MAX)]


class Had(Rpc, frozen=True, tag=10):
    """One byte for each hash asked about, 1 if held. token: for Stores of what is missing."""

    token: Token
    held: Annotated[bytes, Meta(max_length=limits.HAVE_MAX)]


class DialBack(Rpc, frozen=True, tag=11):
    """Please let a node that I never contacted ping me. Not answered."""


class Introduce(Rpc, frozen=True, tag=12):
    """Please ping this node: it asked for a stranger. Not answered."""

    contact: PackedContact


Request = Ping | FindNode | FindRecord | FindPointers | Store | Have | DialBack | Introduce
PaddedRequest = FindNode | FindRecord | FindPointers
"""Those whose answers may be large."""
Answer = Pong | Found | Stored | Had
Datagram = Request | Answer
"""What a boxed datagram holds: `codec.decode(plaintext, Datagram)`."""


def datagram_bytes(message: Datagram) -> int:
    """Size of the sealed datagram."""
    return limits.DATAGRAM_BYTES_MAX - limits.DATAGRAM_BODY_BYTES_MAX + len(codec.encode(message))


class Digest(Message, frozen=True, tag=1):
    """What the sender holds: (slot, seq), newest first. A slot names one record or pointer, see `dht.store`."""

    entries: Annotated[tuple[tuple[Key, Sequence], ...], Meta(max_length=limits.DIGEST_ENTRIES_MAX)]


class Want(Message, frozen=True, tag=2):
    """Send me these slots."""

    slots: Annotated[tuple[Key, ...], Meta(max_length=limits.DIGEST_ENTRIES_MAX)]


class Records(Message, frozen=True, tag=3):
    """As many of the wanted frames as fit; the rest is wanted again."""

    frames: Annotated[tuple[SignedFrame, ...], Meta(max_length=limits.DIGEST_ENTRIES_MAX)]


class CardWanted(Message, frozen=True, tag=4):
    hash: Hash


class CardGiven(Message, frozen=True, tag=5):
    """card: an encoded records.Card whose BLAKE2b-256 is `hash`; empty: not had here."""

    hash: Hash
    card: Annotated[bytes, Meta(max_length=limits.CARD_BYTES_MAX)]


Directory = Digest | Want | Records | CardWanted | CardGiven
"""What a LinkKind.DIRECTORY body holds: `codec.decode(body, Directory)`."""
