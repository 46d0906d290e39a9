"""What the gossip machine tells its node."""

from dataclasses import dataclass

from ioa_p2p.wire.gossip import Entry


@dataclass(frozen=True, slots=True)
class Said:
    """A line, ours or another's: once, in causal order, durable before it is told.

    late: it was given up for missing (a gap counted as met after 60 s) and turned up all the same.
    """

    team: bytes
    author: bytes
    seq: int
    entry: Entry
    late: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """Nobody who could be reached had an author's lines first..last for 60 s: they count as met from now on. One that
    turns up is told as `Said`, late."""

    team: bytes
    author: bytes
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """Our lines up to `seq` are held by at least `count` of the `of` other members."""

    team: bytes
    seq: int
    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Behind:
    """A member with a live link does not keep up (`behind`), or has caught up again."""

    team: bytes
    node: bytes
    behind: bool


@dataclass(frozen=True, slots=True)
class Forked:
    """An author signed two histories: its chain counts up to `seq` and is frozen there."""

    team: bytes
    author: bytes
    seq: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Something of `peer` was dropped: 'unknown-team', or the rest of a batch after a fault in it. For counters."""

    peer: bytes
    code: str


@dataclass(frozen=True, slots=True)
class BlobHave:
    """The whole blob is on disk and verified: `gossip.blobs.read(rows, hash)`."""

    hash: bytes
    size: int


@dataclass(frozen=True, slots=True)
class BlobMissing:
    """No member that could be reached has the blob. Ask again when others are back."""

    hash: bytes


@dataclass(frozen=True, slots=True)
class BlobKept:
    """A piece that was put is durable: the next may come."""

    hash: bytes
    piece: int
