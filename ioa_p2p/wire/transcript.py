"""A team's transcript as a file: what was decided and said, as it was signed. docs/transcripts.md.

    line of text | Start | Decided, Line, Forked, Absent ... | Piece ... | End        each: length u32be, body

Signed: Seal (Kind.TRANSCRIPT), by the member that exported. All else proves itself, or says what is not there.
"""

from typing import Annotated, Any, Literal, cast

from msgspec import Meta

from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.decision import EntryFrame, TeamId
from ioa_p2p.wire.records import Hash, NodeKey, Wall

MAGIC = b"ioa-p2p-transcript "
VERSION = 1

Network = Annotated[bytes, Meta(min_length=limits.NETWORK_ID_BYTES, max_length=limits.NETWORK_ID_BYTES)]
Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Start(Message, frozen=True, tag="start"):
    """Of which team, under which network all signatures stand; exported by `node` at wall second `at`."""

    network: Network
    team: TeamId
    node: NodeKey
    at: Wall


class Decided(Message, frozen=True, tag="decided"):
    """A decision's frame (`decision.Entry`): entry 0 first, then each after the one before."""

    frame: EntryFrame


class Line(Message, frozen=True, tag="line"):
    """A chat entry's frame (`gossip.Entry`), after the lines that its author had read."""

    frame: EntryFrame


class Forked(Message, frozen=True, tag="forked"):
    """Two chat frames by which an author signed two histories. Before all lines; none of its own from there counts."""

    one: EntryFrame
    other: EntryFrame


class State(Message, frozen=True, tag="state"):
    """Part of a `decision.Snapshot`: after decisions that are absent, what they came to. more: another part follows."""

    data: Annotated[bytes, Meta(max_length=limits.SNAPSHOT_PART_BYTES_MAX)]
    more: bool


class Absent(Message, frozen=True, tag="absent"):
    """What the exporter does not hold: numbers first..last of decisions, of the lines of `name` (a node), or the
    pieces of the blob `name`. Lines so named may turn up later in the file, if others had read them before."""

    what: Literal["decisions", "lines", "blob"]
    name: Annotated[bytes, Meta(max_length=limits.NODE_ID_BYTES)]
    first: Number
    last: Number


class Piece(Message, frozen=True, tag="piece"):
    """One piece of a blob that an outcome names: its manifest (piece -1), then its chunks in order."""

    hash: Hash
    piece: Annotated[int, Meta(ge=-1, lt=limits.BLOB_CHUNKS_MAX)]
    data: Annotated[bytes, Meta(max_length=limits.BLOB_CHUNK_BYTES)]


class End(Message, frozen=True, tag="end"):
    """The frame of the Seal; nothing comes after it."""

    frame: EntryFrame


Record = Start | Decided | Line | Forked | State | Absent | Piece | End


class Seal(Message, frozen=True):
    """`node` exported exactly this: up to decision `index`, which was decided, and so many lines. digest: BLAKE2b-256
    of all bytes of the file before the End record."""

    node: NodeKey
    team: TeamId
    at: Wall
    index: Number
    lines: Number
    digest: Hash


def decode_record(body: bytes) -> Record:
    """Raises PeerError('undecodable')."""
    return cast(Record, codec.decode(body, cast(Any, Record)))
