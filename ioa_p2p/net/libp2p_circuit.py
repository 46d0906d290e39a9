"""A connection through a third peer: libp2p's circuit relay v2, what all three have in common.

    dialler ── hop stream ──> relay ── stop stream ──> target        at the relay:  StreamLeg ══ splice ══ StreamLeg
       └── Noise and Yamux of their own, from end to end ──┘         at both ends:  StreamLeg ══ splice ══ SocketLeg

At its ends a circuit is one half of a socket pair, so that everything above, the short way of libp2p_pipe.py
included, finds a socket as with TCP. Messages: specification `relay/circuit-v2` of libp2p; its protobufs are
py-libp2p's, the rest is not: that one reserves in anybody's name, copies bytes with sleeps, and never frees a place.
"""
# pyright: reportPrivateUsage=false, reportMissingTypeStubs=false, reportUnknownMemberType=false

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

import trio
from libp2p.abc import INetStream
from libp2p.custom_types import TProtocol
from libp2p.io.trio import TrioTCPStream
from libp2p.network.connection.swarm_connection import SwarmConn
from libp2p.peer.id import ID
from libp2p.protocol_muxer.multiselect_client import MultiselectClient
from libp2p.protocol_muxer.multiselect_communicator import MultiselectCommunicator
from libp2p.relay.circuit_v2.pb.circuit_pb2 import HopMessage, Status, StopMessage
from libp2p.utils.varint import encode_varint_prefixed, read_varint_prefixed_bytes_limited
from multiaddr import Multiaddr

from ioa_p2p.net.libp2p_pipe import Circuit, Pipe, SturdyYamux
from ioa_p2p.wire import limits

HOP = TProtocol("/libp2p/circuit/relay/0.2.0/hop")
STOP = TProtocol("/libp2p/circuit/relay/0.2.0/stop")

_READ_BYTES = 64 * 1024
_MARK = "/p2p-circuit"
M = TypeVar("M", HopMessage, StopMessage)


class CircuitRefusedError(ConnectionError):
    """The other side said no. status: the name of its reason, such as 'NO_RESERVATION'."""

    def __init__(self, status: int) -> None:
        self.status = Status.Name(cast(Any, status)) if status in Status.values() else str(status)
        super().__init__(self.status)


# -- addresses ------------------------------------------------------------------------------------------


def is_circuit(address: str) -> bool:
    return _MARK in address


def circuit_address(relay_at: Multiaddr, relay: ID, own: ID) -> str:
    """Where we are reached through `relay`, whose socket is at `relay_at`."""
    return f"{relay_at}/p2p/{relay}{_MARK}/p2p/{own}"


def split_circuit(address: str) -> tuple[Multiaddr, ID]:
    """Where the relay is to be dialled, and who it is. Raises ValueError."""
    before, _, _ = address.partition(_MARK)
    where, found, relay = before.partition("/p2p/")
    if not (where and found and relay):
        raise ValueError(f"no relay in {address!r}")
    return Multiaddr(where), ID.from_string(relay)


# -- messages -------------------------------------------------------------------------------------------


async def open_stream(conn: SwarmConn, protocol: TProtocol) -> INetStream:
    """A stream of this protocol over a connection that stands."""
    stream = cast(INetStream, await conn.new_stream())
    talk = MultiselectCommunicator(stream)
    await MultiselectClient().select_one_of([protocol], talk, int(limits.LINK_HANDSHAKE_S))
    return stream


async def tell(stream: INetStream, message: HopMessage | StopMessage) -> None:
    await stream.write(encode_varint_prefixed(message.SerializeToString()))


async def hear(stream: INetStream, kind: type[M]) -> M:
    """One message; whatever follows it stays in the stream. Raises what libp2p raises."""
    return kind.FromString(await read_varint_prefixed_bytes_limited(stream, limits.RELAY_MESSAGE_BYTES_MAX))


async def ask(stream: INetStream, message: M) -> M:
    """A message and its answer. Raises CircuitRefusedError."""
    await tell(stream, message)
    answer = await hear(stream, type(message))
    if answer.status != Status.OK:
        raise CircuitRefusedError(answer.status)
    return answer


def last_words() -> trio.CancelScope:
    """A second to say that something is over, even when cancelled."""
    scope = trio.move_on_after(1)
    scope.shield = True
    return scope


# -- bytes ----------------------------------------------------------------------------------------------


class Leg(Protocol):
    """One end of a splice."""

    async def receive(self) -> bytes:
        """What has come, at least a byte; b"" at the end."""
        ...

    async def send(self, data: bytes) -> None:
        """All of it, waiting for room."""
        ...

    async def close(self) -> None:
        """At once, but what was sent still arrives."""
        ...


class StreamLeg:
    """A stream by the short way. The peer gets new credit only when what came has been passed on."""

    def __init__(self, stream: INetStream) -> None:
        self._stream = stream
        self._pipe = Pipe(stream, self._on_data, limits.RELAY_WINDOW_BYTES)
        self._come = bytearray()
        self._news = trio.Event()
        self._ended = False
        self._pipe.open()

    async def watch(self) -> None:
        """Until the stream ends; to be run beside the splice."""
        await self._pipe.ended()
        self._ended = True
        self._news.set()

    async def receive(self) -> bytes:
        if self._pipe.credit_due:
            self._pipe.give_credit()
        while not self._come and not self._ended:
            self._news = trio.Event()
            await self._news.wait()
        data, self._come = bytes(self._come), bytearray()
        return data

    async def send(self, data: bytes) -> None:
        await self._pipe.write(data)

    async def close(self) -> None:
        self._pipe.release()
        await self._stream.reset()

    def _on_data(self, data: bytes) -> None:
        self._come += data
        self._news.set()


class SocketLeg:
    """The half of a socket pair that faces the circuit."""

    def __init__(self, half: trio.SocketStream) -> None:
        self._half = half

    async def watch(self) -> None:
        """Its end is read, like that of any socket."""

    async def receive(self) -> bytes:
        return await self._half.receive_some(_READ_BYTES)

    async def send(self, data: bytes) -> None:
        await self._half.send_all(data)

    async def close(self) -> None:
        self._half.socket.close()


class CircuitSocket(TrioTCPStream):
    """The half that faces libp2p."""

    def __init__(self, half: trio.SocketStream, circuit: Circuit) -> None:
        super().__init__(half)
        self.circuit = circuit


def socket_pair(circuit: Circuit) -> tuple[CircuitSocket, SocketLeg]:
    """Libp2p's half and the circuit's."""
    near, far = (trio.SocketStream(trio.socket.from_stdlib_socket(half)) for half in socket.socketpair())
    return CircuitSocket(near, circuit), SocketLeg(far)


async def splice(
    one: StreamLeg, other: StreamLeg | SocketLeg, passed: Callable[[int], bool] = lambda size: True
) -> None:
    """Pass bytes both ways until either side ends; then close both. passed(size) says whether more may follow.

    Never raises: whatever breaks, socket or libp2p, ends this circuit only.
    """
    try:
        async with trio.open_nursery() as nursery:
            for leg in (one, other):
                nursery.start_soon(leg.watch)
            for source, sink in ((one, other), (other, one)):
                nursery.start_soon(_pass_on, source, sink, passed, nursery.cancel_scope)
    except* Exception:
        pass
    finally:
        for leg in (one, other):
            with last_words(), suppress(Exception):
                await leg.close()


async def _pass_on(source: Leg, sink: Leg, passed: Callable[[int], bool], scope: trio.CancelScope) -> None:
    """One way. Its end ends the other: a link has no use for half of itself."""
    while data := await source.receive():
        await sink.send(data)
        if not passed(len(data)):
            break
    scope.cancel()


def muxer_of(carrier: INetStream | SwarmConn) -> SturdyYamux:
    """The connection below a stream or a swarm's connection."""
    return cast(SturdyYamux, carrier.muxed_conn)
