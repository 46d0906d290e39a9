"""What our own side asks of the DHT machine. `request` numbers are the caller's; the event that answers carries it."""

from dataclasses import dataclass

from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from ioa_p2p.wire.records import Card


@dataclass(frozen=True, slots=True)
class Join:
    """Enter the mesh and stay in it. seeds: all of them, tried for ever; one that a later Join does not name is let go.
    peers: more contacts, tried once."""

    seeds: tuple[Contact, ...] = ()
    peers: tuple[Contact, ...] = ()


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish an agent, or its change. Answered by Published or Queued, and kept alive by re-issues until Withdraw.

    addresses: multiaddr texts of the node's link. endpoint: `ip:port` of its DHT, or empty for what peers see.
    features: what the node speaks. ttl: seconds. With an index model, `index_model` names it, `cells` are its
    centroids nearest to the card, `sketch` (64 B) is the card's embedding made small; else all three are empty.
    """

    card: Card
    addresses: tuple[str, ...] = ()
    endpoint: str = ""
    features: tuple[str, ...] = ()
    cells: tuple[int, ...] = ()
    ttl: int = limits.TTL_S_DEFAULT
    sketch: bytes = b""
    index_model: str = ""


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Say that the agent is gone. Answered by Published or Queued."""

    agent: str


@dataclass(frozen=True, slots=True)
class Leave:
    """We stop: withdraw all agents, and tell link neighbours now. Each agent is answered by Published or Queued."""


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """The newest record of one agent. Answered by RecordFound.

    thorough: for what feeds an assignment: over more disjoint paths, and every holder is heard.
    """

    request: int
    node: bytes
    agent: str
    thorough: bool = False


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """The newest record of one agent from its own node at `endpoint` (packed, as in a pointer), else from holders.

    Answered by RecordFound.
    """

    request: int
    node: bytes
    agent: str
    endpoint: bytes


@dataclass(frozen=True, slots=True)
class SearchPointers:
    """All agents under an index key text ("skill:stats", "out:chart", "word:memory"). Answered by PointersFound.

    thorough: as in SearchRecord. wanted: pointers at most; of more found a fair sample, by sketch the nearest and some
    by lot, and never more than `limits.POINTERS_RANKED_MAX`.
    sketch: of the query, 64 B, made by the index model that a cell key ("cell:MODEL:17") names; it then ends as soon
    as enough holders agree on the nearest, unless thorough. Not used under other keys, where sketches of several
    models lie.
    """

    request: int
    key: str
    thorough: bool = False
    wanted: int = limits.POINTERS_READ_MAX
    sketch: bytes = b""


@dataclass(frozen=True, slots=True)
class FetchCard:
    """The card with this hash from `node`, to whom a link must stand. Answered by CardFound."""

    request: int
    node: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class PutFrame:
    """Put one signed record or pointer frame on its holders, unchanged. Answered by FramePut."""

    request: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class NeighbourUp:
    """A link to `node` stands: exchange digests with it. boot: the id of its start, as its hello said."""

    node: bytes
    boot: int = 0


@dataclass(frozen=True, slots=True)
class NeighbourDown:
    node: bytes


@dataclass(frozen=True, slots=True)
class Moved:
    """Our own addresses changed: a Refresh, and every agent is issued anew with these. addresses, endpoint: as in
    Publish."""

    addresses: tuple[str, ...]
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """Is this node there now? Ask it before you offer an agent of it. Answered by Probed."""

    request: int
    contact: Contact


@dataclass(frozen=True, slots=True)
class Refresh:
    """We woke up or changed networks: blame nobody for silence, look around and publish again at once."""
