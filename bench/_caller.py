"""A caller that links to one node again and again, each time over a new connection."""

from libp2p.custom_types import TProtocol
from libp2p.host.basic_host import BasicHost
from libp2p.protocol_muxer.multiselect_communicator import MultiselectCommunicator
from multiaddr import Multiaddr

from ioa_p2p.net.libp2p_patches import peer_id_of, sturdy_swarm
from ioa_p2p.net.libp2p_pipe import SturdyYamux
from ioa_p2p.net.outbox import frame
from ioa_p2p.wire import codec
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import PROTOCOL, VERSION, Hello, LinkKind

HELLO = frame(LinkKind.HELLO, codec.encode(Hello(VERSION, network_id("bench"), 1, "caller")))


async def call_in_a_row(node: bytes, address: str, count: int) -> int:
    """How many of `count` links, one after another, were answered with a hello."""
    swarm = sturdy_swarm(bytes([255]) * 32)
    host = BasicHost(swarm)
    accepted = 0
    async with host.run([Multiaddr("/ip4/127.0.0.1/tcp/0")]):
        for _ in range(count):
            conn = await swarm.dial_addr(Multiaddr(address), peer_id_of(node))
            stream = await conn.new_stream()
            await host.multiselect_client.select_one_of([TProtocol(PROTOCOL)], MultiselectCommunicator(stream))
            await stream.write(HELLO)
            accepted += bool(await stream.read(1))
            muxer = conn.muxed_conn
            assert isinstance(muxer, SturdyYamux)
            muxer.abort()
    return accepted
