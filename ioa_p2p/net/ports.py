"""The two ways bytes move: datagrams (for the DHT) and links (for everything else).

    node ── send(endpoint, bytes) ──> Datagrams ── Datagram batch ──> on_datagrams
    node ── send(peer, kind, body) ─> Links ──── LinkEvent batch ──> on_events

Both are asyncio-facing, opaque to content and never raise for a peer's fault. Implementations: memory, udp,
libp2p, and `faults`, a wrapper that loses, delays, duplicates, reorders and cuts. One contract suite
(tests/contracts/) holds for all.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ioa_p2p.wire import limits
from ioa_p2p.wire.link import Hello


class Endpoint(NamedTuple):
    """Where a datagram goes: a literal IP address and a UDP port."""

    host: str
    port: int


class Datagrams(Protocol):
    """Unreliable datagrams of at most `limits.DATAGRAM_BYTES_MAX` bytes."""

    @property
    def endpoint(self) -> Endpoint:
        """The bound local endpoint; valid after `open`."""
        ...

    @property
    def counters(self) -> dict[str, int]: ...

    async def open(self, on_datagrams: Callable[[Sequence[tuple[Endpoint, bytes]]], None]) -> None:
        """Bind and start delivering batches. Raises NetError('port-in-use') with a hint."""
        ...

    def send(self, to: Endpoint, data: bytes) -> None:
        """Send or drop (counted). Never blocks, never raises for the network's fault."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LinkUp:
    """A link to `peer` stands and both hellos were exchanged. via: the third peer that carries it, if there is one."""

    peer: bytes
    hello: Hello
    address: str
    outbound: bool
    via: bytes | None = None


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The link to `peer` is gone; frames not yet delivered may be lost."""

    peer: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of one peer in order: (kind, body) pairs. Hello, ping and pong never get here."""

    peer: bytes
    frames: Sequence[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class RelayUp:
    """`peer` passes links on to us: whoever dials `address` (multiaddr text, `.../p2p-circuit/...`) gets here."""

    peer: bytes
    address: str


@dataclass(frozen=True, slots=True)
class RelayDown:
    """`peer` does not, or no longer: it refused, its link is gone, or we gave it up."""

    peer: bytes
    reason: str


LinkEvent = LinkUp | LinkDown | Frames | RelayUp | RelayDown


@dataclass(frozen=True, slots=True)
class RelayTerms:
    """What a node that relays gives to others: places for those who wait to be reached, and of one circuit the bytes
    (both ways together) and seconds."""

    reservations_max: int = limits.RELAY_RESERVATIONS_MAX
    circuit_bytes_max: int = limits.RELAY_CIRCUIT_BYTES_MAX
    circuit_s_max: int = limits.RELAY_CIRCUIT_S_MAX


class Links(Protocol):
    """One authenticated, ordered link per neighbour; node keys (32 B) name the peers.

    A link may go through a third peer, who sees sealed bytes only; to both its ends it is a link like any other.
    """

    @property
    def addresses(self) -> tuple[str, ...]:
        """Our own dialable addresses (multiaddr text), relays' not among them; valid after `open`."""
        ...

    @property
    def peers(self) -> frozenset[bytes]:
        """Peers with a link that stands now."""
        ...

    @property
    def counters(self) -> dict[str, int]: ...

    async def open(self, on_events: Callable[[Sequence[LinkEvent]], None]) -> None:
        """Listen and start delivering event batches on the caller's asyncio loop."""
        ...

    def connect(self, peer: bytes, addresses: Sequence[str]) -> None:
        """Want a link to `peer`: dial now, and again with back-off, until `forget`. Idempotent;
        new addresses replace the old ones and cut a running back-off short."""
        ...

    def forget(self, peer: bytes) -> None:
        """Stop wanting `peer`; close its link if we dialled it for that want."""
        ...

    def send(self, peer: bytes, kind: int, body: bytes) -> bool:
        """Queue one frame. False: no link, or the peer's queue is full (counted); never blocks."""
        ...

    def cut(self, peer: bytes, reason: str) -> None:
        """Close the link to a peer that misbehaves (LinkDown with `reason`). A wanted one is dialled again
        after the back-off."""
        ...

    def relay_through(self, peers: Collection[bytes]) -> None:
        """Be reached through these neighbours and no others. Idempotent. Each that is new is asked if its link
        stands, and answers by RelayUp or RelayDown; one that is down is asked again by the next call."""
        ...

    async def aclose(self) -> None:
        """Flush what can be flushed within a second, close all links. Idempotent."""
        ...
