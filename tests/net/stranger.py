"""A peer that speaks libp2p and nothing else as it should: opens link streams and does as it likes with them."""
# pyright: reportPrivateUsage=false

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import trio
from libp2p.abc import INetStream
from libp2p.custom_types import TProtocol
from libp2p.host.basic_host import BasicHost
from libp2p.protocol_muxer.multiselect_communicator import MultiselectCommunicator
from multiaddr import Multiaddr

from ioa_p2p.net.libp2p_patches import SturdySwarm, peer_id_of, sturdy_swarm
from ioa_p2p.net.libp2p_pipe import SturdyYamux
from ioa_p2p.net.outbox import frame
from ioa_p2p.wire import codec
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import PROTOCOL, VERSION, Hello, LinkKind
from tests.contracts.rig import MESH, seed_of

LINK = TProtocol(PROTOCOL)
HELLO = frame(LinkKind.HELLO, codec.encode(Hello(VERSION, network_id(MESH), 1, "stranger")))


class Stranger:
    """Within `trio.run`."""

    def __init__(self, swarm: SturdySwarm, host: BasicHost) -> None:
        self._swarm = swarm
        self._host = host

    @property
    def address(self) -> str:
        return str(self._host.get_transport_addrs()[0])

    async def connection(self, node: bytes, address: str) -> Any:
        """A libp2p connection, and nothing over it."""
        return await self._swarm.dial_addr(Multiaddr(address), peer_id_of(node))

    async def stream(self, node: bytes, address: str) -> INetStream:
        """A link stream over a connection of its own, before any hello."""
        conn = await self.connection(node, address)
        stream = await conn.new_stream()
        await self._host.multiselect_client.select_one_of([LINK], MultiselectCommunicator(stream))
        return stream

    def on_stream(self, handler: Callable[[INetStream], Awaitable[None]]) -> None:
        self._host.set_stream_handler(LINK, handler)


@contextlib.asynccontextmanager
async def stranger(number: int) -> AsyncIterator[Stranger]:
    swarm = sturdy_swarm(seed_of(number))
    host = BasicHost(swarm)
    async with host.run([Multiaddr("/ip4/127.0.0.1/tcp/0")]):
        yield Stranger(swarm, host)
        swarm.abort_all()


def hang_up(stream: INetStream, *, reset: bool = False) -> None:
    """Close the socket below: with FIN, or with RST."""
    muxer = stream.muxed_conn
    assert isinstance(muxer, SturdyYamux)
    if reset:
        socket = muxer.intake.socket
        socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    muxer.abort()
