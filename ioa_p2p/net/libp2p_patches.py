"""Cures for py-libp2p 0.8.1: subclasses of its own parts, for this version only.

    sturdy_swarm = SturdySwarm ── SturdyUpgrader ── SturdyYamux (libp2p_pipe.py: the short way for a link's bytes)

What is cured, and how:
- all inbound refused after 250 connections in a lifetime, each leaving a task: own accept path and own cap,
  where a newcomer takes the place of the oldest that carries no link
- a stream nobody reads takes in bytes, and a connection streams, without end: `Intake` ends the connection
- an exception in one stream's handler ends the whole host: every handler is guarded
- a write to a slow reader raises after 5 s and polls every 10 ms: a pipe waits for credit, the session decides
- a small window update, encrypted, for every read, and windows that grow to 16 MiB by themselves: a pipe grants
  1 MiB early, then in large steps
- seven awaits to receive a frame, three locks to write one: a pipe does without
- the auto-connector dials whomever it remembers, whatever the watermarks say: it gets nothing to do
- closing waits for a peer that does not read: `abort_all` closes every socket first
- an IPv6 peer has no remote address: `Pipe.remote` asks the socket
- errors of peers are printed to the user's terminal, some by the root logger: all quiet
- two hosts may listen on one port (SO_REUSEPORT): `check_port_free` asks before
"""
# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# The cures must reach inside; `libp2p.check_version` keeps them from any version they were not written for.

import errno
import logging
import os
import socket
from typing import Any, cast

import trio
from libp2p.abc import INetStream, ISecureConn
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.x25519 import create_new_key_pair as create_noise_key_pair
from libp2p.custom_types import StreamHandlerFn, TProtocol
from libp2p.io.abc import ReadWriteCloser
from libp2p.io.trio import TrioTCPStream
from libp2p.network.auto_connector import AutoConnector
from libp2p.network.config import ConnectionConfig, RetryConfig
from libp2p.network.connection import swarm_connection
from libp2p.network.connection.raw_connection import RawConnection
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.peer.peerstore import PeerStore
from libp2p.protocol_muxer.exceptions import MultiselectClientError, MultiselectError
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE
from libp2p.security.noise.transport import Transport as Noise
from libp2p.security.secure_session import SecureSession
from libp2p.stream_muxer.yamux import yamux
from libp2p.stream_muxer.yamux.yamux import Yamux
from libp2p.transport.exceptions import MuxerUpgradeFailure
from libp2p.transport.tcp.tcp import TCP
from libp2p.transport.upgrader import TransportUpgrader
from multiaddr import Multiaddr

from ioa_p2p.errors import NetError
from ioa_p2p.net.libp2p_pipe import SturdyYamux
from ioa_p2p.net.ports import Endpoint
from ioa_p2p.wire import limits

_ED25519_ID = bytes.fromhex("002408011220")  # identity multihash, 36 B: protobuf {type: Ed25519, key: 32 B}


def check_port_free(endpoint: Endpoint) -> None:
    """Raises NetError('port-in-use' | 'cannot-bind'): libp2p's own listener would share the port in silence."""
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(endpoint)
        except OSError as fault:
            where = f"TCP port {endpoint.port} on {endpoint.host}"
            if fault.errno == errno.EADDRINUSE:
                hint = "stop the other program, or set another port; 0 takes any free one"
                raise NetError("port-in-use", f"{where} is in use", hint) from None
            hint = "check the address and port in the config"
            raise NetError("cannot-bind", f"{where}: {fault.strerror}", hint) from None


def peer_id_of(node: bytes) -> ID:
    return ID(_ED25519_ID + node)


def node_of(peer: ID) -> bytes | None:
    """The Ed25519 key, 32 B, within a peer id; None for another kind of key."""
    raw = peer.to_bytes()
    return raw[len(_ED25519_ID) :] if raw.startswith(_ED25519_ID) and len(raw) == len(_ED25519_ID) + 32 else None


class SturdyUpgrader(TransportUpgrader):
    """Noise and Yamux only; `muxer_opt` would ignore a subclass of Yamux."""

    async def upgrade_connection(self, conn: ISecureConn, peer_id: ID) -> SturdyYamux:
        try:
            await self.muxer_multistream.select_transport(cast(Any, conn))
        except (MultiselectError, MultiselectClientError) as fault:
            raise MuxerUpgradeFailure("failed to negotiate the multiplexer protocol") from fault
        return SturdyYamux(cast(SecureSession, conn), peer_id)


class NoDials(AutoConnector):
    """Whom we dial is the switchboard's affair."""

    async def run_background_task(self, nursery: trio.Nursery) -> None:
        pass

    async def maybe_connect(self) -> None:
        pass

    def record_disconnect(self, peer_id: ID) -> None:
        """Its memory of peers is only pruned when it dials."""


class SturdySwarm(Swarm):
    """Accepts for ever, under its own cap, outlives its handlers, and can go at once."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._inbound: dict[TrioTCPStream, SturdyYamux | None] = {}  # oldest first; no muxer: still shaking hands

    def abort_all(self) -> None:
        """Close every socket, so that nothing waits for a peer when the swarm is stopped."""
        for conns in self.connections.values():
            for conn in conns:
                cast(SturdyYamux, conn.muxed_conn).abort()

    def set_stream_handler(self, stream_handler: StreamHandlerFn) -> None:
        super().set_stream_handler(_guarded(stream_handler))

    async def carry_inbound(self, stream: TrioTCPStream, address: Multiaddr) -> None:
        """One inbound connection that no listener of libp2p's accepted, to its end."""
        try:
            await self._handle_inbound_connection(stream, address)
        finally:
            stream.stream.socket.close()

    async def _handle_inbound_connection(self, read_write_closer: ReadWriteCloser, maddr: Multiaddr) -> None:
        """One inbound connection from its first byte to its end; the listener closes the socket after us."""
        stream = cast(TrioTCPStream, read_write_closer)
        if len(self._inbound) >= limits.LINK_SOCKETS_INBOUND_MAX and not self._evict():
            return
        self._inbound[stream] = None
        try:
            muxer = await self.upgrade_inbound_raw_conn(RawConnection(stream, False), maddr)
            self._inbound[stream] = cast(SturdyYamux, muxer)
            await self._until_closed(cast(SturdyYamux, muxer))
        except Exception:
            return  # a handshake that failed, however, is the peer's affair
        finally:
            self._inbound.pop(stream, None)

    def _evict(self) -> bool:
        """Make room by closing the oldest inbound connection that carries no link. False: all carry one."""
        for stream, muxer in self._inbound.items():
            if muxer is None or not muxer.carries_link:
                stream.stream.socket.close()
                del self._inbound[stream]
                return True
        return False

    async def _until_closed(self, muxer: SturdyYamux) -> None:
        """To the end of a connection, which comes soon for one that carries no link."""
        while not muxer.event_closed.is_set():
            with trio.move_on_after(limits.LINK_BARE_S):
                await muxer.event_closed.wait()
            if not muxer.carries_link:
                muxer.abort()


def _guarded(handler: StreamHandlerFn) -> StreamHandlerFn:
    async def guarded(stream: INetStream) -> None:
        try:
            await handler(stream)
        except Exception:
            await stream.reset()  # a handler of libp2p's own must not end the host either

    return guarded


def _quieten() -> None:
    """Peers' faults are counted, not printed; LIBP2P_DEBUG shows them all the same."""
    quiet = logging.getLogger("libp2p")
    swarm_connection.logging = quiet  # pyright: ignore[reportAttributeAccessIssue]
    if not os.environ.get("LIBP2P_DEBUG"):
        quiet.setLevel(logging.CRITICAL)


def sturdy_swarm(seed: bytes) -> SturdySwarm:
    """A swarm over TCP, Noise and Yamux for the key of this 32 B seed; it never dials by itself."""
    _quieten()
    pair = create_new_key_pair(seed)
    peer = ID.from_pubkey(pair.public_key)
    store = PeerStore()
    store.add_key_pair(peer, pair)
    noise = Noise(pair, noise_privkey=create_noise_key_pair().private_key)
    upgrader = SturdyUpgrader({NOISE: noise}, {TProtocol(yamux.PROTOCOL_ID): Yamux})
    config = ConnectionConfig(
        max_connections=2 * limits.LINK_SOCKETS_INBOUND_MAX,
        high_watermark=2 * limits.LINK_SOCKETS_INBOUND_MAX,
        min_connections=0,
        low_watermark=0,
        max_connections_per_peer=2 * limits.LINKS_PER_PEER_MAX,
        inbound_upgrade_timeout=limits.LINK_HANDSHAKE_S,
        outbound_upgrade_timeout=limits.LINK_HANDSHAKE_S,
        inbound_stream_protocol_negotiation_timeout=limits.LINK_HANDSHAKE_S,
        outbound_stream_protocol_negotiation_timeout=limits.LINK_HANDSHAKE_S,
    )
    swarm = SturdySwarm(peer, store, upgrader, [TCP()], RetryConfig(max_retries=0), config)
    swarm.auto_connector = NoDials(swarm)
    return swarm
