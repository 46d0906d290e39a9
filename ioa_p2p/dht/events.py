"""What the DHT machine tells our own side."""

from dataclasses import dataclass

from ioa_p2p.wire.records import AgentRecord, Card, Pointer


@dataclass(frozen=True, slots=True)
class Ready:
    """The table is filled, neighbours' directories were compared, and it is known whether strangers reach us.

    peers: good ones in the table; 0 if nobody else is there. reachable: False makes us a client, in no table.
    exchanged: False if no link neighbour was there to compare directories with.
    """

    peers: int
    reachable: bool
    exchanged: bool


@dataclass(frozen=True, slots=True)
class Filled:
    """A search for ourselves found good peers: the table has whom to link to."""


@dataclass(frozen=True, slots=True)
class RecordFound:
    """record: the newest found, perhaps `gone`; None if none. asked, answered: peers. age_s: since it was issued.

    direct: its own node gave it, so that node lives. copies: how many of those who answered gave this very record.
    silent: its own node was asked where it should be, and did not answer.
    """

    request: int
    record: AgentRecord | None
    asked: int
    answered: int
    age_s: float = 0.0
    direct: bool = False
    copies: int = 0
    silent: bool = False


@dataclass(frozen=True, slots=True)
class PointersFound:
    """pointers: one of each agent, by sketch the nearest first, else in no order of merit; holders: of each pointer
    how many had it. asked, answered: peers, once for each part of a popular key. rpcs, size_bytes: what it cost, all
    datagrams both ways.
    """

    request: int
    pointers: tuple[Pointer, ...]
    asked: int
    answered: int
    holders: tuple[int, ...] = ()
    rpcs: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CardFound:
    """card: None if it cannot be had from there."""

    request: int
    card: Card | None


@dataclass(frozen=True, slots=True)
class Heard:
    """A record of somebody else's was proven: stored here, or read on the way. frame: its signed bytes."""

    record: AgentRecord
    frame: bytes


@dataclass(frozen=True, slots=True)
class CardHeard:
    """A card was fetched. card: its encoded bytes, which `hash` names."""

    hash: bytes
    card: bytes


@dataclass(frozen=True, slots=True)
class FramePut:
    """holders: found and given the frame; confirmed: have it."""

    request: int
    ok: bool
    confirmed: int
    holders: int


@dataclass(frozen=True, slots=True)
class Published:
    """The record and all pointers were put. confirmed of holders: the record's. keys: pointers placed well enough.

    cut: index keys beyond the limit, under which the agent is not found. split: keys so popular that their holders
    keep a sample; the agent is in the key's shards too, and placed if its shard has it. waiting: pointers that too few
    holders took, each tried again by itself. gone: it was withdrawn.
    """

    agent: str
    seq: int
    confirmed: int
    holders: int
    keys: int
    cut: tuple[str, ...]
    split: tuple[str, ...] = ()
    waiting: int = 0
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Queued:
    """Not published yet; it is tried again by itself. reason: 'no-peers', 'too-few-holders' or 'clock'."""

    agent: str
    reason: str
    confirmed: int = 0
    holders: int = 0


@dataclass(frozen=True, slots=True)
class ClockDoubted:
    """Most peers have another time, or ours is long gone: nothing is published until it is right. offset_s: what
    to add to our wall clock to have theirs."""

    offset_s: float


@dataclass(frozen=True, slots=True)
class ClockTrusted:
    """Our wall clock agrees with the peers' again; everything is published anew."""


@dataclass(frozen=True, slots=True)
class Probed:
    """there: the node itself answered at that endpoint just now."""

    request: int
    there: bool


@dataclass(frozen=True, slots=True)
class CloneAlarm:
    """Two nodes use one key: two different frames claim one seq, or an older start of a node spoke after a newer one.

    Without an agent, seq is the older start, to which there is a link.
    """

    node: bytes
    agent: str
    seq: int


@dataclass(frozen=True, slots=True)
class PeersChanged:
    """good: entries of the table that answered when last asked."""

    good: int
