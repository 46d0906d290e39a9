"""What we do for others: let them be reached through us. Circuit relay v2, the hop side.

    node behind a router ── RESERVE ──> a place, as long as its connection and for RELAY_RESERVATION_S
    anybody ── CONNECT to it ──> stop stream to it ── both said yes ──> splice, until its bytes or seconds are used up

A place is for the key that the connection proves. What passes is sealed between the two ends; of it we see how much.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import trio
from libp2p.abc import INetStream
from libp2p.network.connection.swarm_connection import SwarmConn
from libp2p.peer.id import ID
from libp2p.relay.circuit_v2.pb.circuit_pb2 import HopMessage, Limit, PeerId, Reservation, Status, StopMessage

from ioa_p2p.net.libp2p_circuit import (
    STOP,
    CircuitRefusedError,
    StreamLeg,
    ask,
    hear,
    muxer_of,
    open_stream,
    splice,
    tell,
)
from ioa_p2p.net.libp2p_patches import node_of
from ioa_p2p.net.ports import RelayTerms
from ioa_p2p.wire import limits


@dataclass(frozen=True, slots=True)
class Place:
    """conn: the connection it was asked for on, and ends with. until: trio's time."""

    conn: SwarmConn
    host: str
    until: float

    @property
    def stands(self) -> bool:
        return trio.current_time() < self.until and not muxer_of(self.conn).event_shutting_down.is_set()


class Relay:
    """Set `serve` as the handler of HOP streams. terms: what others get. counters: shared with the host's."""

    def __init__(self, terms: RelayTerms, counters: Counter[str]) -> None:
        self._terms = terms
        self._counters = counters
        self._places: dict[ID, Place] = {}
        self._circuits: list[tuple[ID, ID]] = []

    async def serve(self, stream: INetStream) -> None:
        """One request, one answer; after a good CONNECT the stream carries the circuit to its end."""
        try:
            with trio.fail_after(limits.LINK_HANDSHAKE_S):
                request = await hear(stream, HopMessage)
            if request.type == HopMessage.RESERVE:
                await self._reserve(stream)
            elif request.type == HopMessage.CONNECT:
                await self._connect(stream, ID(request.peer.id))
            else:
                raise CircuitRefusedError(Status.UNEXPECTED_MESSAGE)
        except CircuitRefusedError as refusal:
            self._counters[f"relay-refused {refusal.status}"] += 1
            await _answer(stream, HopMessage(type=HopMessage.STATUS, status=Status.Value(refusal.status)))

    # -- places -------------------------------------------------------------------------------------------

    async def _reserve(self, stream: INetStream) -> None:
        """Raises CircuitRefusedError."""
        peer, conn = stream.muxed_conn.peer_id, cast(SwarmConn, cast(Any, stream).swarm_conn)
        self._places = {each: place for each, place in self._places.items() if place.stands}
        remote = muxer_of(conn).remote()
        if remote is None or node_of(peer) is None:  # over a circuit, or gone; or a key that is no node's
            raise CircuitRefusedError(Status.PERMISSION_DENIED)
        others = [place for each, place in self._places.items() if each != peer]
        at_host = sum(place.host == remote.host for place in others)
        if len(others) >= self._terms.reservations_max or at_host >= limits.RELAY_RESERVATIONS_PER_HOST_MAX:
            raise CircuitRefusedError(Status.RESERVATION_REFUSED)
        self._places[peer] = Place(conn, remote.host, trio.current_time() + limits.RELAY_RESERVATION_S)
        self._counters["relay-reservations"] += 1
        place = Reservation(expire=int(time.time() + limits.RELAY_RESERVATION_S))
        given = HopMessage(type=HopMessage.STATUS, status=Status.OK, reservation=place, limit=self._limit())
        await _answer(stream, given)

    def _limit(self) -> Limit:
        return Limit(duration=self._terms.circuit_s_max, data=self._terms.circuit_bytes_max)

    # -- circuits -----------------------------------------------------------------------------------------

    async def _connect(self, stream: INetStream, target: ID) -> None:
        """Ask the target, tell the source, and carry what they say. Raises CircuitRefusedError."""
        ends = (stream.muxed_conn.peer_id, target)
        place = self._places.get(target)
        if place is None or not place.stands or ends[0] == target:
            raise CircuitRefusedError(Status.NO_RESERVATION)
        busiest = max(sum(peer in others for others in self._circuits) for peer in ends)
        if len(self._circuits) >= limits.RELAY_CIRCUITS_MAX or busiest >= limits.RELAY_CIRCUITS_PER_PEER_MAX:
            raise CircuitRefusedError(Status.RESOURCE_LIMIT_EXCEEDED)
        self._circuits.append(ends)  # before anything is awaited, or many at once would all find room
        try:
            onward = await self._call(place, ends[0])
            await tell(stream, HopMessage(type=HopMessage.STATUS, status=Status.OK, limit=self._limit()))
            self._counters["relay-circuits"] += 1
            with trio.move_on_after(self._terms.circuit_s_max):
                await splice(StreamLeg(stream), StreamLeg(onward), self._meter())
        finally:
            self._circuits.remove(ends)

    async def _call(self, place: Place, source: ID) -> INetStream:
        """The target's stop stream, once it takes the call. Raises CircuitRefusedError."""
        who = PeerId(id=source.to_bytes())
        try:
            with trio.fail_after(limits.LINK_HANDSHAKE_S):
                onward = await open_stream(place.conn, STOP)
                await ask(onward, StopMessage(type=StopMessage.CONNECT, peer=who, limit=self._limit()))
        except Exception:  # the target's fault, whatever it is
            raise CircuitRefusedError(Status.CONNECTION_FAILED) from None
        return onward

    def _meter(self) -> Callable[[int], bool]:
        """Counts what one circuit passes; False once it is enough."""
        left = self._terms.circuit_bytes_max

        def passed(size: int) -> bool:
            nonlocal left
            left -= size
            self._counters["relay-bytes"] += size
            return left > 0

        return passed


async def _answer(stream: INetStream, message: HopMessage) -> None:
    """The last word on a stream."""
    with trio.move_on_after(limits.LINK_HANDSHAKE_S):
        await tell(stream, message)
        await stream.close()
