"""What every implementation of `Datagrams` must do."""

import asyncio
import random
import socket
import sys
from collections.abc import AsyncIterator, Callable

import pytest

from ioa_p2p.errors import NetError
from ioa_p2p.net.faults import DatagramFaults, FaultyDatagrams
from ioa_p2p.net.memory import MemoryDatagrams, MemoryHub
from ioa_p2p.net.ports import Datagrams, Endpoint
from ioa_p2p.net.udp import UdpDatagrams
from ioa_p2p.wire import limits
from tests.contracts.inbox import Inbox, poll

IP_RECVERR = 11  # linux/in.h; not in the socket module

Make = Callable[..., Datagrams]


def _factory(kind: str) -> Make:
    hub = MemoryHub()
    if kind == "memory":
        return lambda port=0: MemoryDatagrams(hub, port=port)
    if kind == "memory without faults":
        return lambda port=0: FaultyDatagrams(MemoryDatagrams(hub, port=port), random.Random(1), DatagramFaults())
    return lambda port=0: UdpDatagrams("::1" if kind == "udp6" else "127.0.0.1", port)


@pytest.fixture(params=["memory", "memory without faults", "udp", "udp6"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[Datagrams] = []

    def one(port: int = 0) -> Datagrams:
        made.append(_factory_of(port))
        return made[-1]

    _factory_of = _factory(request.param)
    yield one
    for datagrams in made:
        await datagrams.aclose()


async def _pair(make: Make) -> tuple[Datagrams, Inbox, Datagrams, Inbox]:
    a, b, from_b, from_a = make(), make(), Inbox(), Inbox()
    await a.open(from_b)
    await b.open(from_a)
    return a, from_b, b, from_a


async def test_a_datagram_arrives_whole_with_the_endpoint_it_came_from(make: Make) -> None:
    a, from_b, b, from_a = await _pair(make)
    a.send(b.endpoint, b"there")
    await from_a.until(lambda: from_a.items)
    assert from_a.items == [(a.endpoint, b"there")]
    b.send(from_a.items[0][0], b"and back")
    await from_b.until(lambda: from_b.items)
    assert from_b.items == [(b.endpoint, b"and back")]


async def test_datagrams_sent_together_are_handed_over_in_batches(make: Make) -> None:
    a, _, b, from_a = await _pair(make)
    sent = [i.to_bytes(2) for i in range(40)]
    for data in sent:
        a.send(b.endpoint, data)
    await from_a.until(lambda: len(from_a.items) == 40)
    assert sorted(data for _, data in from_a.items) == sent
    assert from_a.batches < 40


async def test_the_largest_datagram_passes_and_one_byte_more_is_counted_not_sent(make: Make) -> None:
    a, _, b, from_a = await _pair(make)
    a.send(b.endpoint, bytes(limits.DATAGRAM_BYTES_MAX + 1))
    a.send(b.endpoint, bytes(limits.DATAGRAM_BYTES_MAX))
    await from_a.until(lambda: from_a.items)
    assert [len(data) for _, data in from_a.items] == [limits.DATAGRAM_BYTES_MAX]
    assert a.counters["send-oversize"] == 1


async def test_sending_where_nobody_listens_does_no_harm(make: Make) -> None:
    a, _, b, from_a = await _pair(make)
    gone = make()
    await gone.open(Inbox())
    nowhere = gone.endpoint
    await gone.aclose()
    for _ in range(20):
        a.send(nowhere, b"anyone?")
        a.send(b.endpoint, b"you?")
        await asyncio.sleep(0)
    await from_a.until(lambda: len(from_a.items) >= 10)


async def test_a_port_in_use_is_refused_with_a_hint(make: Make) -> None:
    a, _, _, _ = await _pair(make)
    with pytest.raises(NetError) as refused:
        await make(a.endpoint.port).open(Inbox())
    assert refused.value.code == "port-in-use"
    assert "port" in refused.value.hint


async def test_after_closing_nothing_is_sent_or_delivered_and_the_port_is_free_again(make: Make) -> None:
    a, _, b, from_a = await _pair(make)
    port = b.endpoint.port
    await b.aclose()
    await b.aclose()
    b.send(a.endpoint, b"ghost")
    assert b.counters["send-closed"] == 1
    successor, heard = make(port), Inbox()
    await successor.open(heard)
    a.send(successor.endpoint, b"new")
    await heard.until(lambda: heard.items)
    assert from_a.items == []


async def test_a_longer_datagram_than_allowed_from_a_stranger_is_dropped_and_counted() -> None:
    udp, heard = UdpDatagrams("127.0.0.1"), Inbox()
    await udp.open(heard)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=tuple(udp.endpoint)
    )
    transport.sendto(bytes(limits.DATAGRAM_BYTES_MAX + 1))
    transport.sendto(b"fits")
    await heard.until(lambda: heard.items)
    transport.close()
    assert [data for _, data in heard.items] == [b"fits"]
    assert udp.counters["receive-oversize"] == 1
    await udp.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such errors need no asking for")
async def test_an_icmp_error_is_counted_and_the_socket_goes_on() -> None:
    udp, heard, gone = UdpDatagrams("127.0.0.1"), Inbox(), UdpDatagrams("127.0.0.1")
    await udp.open(heard)
    await gone.open(Inbox())
    nowhere = gone.endpoint
    await gone.aclose()
    assert udp._socket is not None
    udp._socket.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    udp.send(nowhere, b"anyone?")
    await poll(lambda: udp.counters["receive-econnrefused"])
    udp.send(udp.endpoint, b"myself")
    await heard.until(lambda: heard.items)
    await udp.aclose()


async def test_an_address_that_is_not_ours_cannot_be_bound() -> None:
    with pytest.raises(NetError) as refused:
        await UdpDatagrams("192.0.2.1").open(Inbox())
    assert refused.value.code == "cannot-bind"


async def test_an_endpoint_of_the_other_family_is_a_counted_drop() -> None:
    udp = UdpDatagrams("127.0.0.1")
    await udp.open(Inbox())
    udp.send(Endpoint("::1", 9), b"x")
    assert sum(udp.counters.values()) == 1
    await udp.aclose()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no socket of both families here")
async def test_a_socket_of_both_families_speaks_of_ipv4_peers_as_they_are() -> None:
    both, plain, from_plain, from_both = UdpDatagrams("::"), UdpDatagrams("127.0.0.1"), Inbox(), Inbox()
    await both.open(from_plain)
    await plain.open(from_both)
    try:
        plain.send(Endpoint("127.0.0.1", both.endpoint.port), b"there")
        await from_plain.until(lambda: from_plain.items)
        assert from_plain.items == [(plain.endpoint, b"there")]
        both.send(plain.endpoint, b"and back")
        await from_both.until(lambda: from_both.items)
        assert from_both.items == [(Endpoint("127.0.0.1", both.endpoint.port), b"and back")]
    finally:
        await both.aclose()
        await plain.aclose()
