"""Nodes of one network over each implementation of `Links`, for the contract suite."""

import itertools
import random
from dataclasses import dataclass, field

from nacl.signing import SigningKey

from ioa_p2p.net.faults import FaultyLinks, LinkFaults
from ioa_p2p.net.libp2p import Libp2pLinks
from ioa_p2p.net.memory import MemoryHub, MemoryLinks
from ioa_p2p.net.ports import Links, RelayTerms
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import VERSION, Hello
from tests.contracts.inbox import Inbox

MESH = "contract"


def seed_of(number: int) -> bytes:
    return bytes([number]) * 32


def node_of(number: int) -> bytes:
    return bytes(SigningKey(seed_of(number)).verify_key)


@dataclass
class Peer:
    """One node: its key, its links, and what they delivered."""

    node: bytes
    links: Links
    inbox: Inbox = field(default_factory=Inbox)


class Rig:
    """Makes peers of one kind of links and closes them all."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._hub = MemoryHub()
        self._boots = itertools.count(1)
        self._made: list[Peer] = []

    async def peer(self, number: int, *, mesh: str = MESH, port: int = 0, relay: bool = False) -> Peer:
        """Node `number`, open. The same number is the same key; a later one of it has a later boot."""
        hello = Hello(VERSION, network_id(mesh), next(self._boots), "test", ("a",))
        peer = Peer(node_of(number), self._links(number, hello, port, relay))
        self._made.append(peer)
        await peer.links.open(peer.inbox)
        return peer

    async def pair(self) -> tuple[Peer, Peer]:
        """Two peers with a link, dialled by the first."""
        a, b = await self.peer(1), await self.peer(2)
        await join(a, b)
        return a, b

    async def aclose(self) -> None:
        for peer in self._made:
            await peer.links.aclose()

    def _links(self, number: int, hello: Hello, port: int, relay: bool) -> Links:
        dice = random.Random(number)
        if self.kind == "libp2p":
            return Libp2pLinks(seed_of(number), hello, dice, port=port, relay=RelayTerms() if relay else None)
        inner = MemoryLinks(self._hub, node_of(number), hello, dice, f"/memory/{port}" if port else "", relay=relay)
        return FaultyLinks(inner, dice, LinkFaults()) if self.kind == "memory without faults" else inner


async def join(a: Peer, b: Peer) -> None:
    """`a` dials `b`; both have the link."""
    a.links.connect(b.node, b.links.addresses)
    await a.inbox.until(lambda: b.node in a.links.peers)
    await b.inbox.until(lambda: a.node in b.links.peers)


async def reach_through(reached: Peer, *relays: Peer) -> list[str]:
    """`reached` dials the relays and can be reached through them; the addresses."""
    for relay in relays:
        await join(reached, relay)
    reached.links.relay_through({relay.node for relay in relays})
    for relay in relays:
        await reached.inbox.until(lambda relay=relay: reached.inbox.relay_ups(relay.node))
    return [reached.inbox.relay_ups(relay.node)[-1].address for relay in relays]


def port_of(peer: Peer) -> int:
    """The port within "/ip4/127.0.0.1/tcp/4001/p2p/..." or "/memory/4001"."""
    parts = peer.links.addresses[0].split("/")
    return int(parts[parts.index("tcp") + 1] if "tcp" in parts else parts[2])
