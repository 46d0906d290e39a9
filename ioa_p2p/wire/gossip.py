"""The team channel on the wire: chat entries, and the messages that repair chains and fetch blobs.

docs/wire.md, "Team channel". Entries are signed frames (Kind.LOG) and travel whole, back to back, in link frames
of kind SIGNED; all else is one tagged union in link frames of kind CHANNEL, pieces of blobs of kind BLOB. Bounds:
wire/limits.py.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, cast

from msgspec import Meta

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.link import LinkKind
from ioa_p2p.wire.records import Hash, NodeKey, Sequence, Wall

HASH_SHORT_BYTES = 8
FIRST_PREVIOUS = bytes(32)
"""`previous` of an author's first entry."""

TeamId = Annotated[bytes, Meta(min_length=16, max_length=16)]
EntrySeq = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
ShortHash = Annotated[bytes, Meta(min_length=HASH_SHORT_BYTES, max_length=HASH_SHORT_BYTES)]
Mark = tuple[NodeKey, EntrySeq]
"""(author, seq): that author's chain up to and including seq."""


class Entry(Message, frozen=True):
    """The body of one chat entry, signed by its author `node`.

    epoch: of the team's key; 0 while bodies are plain. seq: 1, 2, 3... without holes. previous: BLAKE2b-256 of the
    author's previous whole frame. seen: how far the author had read the others' chains, only those that moved since
    its previous entry. kind: what the body is ("text"). body: <= 60 KiB, untrusted. at: wall seconds.
    """

    node: NodeKey
    team: TeamId
    epoch: Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
    seq: EntrySeq
    previous: Hash
    seen: Annotated[tuple[Mark, ...], Meta(max_length=limits.CHAT_MEMBERS_MAX)]
    kind: Annotated[str, Meta(max_length=limits.CHAT_KIND_BYTES_MAX)]
    body: Annotated[bytes, Meta(max_length=limits.CHAT_BODY_BYTES_MAX)]
    at: Wall


class Entries(Message, frozen=True):
    """Whole signed entry frames, back to back: the body of a SIGNED link frame as it is."""

    raw: bytes


class Head(Message, frozen=True):
    """One member in a frontier: how far its chain is held, and whether it has a live link with the teller.

    seq 0: nothing held. hash: the first 8 B of that entry's hash, zeros for seq 0.
    """

    author: NodeKey
    seq: Sequence
    hash: ShortHash
    linked: bool


class Frontier(Message, frozen=True, tag=1):
    """What the sender holds. Sent on connect, on wake, every 30 s; the receiver pulls what it misses.

    decisions: head of the decision log, opaque here.
    """

    team: TeamId
    heads: Annotated[tuple[Head, ...], Meta(max_length=limits.CHAT_MEMBERS_MAX)]
    decisions: Annotated[bytes, Meta(max_length=64)] = b""


class Want(Message, frozen=True, tag=2):
    """Send me that author's entries first..last. Answered by Entries, then one Served."""

    team: TeamId
    author: NodeKey
    first: EntrySeq
    last: EntrySeq


class Held(Message, frozen=True, tag=3):
    """Marks (member, author, seq): `member` holds that author's chain up to seq.

    Acknowledgement and digest in one. Marks of members other than the sender are hearsay,
    passed towards the author where two members have no link; they count in "delivered", nowhere else.
    """

    team: TeamId
    marks: Annotated[tuple[tuple[NodeKey, NodeKey, EntrySeq], ...], Meta(max_length=limits.CHAT_MARKS_MAX)]


class BlobWant(Message, frozen=True, tag=4):
    """Send me pieces of a blob: -1 its manifest, 0.. its chunks. Each is answered by BlobPiece or BlobNone."""

    team: TeamId
    hash: Hash
    piece: Annotated[int, Meta(ge=-1, lt=limits.BLOB_CHUNKS_MAX)]


class BlobPiece(Message, frozen=True, tag=5):
    """One piece: the encoded Manifest (piece -1) or a chunk."""

    team: TeamId
    hash: Hash
    piece: Annotated[int, Meta(ge=-1, lt=limits.BLOB_CHUNKS_MAX)]
    data: Annotated[bytes, Meta(max_length=limits.BLOB_CHUNK_BYTES)]


class BlobNone(Message, frozen=True, tag=6):
    """The sender does not have that blob."""

    team: TeamId
    hash: Hash


class Served(Message, frozen=True, tag=7):
    """The end of an answer to the Want that began at `first`. held: how far the sender holds that chain."""

    team: TeamId
    author: NodeKey
    first: EntrySeq
    held: Sequence


class Manifest(Message, frozen=True):
    """What a blob's hash covers: a blob is named by the BLAKE2b-256 of its encoded manifest.

    size: bytes of the whole. chunks: BLAKE2b-256 of each chunk of 60 KiB (the last may be shorter).
    """

    size: Annotated[int, Meta(ge=0, le=limits.BLOB_BYTES_MAX)]
    chunks: Annotated[tuple[Hash, ...], Meta(max_length=limits.BLOB_CHUNKS_MAX)]


ChannelMessage = Frontier | Want | Held | BlobWant | BlobPiece | BlobNone | Served
GossipMessage = Entries | ChannelMessage


def pack(message: GossipMessage) -> tuple[LinkKind, bytes]:
    """Kind and body of the link frame that carries `message`."""
    if isinstance(message, Entries):
        return LinkKind.SIGNED, message.raw
    kind = LinkKind.BLOB if isinstance(message, BlobPiece) else LinkKind.CHANNEL
    return kind, codec.encode(message)


def unpack(body: bytes) -> ChannelMessage:
    """Body of a CHANNEL or BLOB link frame. Raises PeerError('undecodable')."""
    return codec.decode(body, cast("type[ChannelMessage]", ChannelMessage))


def is_entries(signed: bytes) -> bool:
    """Whether the body of a SIGNED link frame is for the team channel: `Entries(body)`."""
    return signed[1:2] == bytes([Kind.LOG])


def split(raw: bytes) -> Iterator[bytes]:
    """Whole frames out of `raw`, by their length alone. Raises PeerError('short-frame')."""
    start, end = 0, len(raw)
    if not end:
        raise PeerError("short-frame", "no entry")
    while start < end:
        if end - start < limits.FRAME_HEADER_BYTES:
            raise PeerError("short-frame", f"{end - start} bytes")
        body_bytes = int.from_bytes(raw[start + 2 : start + 4])
        stop = start + limits.FRAME_HEADER_BYTES + body_bytes + limits.SIGNATURE_BYTES
        if stop > end:
            raise PeerError("short-frame", f"{end - start} of {stop - start} bytes")
        yield raw[start:stop]
        start = stop


def batches(frames: Iterable[bytes]) -> Iterator[Entries]:
    """Frames packed into as few link frames as their bound allows."""
    batch: list[bytes] = []
    size = 0
    for frame in frames:
        if batch and size + len(frame) > limits.CHAT_BATCH_BYTES_MAX:
            yield Entries(b"".join(batch))
            batch, size = [], 0
        batch.append(frame)
        size += len(frame)
    if batch:
        yield Entries(b"".join(batch))
