"""The short way for a link's bytes through libp2p's Noise and Yamux: on the wire nothing differs.

    socket ── one read ──> sealed ── decrypt ──> plain ── split ──┬─> Pipe.on_data(bytes), no await between
                                                                  └─> any other frame: libp2p's own loop
    Pipe.write_now ── Yamux header ── encrypt ──> tail ── one write, at once; what is left, when the socket can

Order on the wire is the order of encryption, and that is the order in the tail: no lock is needed for it.
For TCP, Noise and Yamux of the version that `libp2p.check_version` lets pass.
"""
# pyright: reportPrivateUsage=false, reportMissingTypeStubs=false
# The short way must reach inside of libp2p's own classes.

import contextlib
import os
import socket
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import trio
from libp2p.abc import INetStream, ISecureConn
from libp2p.io.trio import TrioTCPStream
from libp2p.peer.id import ID
from libp2p.security.secure_session import SecureSession
from libp2p.stream_muxer.yamux import yamux
from libp2p.stream_muxer.yamux.yamux import Yamux, YamuxStream

from ioa_p2p.net.ports import Endpoint
from ioa_p2p.wire import limits

_HEADER = struct.Struct(yamux.YAMUX_HEADER_FORMAT)
_READ_BYTES = 64 * 1024  # more would be mapped and unmapped by the allocator at every read
_SEALED_BYTES_MAX = 65_535 - 16  # plain bytes of one Noise message
_CHUNK_BYTES_MAX = _SEALED_BYTES_MAX - yamux.HEADER_SIZE


class Circuit(NamedTuple):
    """A connection that a third peer carries."""

    address: str
    relay: ID


class Intake:
    """Stands in for a muxer's secured connection: `read` gives libp2p only the frames that no pipe takes; whatever
    else it asks goes through unchanged."""

    def __init__(self, secured: SecureSession) -> None:
        self.pipes: dict[int, Pipe] = {}
        self.buffers: dict[int, bytearray] = {}  # of libp2p's own streams
        noise = cast(Any, secured.conn)
        stream = cast(TrioTCPStream, noise.read_writer.read_write_closer.stream)
        self.socket = stream.stream.socket
        self.circuit: Circuit | None = getattr(stream, "circuit", None)
        self._secured = secured
        self._decrypt = noise.decrypt
        self._sealed = bytearray()
        self._plain = bytearray(secured._drain(None))
        self._open: Pipe | None = None
        self._open_bytes = 0  # still to come of the frame that belongs to the open pipe

    def fd(self) -> int:
        """To wait on. Raises trio.ClosedResourceError once the socket is closed, by whomever."""
        number = self.socket.fileno()
        if number < 0:
            raise trio.ClosedResourceError
        return number

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
                    self._check(kind, flags, stream_id, length)
                    return header
                if kind == yamux.TYPE_WINDOW_UPDATE:
                    pipe.credited(length)
                elif length:
                    pipe.announced(length)
                    self._open, self._open_bytes = pipe, length
        return b""

    def _check(self, kind: int, flags: int, stream_id: int, length: int) -> None:
        """Bounds that libp2p does not keep. Raises ConnectionAbortedError, which ends its loop."""
        if kind == yamux.TYPE_DATA and length + len(self.buffers.get(stream_id, b"")) > limits.LINK_WINDOW_BYTES:
            raise ConnectionAbortedError("more than a stream may hold")
        if flags & yamux.FLAG_SYN and len(self.buffers) >= limits.LINK_STREAMS_MAX:
            raise ConnectionAbortedError("too many streams")

    def _feed(self, pipe: "Pipe") -> None:
        data = self._cut(self._open_bytes)
        self._open_bytes -= len(data)
        if not self._open_bytes:
            self._open = None
        pipe.on_data(data)

    async def _receive(self) -> bool:
        """One read, then decrypt every whole Noise message. False: the stream has ended."""
        try:
            await trio.lowlevel.wait_readable(self.fd())
            data = os.read(self.socket.fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        except (OSError, trio.ClosedResourceError):
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
    """Yamux behind an `Intake`, writing through a tail; its end is its own, not the host's."""

    def __init__(self, secured: SecureSession, peer: ID) -> None:
        self.intake = Intake(secured)
        super().__init__(cast(ISecureConn, self.intake), peer, secured.is_initiator)
        self.intake.buffers = self.stream_buffers
        self._encrypt = cast(Any, secured.conn).encrypt
        self._tail = bytearray()  # sealed, not yet taken by the socket

    @property
    def carries_link(self) -> bool:
        return bool(self.intake.pipes)

    @property
    def busy(self) -> bool:
        """The socket does not take more for now."""
        return bool(self._tail)

    async def start(self) -> None:
        try:
            await super().start()
        except Exception:
            self.abort()  # whatever it is, it ends this connection only

    def remote(self) -> Endpoint | None:
        """Where the other end's socket is; None when it is gone, or no socket to it is below."""
        if self.intake.circuit:
            return None
        try:
            host, port, *_ = self.intake.socket.getpeername()
        except OSError:
            return None
        return Endpoint(host, port)

    def write_now(self, plain: bytes) -> None:
        """Seal and write as much as the socket takes; `drain` writes the rest."""
        for at in range(0, len(plain), _SEALED_BYTES_MAX):
            message: bytes = self._encrypt(plain[at : at + _SEALED_BYTES_MAX])
            self._tail += len(message).to_bytes(2) + message
        self._write_tail()

    async def drain(self) -> None:
        """Until the socket has taken everything, or is closed."""
        if self._tail:
            async with self._write_lock:
                while self._tail:
                    await trio.lowlevel.wait_writable(self.intake.fd())
                    self._write_tail()

    def shut(self) -> None:
        """Nothing more will be written; the peer reads what is on its way and closes."""
        with contextlib.suppress(OSError):
            self.intake.socket.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        """Close the socket at once; whoever waits on it is told."""
        self._tail.clear()
        self.intake.socket.close()

    def _write_tail(self) -> None:
        try:
            del self._tail[: os.write(self.intake.socket.fileno(), self._tail)]
        except BlockingIOError:
            pass
        except OSError:
            self.abort()

    async def _write_frame(self, data: bytes) -> None:
        """libp2p's own frames."""
        self.write_now(data)
        await self.drain()

    async def _measure_rtt_loop(self) -> None:
        """Links have pings of their own."""

    def rtt(self) -> float:
        """Next to nothing, or every early read would double a stream's window, up to 16 MiB."""
        return 1e-9

    async def _read_data_body(self, length: int) -> bytes:
        with trio.fail_after(yamux._DEFAULT_DATA_FRAME_READ_TIMEOUT):
            return await self.intake.read_body(length)


class Pipe:
    """One long stream with the short way in both directions.

    on_data is called with bytes in order, from the connection's own task, and must not block. A peer that sends
    more than its window is cut. window_bytes: at least libp2p's own 256 KiB.
    """

    def __init__(
        self, stream: INetStream, on_data: Callable[[bytes], None], window_bytes: int = limits.LINK_WINDOW_BYTES
    ) -> None:
        self.on_data = on_data
        self._granted_bytes = window_bytes
        self._stream = cast(YamuxStream, cast(Any, stream).muxed_stream)
        self._muxer = cast(SturdyYamux, self._stream.conn)
        self._window_bytes = 0  # what the peer may still send
        self._uncredited_bytes = 0
        self._credit_came = trio.Event()

    @property
    def circuit(self) -> "Circuit | None":
        """What is below; None: a socket to the peer itself."""
        return self._muxer.intake.circuit

    def remote(self) -> Endpoint | None:
        """Where the peer's socket is; None when it is gone. libp2p itself knows none with IPv6."""
        return self._muxer.remote()

    # -- out ---------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """The socket took everything so far."""
        return not self._muxer.busy

    def write_now(self, data: bytes) -> bytes:
        """Write what the peer's window allows, without waiting; returns what it does not."""
        size = min(len(data), max(self._stream.send_window, 0))
        self._stream.send_window -= size
        frames: list[bytes] = []
        for at in range(0, size, _CHUNK_BYTES_MAX):
            chunk = data[at : min(at + _CHUNK_BYTES_MAX, size)]
            frames += (_HEADER.pack(0, yamux.TYPE_DATA, 0, self._stream.stream_id, len(chunk)), chunk)
        self._muxer.write_now(b"".join(frames))
        return data[size:]

    async def write(self, data: bytes) -> None:
        """All of `data`, waiting for the socket and for credit."""
        await self._muxer.drain()
        while data := self.write_now(data):
            await self._muxer.drain()
            if self._stream.send_window <= 0:
                self._credit_came = trio.Event()
                await self._credit_came.wait()
        await self._muxer.drain()

    def credited(self, length: int) -> None:
        """The peer can take more."""
        self._stream.send_window += length
        self._credit_came.set()

    # -- in ----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the stream over from libp2p, early bytes first, and grant the wide window."""
        self._window_bytes = self._stream.recv_window
        early = bytes(self._muxer.stream_buffers.get(self._stream.stream_id, b""))
        self._muxer.stream_buffers[self._stream.stream_id] = _Diverted(self)
        self._muxer.intake.pipes[self._stream.stream_id] = self
        self._uncredited_bytes = len(early)
        if early:
            self.on_data(early)
        self._uncredited_bytes += max(self._granted_bytes - self._window_bytes - self._uncredited_bytes, 0)
        self.give_credit()

    async def ended(self) -> None:
        """Returns when the peer or the connection has ended the stream."""
        while not (self._stream.recv_closed or self._stream.closed or self._muxer.event_shutting_down.is_set()):
            event = self._muxer.stream_events.get(self._stream.stream_id)
            if event is None:
                break
            await event.wait()
            if self._muxer.stream_events.get(self._stream.stream_id) is event:
                self._muxer.stream_events[self._stream.stream_id] = trio.Event()
        self.release()

    def release(self) -> None:
        """Take no more bytes: what still comes on this stream is libp2p's to drop."""
        self._muxer.intake.pipes.pop(self._stream.stream_id, None)

    def announced(self, length: int) -> None:
        """A data frame of this length begins. Raises ConnectionAbortedError, which ends libp2p's loop, when the
        peer sends more than its window."""
        self._window_bytes -= length
        self._uncredited_bytes += length
        if self._window_bytes < 0:
            self._muxer.abort()
            raise ConnectionAbortedError("more than the window")

    @property
    def credit_due(self) -> bool:
        return self._uncredited_bytes >= self._granted_bytes // 4

    def give_credit(self) -> None:
        """Let the peer send on; called when what came has been taken in."""
        size, self._uncredited_bytes = self._uncredited_bytes, 0
        self._window_bytes += size
        self._grant(size)

    def _grant(self, size: int) -> None:
        self._muxer.write_now(_HEADER.pack(0, yamux.TYPE_WINDOW_UPDATE, 0, self._stream.stream_id, size))

    # -- end ---------------------------------------------------------------------------------------------

    def shut(self) -> None:
        self._muxer.shut()

    def abort(self) -> None:
        self._muxer.abort()


class _Diverted(bytearray):
    """A stream's buffer once a pipe has taken over: a frame that libp2p's own loop had begun to read by then, or one
    that is also the stream's last, goes to the pipe as well."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe

    def extend(self, data: Any) -> None:
        if data:
            self._pipe.announced(len(data))
            self._pipe.on_data(bytes(data))
