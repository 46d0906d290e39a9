"""What a node may ask of the gossip machine."""

from dataclasses import dataclass

from ioa_p2p.wire.gossip import Manifest


@dataclass(frozen=True, slots=True)
class OpenChannel:
    """Join a team's channel, or change its members. Survives restarts until CloseChannel.

    members: node keys, ours included. doubted: our disk forgot some of it; see `gossip.doubt`. cuts: who was removed,
    and the last of its lines that counts; remembered, and final.
    Raises UsageError('bad-members').
    """

    team: bytes
    members: tuple[bytes, ...]
    doubted: bool = False
    cuts: tuple[tuple[bytes, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CloseChannel:
    """Leave a channel. What was said stays on disk. Unknown teams are ignored."""

    team: bytes


@dataclass(frozen=True, slots=True)
class ForgetTeam:
    """Leave a channel and delete what its members said, and these blobs."""

    team: bytes
    members: tuple[bytes, ...]
    blobs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Say:
    """Append a line to our chain. kind: what the body is ("text"), <= 24 B. body: <= 60 KiB.

    recalled: we are told our past again after a start, so what our chain held by then is not said twice.
    Raises UsageError: 'unknown-team', 'line-too-large', 'chain-damaged', 'chain-forked', 'talk-full'.
    """

    team: bytes
    kind: str
    body: bytes
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class LinkPeer:
    """The link to `node` went up or down."""

    node: bytes
    up: bool


@dataclass(frozen=True, slots=True)
class Wake:
    """The machine slept or the network changed: compare frontiers at once."""


@dataclass(frozen=True, slots=True)
class SetDecisions:
    """The decision log's head, told to members in the frontier; opaque here, <= 64 B."""

    team: bytes
    head: bytes


@dataclass(frozen=True, slots=True)
class PutBlob:
    """Keep `data` (small: it is held in memory) and serve it to members. `gossip.blobs.name_of(data)` gives its hash.

    Raises UsageError('blob-too-large' | 'blobs-full').
    """

    data: bytes


@dataclass(frozen=True, slots=True)
class PutManifest:
    """Begin to keep a blob (<= 64 MiB) whose chunks follow. Its hash is that of the encoded manifest. Raises
    UsageError as PutBlob."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class PutPiece:
    """One chunk of it; BlobKept tells when it is durable, BlobHave when all are. Raises UsageError('file-changed')."""

    hash: bytes
    piece: int
    data: bytes


@dataclass(frozen=True, slots=True)
class GetBlob:
    """Fetch a blob from any member of `team` that has it. Ends in BlobHave or BlobMissing."""

    team: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class DropBlob:
    """Delete a blob, or stop fetching it."""

    hash: bytes


Command = (
    OpenChannel
    | CloseChannel
    | ForgetTeam
    | Say
    | LinkPeer
    | Wake
    | SetDecisions
    | PutBlob
    | PutManifest
    | PutPiece
    | GetBlob
    | DropBlob
)
