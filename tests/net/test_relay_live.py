"""libp2p links through a relay: what the relay sees, what it gives, and a foreign implementation at either place."""
# pyright: reportPrivateUsage=false

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest
import trio
from libp2p import new_host
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.host.basic_host import BasicHost
from libp2p.peer.peerinfo import PeerInfo
from libp2p.relay.circuit_v2.config import RelayConfig, RelayRole
from libp2p.relay.circuit_v2.pb.circuit_pb2 import HopMessage, PeerId, Status
from libp2p.relay.circuit_v2.protocol import CircuitV2Protocol
from libp2p.relay.circuit_v2.transport import CircuitV2Transport
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr

from ioa_p2p.net import libp2p_circuit
from ioa_p2p.net.libp2p import Libp2pLinks
from ioa_p2p.net.libp2p_circuit import HOP, StreamLeg, hear, open_stream, tell
from ioa_p2p.net.libp2p_patches import peer_id_of
from ioa_p2p.net.ports import RelayTerms
from ioa_p2p.wire import limits
from ioa_p2p.wire.link import LinkKind
from tests.contracts.inbox import WAIT_S, poll
from tests.contracts.rig import Peer, Rig, join, node_of, reach_through, seed_of
from tests.net.stranger import HELLO, LINK

SIGNED = LinkKind.SIGNED
SECRET = b"for the other end alone " * 40


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig("libp2p")
    yield made
    await made.aclose()


async def _linked(a: Peer, b: Peer, addresses: list[str]) -> None:
    a.links.connect(b.node, addresses)
    await a.inbox.until(lambda: b.node in a.links.peers)
    await b.inbox.until(lambda: a.node in b.links.peers)


async def test_the_relay_sees_nothing_of_what_it_carries(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bytes]] = []
    receive = StreamLeg.receive

    async def overheard(leg: StreamLeg) -> bytes:
        data = await receive(leg)
        seen.append((threading.current_thread().name, data))
        return data

    monkeypatch.setattr(libp2p_circuit.StreamLeg, "receive", overheard)
    a, b, r = await rig.peer(1), await rig.peer(2), await rig.peer(3, relay=True)
    await _linked(a, b, await reach_through(b, r))
    a.links.send(b.node, SIGNED, SECRET)
    await b.inbox.until(lambda: b.inbox.frames(a.node) == [(SIGNED, SECRET)])
    passed = b"".join(data for _, data in seen)
    assert len(passed) > len(SECRET)
    assert SECRET[:24] not in passed
    assert r.links.counters["relay-bytes"] > len(SECRET)


# -- what a relay gives --------------------------------------------------------------------------------


async def test_a_circuit_that_used_up_its_bytes_is_cut_and_dialled_anew(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.contracts.rig.RelayTerms", lambda: RelayTerms(circuit_bytes_max=200_000))
    a, b, r = await rig.peer(1), await rig.peer(2), await rig.peer(3, relay=True)
    await _linked(a, b, await reach_through(b, r))
    for _ in range(4):
        a.links.send(b.node, SIGNED, bytes(60_000))
    await a.inbox.until(lambda: a.inbox.downs(b.node))
    await a.inbox.until(lambda: len(a.inbox.ups(b.node)) == 2)
    assert r.links.counters["relay-circuits"] == 2


async def test_a_circuit_ends_with_its_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.contracts.rig.RelayTerms", lambda: RelayTerms(circuit_s_max=1))
    a, b, r = await rig.peer(1), await rig.peer(2), await rig.peer(3, relay=True)
    await _linked(a, b, await reach_through(b, r))
    await a.inbox.until(lambda: a.inbox.downs(b.node))


async def test_a_full_relay_refuses_and_a_place_is_free_again_when_its_owner_goes(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.contracts.rig.RelayTerms", lambda: RelayTerms(reservations_max=1))
    b, c, r = await rig.peer(2), await rig.peer(4), await rig.peer(3, relay=True)
    await reach_through(b, r)
    await join(c, r)
    c.links.relay_through({r.node})
    await c.inbox.until(lambda: [down.reason for down in c.inbox.relay_downs(r.node)])
    assert c.inbox.relay_downs(r.node)[0].reason == "refused: RESERVATION_REFUSED"
    await b.links.aclose()
    await r.inbox.until(lambda: r.inbox.downs(b.node))
    c.links.relay_through({r.node})
    await c.inbox.until(lambda: c.inbox.relay_ups(r.node))


async def test_one_address_gets_a_few_of_the_places_only(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RELAY_RESERVATIONS_PER_HOST_MAX", 1)
    b, c, r = await rig.peer(2), await rig.peer(4), await rig.peer(3, relay=True)
    await reach_through(b, r)
    await join(c, r)
    c.links.relay_through({r.node})
    await c.inbox.until(lambda: c.inbox.relay_downs(r.node))
    assert b.inbox.relay_downs(r.node) == []


@pytest.mark.parametrize("bound", ["RELAY_CIRCUITS_MAX", "RELAY_CIRCUITS_PER_PEER_MAX"])
async def test_one_circuit_more_than_there_is_room_for_is_refused(
    rig: Rig, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, bound, 1)
    a, b, c, r = await rig.peer(1), await rig.peer(2), await rig.peer(4), await rig.peer(3, relay=True)
    addresses = await reach_through(b, r)
    await _linked(a, b, addresses)
    c.links.connect(b.node, addresses)
    await poll(lambda: c.links.counters.get("dial-failed RESOURCE_LIMIT_EXCEEDED"))
    await a.links.aclose()
    await c.inbox.until(lambda: b.node in c.links.peers)


async def test_a_reservation_is_renewed_in_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RELAY_RESERVATION_S", 0.6)
    b, r = await rig.peer(2), await rig.peer(3, relay=True)
    await reach_through(b, r)
    await poll(lambda: r.links.counters["relay-reservations"] >= 3)
    assert len(b.inbox.relay_ups(r.node)) == 1
    assert b.inbox.relay_downs(r.node) == []


# -- foreign relays and clients ------------------------------------------------------------------------


async def _as_foreigner(act: Callable[[BasicHost], Awaitable[None]]) -> None:
    """`act` with a host that is py-libp2p's alone."""

    async def run() -> None:
        host = cast(BasicHost, new_host(create_new_key_pair(seed_of(99))))
        async with host.run([Multiaddr("/ip4/127.0.0.1/tcp/0")]):
            with trio.fail_after(WAIT_S):
                await act(host)

    await asyncio.to_thread(trio.run, run)


def _info(peer: Peer) -> PeerInfo:
    where, _, _ = peer.links.addresses[0].partition("/p2p/")
    return PeerInfo(peer_id_of(peer.node), [Multiaddr(where)])


async def test_py_libp2ps_own_client_gets_a_place_here_and_reaches_others_but_not_over_two_relays(rig: Rig) -> None:
    b, r = await rig.peer(2, relay=True), await rig.peer(3, relay=True)
    (address,) = await reach_through(b, r)

    async def act(host: BasicHost) -> None:
        protocol = CircuitV2Protocol(host, allow_hop=False)
        transport = CircuitV2Transport(host, protocol, RelayConfig(roles=RelayRole.STOP | RelayRole.CLIENT))
        async with background_trio_service(protocol):
            await host.connect(_info(r))
            stream = await host.new_stream(peer_id_of(r.node), [HOP])
            assert await transport._make_reservation(stream, peer_id_of(r.node))
            conn: Any = await transport.dial(Multiaddr(address))
            assert conn.muxed_conn.peer_id == peer_id_of(b.node)
            link = await open_stream(conn, LINK)
            await link.write(HELLO)
            assert await link.read(1)
            chained = await open_stream(conn, HOP)
            await tell(chained, HopMessage(type=HopMessage.RESERVE))
            assert (await hear(chained, HopMessage)).status == Status.PERMISSION_DENIED

    await _as_foreigner(act)
    assert [up.via for up in b.inbox.ups(node_of(99))] == [r.node]
    assert r.links.counters["relay-reservations"] >= 2
    assert r.links.counters["relay-circuits"] == 1


async def test_nobody_reserves_in_the_name_of_another(rig: Rig) -> None:
    b, r = await rig.peer(2), await rig.peer(3, relay=True)

    async def act(host: BasicHost) -> None:
        await host.connect(_info(r))
        (conn,) = host.get_network().connections[peer_id_of(r.node)]
        reserve = HopMessage(type=HopMessage.RESERVE, peer=PeerId(id=peer_id_of(b.node).to_bytes()))
        stream = await open_stream(conn, HOP)  # type: ignore[arg-type]
        await tell(stream, reserve)
        assert (await hear(stream, HopMessage)).status == Status.OK
        stream = await open_stream(conn, HOP)  # type: ignore[arg-type]
        await tell(stream, HopMessage(type=HopMessage.CONNECT, peer=PeerId(id=peer_id_of(b.node).to_bytes())))
        assert (await hear(stream, HopMessage)).status == Status.NO_RESERVATION

    await _as_foreigner(act)
    assert r.links.counters["relay-refused NO_RESERVATION"] == 1


@pytest.mark.parametrize(
    "garbage", [b"\xff" * 64, b"\x03\x08\x07\x00", b"\x02\x08\x02"], ids=["size", "type", "status"]
)
async def test_garbage_on_the_relays_protocols_harms_nobody(rig: Rig, garbage: bytes) -> None:
    a, b, r = await rig.peer(1), await rig.peer(2), await rig.peer(3, relay=True)
    addresses = await reach_through(b, r)

    async def act(host: BasicHost) -> None:
        await host.connect(_info(r))
        stream = await host.new_stream(peer_id_of(r.node), [HOP])
        await stream.write(garbage)
        with contextlib.suppress(Exception):
            while await stream.read(100):
                pass

    await _as_foreigner(act)
    await _linked(a, b, addresses)


async def test_a_stranger_that_claims_to_relay_for_us_is_turned_away(rig: Rig) -> None:
    b = await rig.peer(2)

    async def act(host: BasicHost) -> None:
        await host.connect(_info(b))
        stream = await host.new_stream(peer_id_of(b.node), [libp2p_circuit.STOP])
        who = PeerId(id=peer_id_of(node_of(7)).to_bytes())
        await tell(stream, libp2p_circuit.StopMessage(type=libp2p_circuit.StopMessage.CONNECT, peer=who))
        assert (await hear(stream, libp2p_circuit.StopMessage)).status == Status.PERMISSION_DENIED

    await _as_foreigner(act)
    assert isinstance(b.links, Libp2pLinks)
    assert b.links.peers == frozenset()
