"""Cures for py-libp2p 0.8.1, all in one file: subclasses of its own parts, for this version only.

    TCP ── one receive ──> sealed ── decrypt ──> plain ── split ──┬─> Pipe of a link: on_data(bytes), no await between
                                                                  └─> all other frames: libp2p's own loop

What is cured, and how:
- all inbound refused after 250 connections in a lifetime, each leaving a task: own accept path and own cap
- an exception in one stream's handler ends the whole host: every handler is guarded
- a write to a slow reader raises after 5 s and polls every 10 ms: a pipe waits for credit; the session decides
- a small window update, encrypted, for every read: a pipe grants a wide window early, then in large steps
- seven awaits a frame on receipt, three locks a write: a pipe does without
- the auto-connector dials whomever it remembers, whatever the watermarks say: it gets nothing to do
- closing waits for a peer that does not read: `Connection.abort` closes the socket first
- `logging.warning` on the root logger prints to the user's terminal: it gets a logger of its own
- two hosts may listen on one port (SO_REUSEPORT): `check_port_free` asks before
"""
# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false, reportMissingTypeStubs=false
# The cures must reach inside; `check_version` keeps them from any version that they were not written for.

import contextlib
import errno
import importlib.metadata
import logging
import socket
import struct
from collections.abc import Callable
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
from libp2p.stream_muxer.yamux.yamux import Yamux, YamuxStream
from libp2p.transport.exceptions import MuxerUpgradeFailure
from libp2p.transport.tcp.tcp import TCP
from libp2p.transport.upgrader import TransportUpgrader
from multiaddr import Multiaddr

from ioa_p2p.errors import NetError
from ioa_p2p.net.ports import Endpoint
from ioa_p2p.wire import limits

VERSION = "0.8.1"
_HEADER = struct.Struct(yamux.YAMUX_HEADER_FORMAT)
_RECEIVE_BYTES = 64 * 1024  # more would be mapped and unmapped by the allocator at every receive
_SEALED_BYTES_MAX = 65_535 - 16  # plain bytes of one Noise message
_CHUNK_BYTES_MAX = _SEALED_BYTES_MAX - yamux.HEADER_SIZE
_SLACK_BYTES = 4 * 1024  # the peer may have credit from the protocol negotiation that we did not count
_ED25519_ID = bytes.fromhex("002408011220")  # identity multihash, 36 B: protobuf {type: Ed25519, key: 32 B}

swarm_connection.logging = logging.getLogger("libp2p.network.connection")


def check_version() -> None:
    """Raises NetError('libp2p-version') for any but the version these cures were written for."""
    found = importlib.metadata.version("libp2p")
    if found != VERSION:
        hint = f"install libp2p=={VERSION}, as the lock files do"
        raise NetError("libp2p-version", f"libp2p {found} is installed; this program needs {VERSION}", hint)


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


class Intake:
    """Stands in for a muxer's secured connection: whatever Yamux writes or asks goes through unchanged, but `read`
    gives it only the frames that no pipe takes."""

    def __init__(self, secured: SecureSession) -> None:
        self.pipes: dict[int, Pipe] = {}
        self._secured = secured
        self._sealed = bytearray()
        self._plain = bytearray(secured._drain(None))
        self._decrypt = cast(Any, secured.conn).decrypt
        self._raw = cast(RawConnection, cast(Any, secured.conn).read_writer.read_write_closer)
        stream = self._raw.stream
        self._receive_some = stream.stream.receive_some if isinstance(stream, TrioTCPStream) else self._raw.read
        self._open: Pipe | None = None
        self._open_bytes = 0  # still to come of the frame that belongs to the open pipe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._secured, name)

    async def read(self, n: int) -> bytes:
        """The next header that libp2p's own loop must see; b"" at the end of the stream."""
        while True:
            if header := self._demultiplex():
                return header
            if not await self._receive():
                return b""

    async def read_body(self, length: int) -> bytes:
        """The body that follows such a header, or what came of it before the end."""
        while len(self._plain) < length and await self._receive():
            pass
        return self._cut(length)

    def _demultiplex(self) -> bytes:
        """Give pipes what is theirs; the first header of another kind is returned, else b""."""
        while self._plain:
            if self._open is not None:
                self._feed(self._open)
            elif len(self._plain) < yamux.HEADER_SIZE:
                break
            else:
                header = self._cut(yamux.HEADER_SIZE)
                _, kind, flags, stream_id, length = _HEADER.unpack(header)
                pipe = None if flags & ~yamux.FLAG_ACK else self.pipes.get(stream_id)
                if pipe is None or kind > yamux.TYPE_WINDOW_UPDATE:
                    return header
                if kind == yamux.TYPE_WINDOW_UPDATE:
                    pipe.credited(length)
                elif length:
                    pipe.announced(length)
                    self._open, self._open_bytes = pipe, length
        return b""

    def _feed(self, pipe: "Pipe") -> None:
        data = self._cut(self._open_bytes)
        self._open_bytes -= len(data)
        if not self._open_bytes:
            self._open = None
        pipe.on_data(data)

    async def _receive(self) -> bool:
        """One receive, then decrypt every whole Noise message. False: the stream has ended."""
        try:
            data = await self._receive_some(_RECEIVE_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        sealed = self._sealed
        sealed += data
        at = 0
        while len(sealed) - at >= 2:
            end = at + 2 + int.from_bytes(sealed[at : at + 2])
            if end > len(sealed):
                break
            self._plain += self._decrypt(bytes(sealed[at + 2 : end]))
            at = end
        del sealed[:at]
        return bool(data)

    def _cut(self, length: int) -> bytes:
        taken = bytes(self._plain[:length])
        del self._plain[:length]
        return taken


class SturdyYamux(Yamux):
    """Yamux behind an `Intake`; its end is its own, not the host's."""

    def __init__(self, secured: SecureSession, peer: ID) -> None:
        self.intake = Intake(secured)
        super().__init__(cast(ISecureConn, self.intake), peer, secured.is_initiator)

    async def start(self) -> None:
        try:
            await super().start()
        except Exception:
            self.abort()

    async def _read_data_body(self, length: int) -> bytes:
        with trio.fail_after(yamux._DEFAULT_DATA_FRAME_READ_TIMEOUT):
            return await self.intake.read_body(length)

    def abort(self) -> None:
        """Close the socket at once; every reader and writer of this connection ends by it."""
        stream = self.intake._raw.stream
        if isinstance(stream, TrioTCPStream):
            stream.stream.socket.close()


class Pipe:
    """One long stream with the short way in both directions.

    on_data is called with bytes in order, from the connection's own task; it must not block. Raises nothing there:
    a peer that sends more than its window is cut.
    """

    def __init__(self, stream: INetStream, on_data: Callable[[bytes], None]) -> None:
        inner = cast(YamuxStream, stream.muxed_stream)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self.on_data = on_data
        self._stream = inner
        self._muxer = cast(SturdyYamux, inner.conn)
        self._secured = self._muxer.intake._secured
        self._window_bytes = limits.LINK_WINDOW_BYTES + _SLACK_BYTES
        self._uncredited_bytes = 0
        self._credit_came = trio.Event()

    async def open(self) -> None:
        """Take the stream over from libp2p, early bytes first, and grant the wide window."""
        early = self._muxer.stream_buffers.get(self._stream.stream_id)
        if early is None:
            raise trio.ClosedResourceError("the stream has ended")
        data = bytes(early)
        early.clear()
        self._muxer.intake.pipes[self._stream.stream_id] = self
        if data:
            self.announced(len(data))
            self.on_data(data)
        await self._grant(limits.LINK_WINDOW_BYTES - yamux.DEFAULT_WINDOW_SIZE)

    async def ended(self) -> None:
        """Returns when the peer or the connection has ended the stream."""
        while not (self._stream.recv_closed or self._stream.closed or self._muxer.event_shutting_down.is_set()):
            event = self._muxer.stream_events.get(self._stream.stream_id)
            if event is None:
                break
            await event.wait()
            if self._muxer.stream_events.get(self._stream.stream_id) is event:
                self._muxer.stream_events[self._stream.stream_id] = trio.Event()
        self._muxer.intake.pipes.pop(self._stream.stream_id, None)

    async def write(self, data: bytes) -> None:
        """Write all of `data`, waiting for credit. Raises trio's Broken- or ClosedResourceError."""
        at = 0
        while at < len(data):
            while self._stream.send_window <= 0:
                self._credit_came = trio.Event()
                await self._credit_came.wait()
            size = min(len(data) - at, self._stream.send_window)
            self._stream.send_window -= size
            await self._write_frames(data[at : at + size])
            at += size

    async def _write_frames(self, data: bytes) -> None:
        """Yamux data frames, each in its own Noise message, in one send."""
        secured = cast(Any, self._secured.conn)
        async with self._muxer._write_lock:
            sealed: list[bytes] = []
            for at in range(0, len(data), _CHUNK_BYTES_MAX):
                chunk = data[at : at + _CHUNK_BYTES_MAX]
                head = _HEADER.pack(0, yamux.TYPE_DATA, 0, self._stream.stream_id, len(chunk))
                message: bytes = secured.encrypt(head + chunk)
                sealed += (len(message).to_bytes(2), message)
            await self._send_all(b"".join(sealed))

    async def _send_all(self, data: bytes) -> None:
        stream = self._muxer.intake._raw.stream
        await (stream.stream.send_all(data) if isinstance(stream, TrioTCPStream) else stream.write(data))

    def announced(self, length: int) -> None:
        """A data frame of this length begins; over the window the peer is cut."""
        self._window_bytes -= length
        self._uncredited_bytes += length
        if self._window_bytes < 0:
            self._muxer.abort()

    def credited(self, length: int) -> None:
        """The peer can take more."""
        self._stream.send_window += length
        self._credit_came.set()

    @property
    def credit_due(self) -> bool:
        return self._uncredited_bytes >= limits.LINK_WINDOW_STEP_BYTES

    async def give_credit(self) -> None:
        """Let the peer send on; called when what came has been taken in."""
        size, self._uncredited_bytes = self._uncredited_bytes, 0
        self._window_bytes += size
        await self._grant(size)

    async def _grant(self, size: int) -> None:
        await self._muxer._write_frame(_HEADER.pack(0, yamux.TYPE_WINDOW_UPDATE, 0, self._stream.stream_id, size))

    def shut(self) -> None:
        """Nothing more will be written; the peer reads what is on its way and closes."""
        stream = self._muxer.intake._raw.stream
        if isinstance(stream, TrioTCPStream):
            with contextlib.suppress(OSError):
                stream.stream.socket.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        self._muxer.abort()


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


class SturdySwarm(Swarm):
    """Accepts for ever, under its own cap, outlives its handlers, and can go at once."""

    def abort_all(self) -> None:
        """Close every socket, so that nothing waits for a peer when the swarm is stopped."""
        for conns in self.connections.values():
            for conn in conns:
                cast(SturdyYamux, conn.muxed_conn).abort()

    def set_stream_handler(self, stream_handler: StreamHandlerFn) -> None:
        super().set_stream_handler(_guarded(stream_handler))

    async def _handle_inbound_connection(self, read_write_closer: ReadWriteCloser, maddr: Multiaddr) -> None:
        """One inbound connection from its first byte to its end; the listener closes the socket after us."""
        if self._inbound_limiter.borrowed_tokens >= limits.LINK_SOCKETS_INBOUND_MAX:
            return
        async with self._inbound_limiter:
            try:
                muxer = await self.upgrade_inbound_raw_conn(RawConnection(read_write_closer, False), maddr)
            except Exception:
                return
            await cast(SturdyYamux, muxer).event_closed.wait()


def _guarded(handler: StreamHandlerFn) -> StreamHandlerFn:
    async def guarded(stream: INetStream) -> None:
        try:
            await handler(stream)
        except Exception:
            await stream.reset()

    return guarded


def sturdy_swarm(seed: bytes) -> SturdySwarm:
    """A swarm over TCP, Noise and Yamux for the key of this 32 B seed; it never dials by itself."""
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
    swarm._inbound_limiter = trio.CapacityLimiter(limits.LINK_SOCKETS_INBOUND_MAX)
    return swarm
