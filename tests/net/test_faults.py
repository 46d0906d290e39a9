"""Bad weather on purpose: what is lost, late, twice, out of order or cut, and that a seed replays it."""

import random
from collections.abc import AsyncIterator

import pytest

from ioa_p2p.net.faults import DatagramFaults, FaultyDatagrams, FaultyLinks, LinkFaults
from ioa_p2p.net.memory import MemoryDatagrams, MemoryHub, MemoryLinks
from ioa_p2p.wire.link import Hello, LinkKind
from tests.contracts.inbox import Inbox

A, B = b"a" * 32, b"b" * 32
SIGNED = LinkKind.SIGNED


async def _datagrams(faults: DatagramFaults, seed: int) -> list[int]:
    """Which of 200 numbered datagrams arrived, in order of arrival."""
    hub, inbox = MemoryHub(), Inbox()
    sender = FaultyDatagrams(MemoryDatagrams(hub), random.Random(seed), faults)
    receiver = MemoryDatagrams(hub)
    await sender.open(Inbox())
    await receiver.open(inbox)
    for i in range(200):
        sender.send(receiver.endpoint, bytes([i]))
    sender.faults = DatagramFaults(delay_s=(0.2, 0.2))
    sender.send(receiver.endpoint, bytes([255]))
    await inbox.until(lambda: inbox.items and inbox.items[-1][1] == bytes([255]))
    return [data[0] for _, data in inbox.items[:-1]]


async def test_datagrams_are_lost_as_often_as_asked() -> None:
    got = await _datagrams(DatagramFaults(loss=0.3), seed=1)
    assert 110 <= len(got) <= 170
    assert got == sorted(set(got))


async def test_datagrams_are_duplicated_as_often_as_asked() -> None:
    got = await _datagrams(DatagramFaults(twice=0.5), seed=2)
    assert set(got) == set(range(200))
    assert 70 <= len(got) - 200 <= 130


async def test_delayed_datagrams_overtake_each_other() -> None:
    got = await _datagrams(DatagramFaults(delay_s=(0.0, 0.05)), seed=3)
    assert sorted(got) == list(range(200))
    assert got != sorted(got)


async def test_the_same_seed_gives_the_same_weather() -> None:
    weather = DatagramFaults(loss=0.2, twice=0.2)
    assert await _datagrams(weather, seed=4) == await _datagrams(weather, seed=4)
    assert await _datagrams(weather, seed=4) != await _datagrams(weather, seed=5)


class Storm:
    """A sends through faults to B."""

    def __init__(self) -> None:
        self.hub = MemoryHub()
        self.a = FaultyLinks(self._links(A), random.Random(7), LinkFaults())
        self.b = self._links(B)
        self.at_a, self.at_b = Inbox(), Inbox()

    def _links(self, node: bytes) -> MemoryLinks:
        return MemoryLinks(self.hub, node, Hello(1, bytes(16), 1), random.Random(1))

    async def open(self) -> None:
        await self.a.open(self.at_a)
        await self.b.open(self.at_b)
        self.a.connect(B, self.b.addresses)
        await self.at_a.until(lambda: B in self.a.peers)
        await self.at_b.until(lambda: A in self.b.peers)

    async def send(self, faults: LinkFaults, count: int = 200) -> list[int]:
        """Numbers that arrived, in order; the last one marks the end and is never lost."""
        self.a.faults = faults
        for i in range(count):
            self.a.send(B, SIGNED, bytes([i]))
        self.a.faults = LinkFaults(delay_s=(0.2, 0.2))
        self.a.send(B, SIGNED, bytes([255]))
        await self.at_b.until(lambda: (SIGNED, bytes([255])) in self.at_b.frames(A))
        return [body[0] for _, body in self.at_b.frames(A)][:-1]


@pytest.fixture
async def storm() -> AsyncIterator[Storm]:
    made = Storm()
    await made.open()
    yield made
    await made.a.aclose()
    await made.b.aclose()


async def test_frames_are_lost_and_duplicated(storm: Storm) -> None:
    got = await storm.send(LinkFaults(loss=0.2, twice=0.2))
    assert 130 <= len(set(got)) <= 185
    assert len(got) > len(set(got))


async def test_delayed_frames_keep_their_order(storm: Storm) -> None:
    assert await storm.send(LinkFaults(delay_s=(0.0, 0.05))) == list(range(200))


async def test_a_delay_gives_up_the_order_only_when_asked(storm: Storm) -> None:
    got = await storm.send(LinkFaults(delay_s=(0.0, 0.05), reorder=0.5))
    assert sorted(got) == list(range(200))
    assert got != sorted(got)


async def test_a_cut_is_a_link_down_and_a_wanted_peer_comes_back(storm: Storm) -> None:
    storm.a.faults = LinkFaults(cut=1.0)
    assert storm.a.send(B, SIGNED, b"x")
    await storm.at_a.until(lambda: storm.at_a.downs(B))
    assert storm.at_a.downs(B)[0].reason == "cut"
    await storm.at_b.until(lambda: storm.at_b.downs(A))
    await storm.at_a.until(lambda: len(storm.at_a.ups(B)) == 2)


async def test_without_a_link_a_faulty_port_says_so(storm: Storm) -> None:
    storm.a.faults = LinkFaults(loss=1.0)
    assert not storm.a.send(b"c" * 32, SIGNED, b"x")


# -- the hub's own partitions ----------------------------------------------------------------------------


async def test_a_blocked_peer_falls_silent_and_both_find_each_other_when_the_way_is_free(storm: Storm) -> None:
    storm.hub.block(A, B)
    storm.hub.block(B, A)
    await storm.at_a.until(lambda: storm.at_a.downs(B))
    assert storm.at_a.downs(B)[0].reason == "silent"
    storm.hub.unblock(A, B)
    storm.hub.unblock(B, A)
    await storm.at_a.until(lambda: len(storm.at_a.ups(B)) == 2)


async def test_bytes_wait_behind_a_short_block(storm: Storm) -> None:
    storm.hub.block(A, B)
    storm.a.send(B, SIGNED, b"patience")
    storm.hub.unblock(A, B)
    await storm.at_b.until(lambda: storm.at_b.frames(A) == [(SIGNED, b"patience")])


async def test_a_blocked_datagram_is_lost() -> None:
    hub, inbox = MemoryHub(), Inbox()
    a, b = MemoryDatagrams(hub, A), MemoryDatagrams(hub, B)
    await a.open(Inbox())
    await b.open(inbox)
    hub.block(A, B)
    a.send(b.endpoint, b"lost")
    hub.unblock(A, B)
    a.send(b.endpoint, b"found")
    await inbox.until(lambda: inbox.items)
    assert [data for _, data in inbox.items] == [b"found"]
