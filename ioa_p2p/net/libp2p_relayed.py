"""How we are reached through others, and reach them: circuit relay v2, the two ends of a circuit.

    want({relay}) ── RESERVE over the link's connection, again at half its time ──> RelayUp ... RelayDown
    relay ── stop stream ──> accept ──> socket pair ──> libp2p, as if it had come over TCP
    dial(peer, ".../p2p/RELAY/p2p-circuit/p2p/PEER") ── CONNECT ──> socket pair ──> libp2p

For `Host`, on the trio thread.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import math
from collections.abc import Callable, Collection
from typing import cast

import trio
from libp2p.abc import INetStream
from libp2p.network.connection.raw_connection import RawConnection
from libp2p.network.connection.swarm_connection import SwarmConn
from libp2p.peer.id import ID
from libp2p.relay.circuit_v2.pb.circuit_pb2 import HopMessage, PeerId, Status, StopMessage
from multiaddr import Multiaddr

from ioa_p2p.net.libp2p_circuit import (
    HOP,
    CircuitRefusedError,
    StreamLeg,
    ask,
    circuit_address,
    hear,
    last_words,
    muxer_of,
    open_stream,
    socket_pair,
    splice,
    split_circuit,
    tell,
)
from ioa_p2p.net.libp2p_patches import SturdySwarm, node_of, peer_id_of
from ioa_p2p.net.libp2p_pipe import Circuit
from ioa_p2p.net.ports import RelayDown, RelayUp
from ioa_p2p.wire import limits


class Relayed:
    """Set `accept` as the handler of STOP streams. on_event: told when a relay begins or ceases to serve us."""

    def __init__(self, swarm: SturdySwarm, on_event: Callable[[RelayUp | RelayDown], None]) -> None:
        self.nursery: trio.Nursery
        self._swarm = swarm
        self._on_event = on_event
        self._asked: dict[ID, trio.CancelScope] = {}  # relays asked, or serving us
        self._serving: set[ID] = set()

    # -- being reached ------------------------------------------------------------------------------------

    def want(self, relays: Collection[bytes]) -> None:
        """Be reached through these and no others; who is not serving us yet is asked now."""
        wanted = {peer_id_of(node) for node in relays}
        for peer in self._asked.keys() - wanted:
            self._asked[peer].cancel()
        for peer in wanted - self._asked.keys():
            self._asked[peer] = trio.move_on_after(math.inf)
            self.nursery.start_soon(self._hold, peer, self._asked[peer])

    async def _hold(self, peer: ID, scope: trio.CancelScope) -> None:
        """Have a place at one relay and keep it, until it is refused, the connection ends, or we give it up."""
        reason = "given up"
        with scope:
            reason = await self._keep(peer)
        del self._asked[peer]
        self._serving.discard(peer)
        self._on_event(RelayDown(_node(peer), reason))

    async def _keep(self, peer: ID) -> str:
        """Why it ended."""
        conn = self._connection(peer)
        if conn is None:
            return "no link"
        while True:
            try:
                with trio.fail_after(limits.LINK_HANDSHAKE_S):
                    await self._reserve(conn, peer)
            except CircuitRefusedError as refusal:
                return f"refused: {refusal.status}"
            except Exception as fault:  # libp2p raises what it likes
                return f"failed: {type(fault).__name__}"
            with trio.move_on_after(limits.RELAY_RESERVATION_S / 2):
                await conn.event_closed.wait()
                return "link lost"

    async def _reserve(self, conn: SwarmConn, peer: ID) -> None:
        stream = await open_stream(conn, HOP)
        try:
            await ask(stream, HopMessage(type=HopMessage.RESERVE))
        finally:
            with last_words():
                await stream.reset()
        remote = muxer_of(conn).remote()
        if peer not in self._serving and remote is not None:
            self._serving.add(peer)
            at = Multiaddr(f"/ip{6 if ':' in remote.host else 4}/{remote.host}/tcp/{remote.port}")
            self._on_event(RelayUp(_node(peer), circuit_address(at, peer, self._swarm.get_peer_id())))

    async def accept(self, stream: INetStream) -> None:
        """Handler of STOP streams: somebody dials us through a relay that we asked for it."""
        relay = stream.muxed_conn.peer_id
        with trio.fail_after(limits.LINK_HANDSHAKE_S):
            request = await hear(stream, StopMessage)
            welcome = relay in self._serving and request.type == StopMessage.CONNECT
            status = Status.OK if welcome else Status.PERMISSION_DENIED
            await tell(stream, StopMessage(type=StopMessage.STATUS, status=status))
        if not welcome:
            await stream.close()
            return
        address = f"/p2p/{relay}/p2p-circuit"
        near, far = socket_pair(Circuit(address, relay))
        self.nursery.start_soon(splice, StreamLeg(stream), far)
        await self._swarm.carry_inbound(near, Multiaddr(address))

    # -- reaching others ----------------------------------------------------------------------------------

    async def dial(self, peer: ID, address: str) -> SwarmConn:
        """A connection to `peer` through the relay that the address names. Raises ValueError, CircuitRefusedError,
        and what libp2p raises."""
        where, relay = split_circuit(address)
        conn = self._connection(relay) or cast(SwarmConn, await self._swarm.dial_addr(where, relay))
        stream = await open_stream(conn, HOP)
        try:
            await ask(stream, HopMessage(type=HopMessage.CONNECT, peer=PeerId(id=peer.to_bytes())))
        except BaseException:
            with last_words():
                await stream.reset()
            raise
        near, far = socket_pair(Circuit(address, relay))
        self.nursery.start_soon(splice, StreamLeg(stream), far)
        try:
            return await self._swarm.upgrade_outbound_raw_conn(RawConnection(near, True), peer)
        except BaseException:
            near.stream.socket.close()
            raise

    def _connection(self, peer: ID) -> SwarmConn | None:
        """One that stands, by a socket of its own; that of the link if there is one."""
        conns = [cast(SwarmConn, conn) for conn in self._swarm.connections.get(peer, ())]
        direct = [conn for conn in conns if muxer_of(conn).remote() is not None and not conn.is_closed]
        return max(direct, key=lambda conn: muxer_of(conn).carries_link, default=None)


def _node(peer: ID) -> bytes:
    node = node_of(peer)
    assert node is not None, "made of a node's key"
    return node
