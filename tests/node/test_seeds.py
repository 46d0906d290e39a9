"""node/seeds.py: sources take turns, names are resolved, the DHT hears what changed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from ioa_p2p.errors import StorageError
from ioa_p2p.node import seeds as module
from ioa_p2p.node.config import Seed
from ioa_p2p.node.names import Names
from ioa_p2p.node.seeds import Known, Seeds, merged, resolve
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact

WAIT_S = 30.0


def node(number: int) -> bytes:
    return number.to_bytes(32)


def seed(number: int, host: str = "127.0.0.1", port: int = 4001) -> Seed:
    return Seed(node(number), host, port)


def known(source: str, *seeds: Seed) -> list[Known]:
    return [Known(one, source, (Contact(*one),)) for one in seeds]


class Told:
    """A source that names what a test says, and counts how often it was asked."""

    every_s = 3_600.0
    problem = ""

    def __init__(self, name: str, *seeds: Seed) -> None:
        self.name = name
        self.seeds: Sequence[Seed] = seeds
        self.asked = 0
        self.go = asyncio.Event()
        self.go.set()

    async def look(self) -> Sequence[Seed]:
        await self.go.wait()
        self.asked += 1
        return self.seeds


class Rig:
    """Seeds whose joins are written down."""

    def __init__(self) -> None:
        self.joins: list[tuple[Contact, ...]] = []
        self.heard: set[bytes] = set()
        self.seeds = Seeds(node(0), self.joins.append, lambda: frozenset(self.heard))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await asyncio.sleep(0.001)

    def ports(self) -> list[int]:
        return [contact.port for contact in self.joins[-1]] if self.joins else []


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    yield made
    made.seeds.close()


async def test_sources_are_told_in_their_order_whoever_answers_first(rig: Rig) -> None:
    config, dns = Told("config", seed(1), seed(2)), Told("dns", seed(3))
    config.go.clear()
    rig.seeds.follow([config, dns])
    await rig.until(lambda: len(rig.joins) == 1)
    assert [contact.key for contact in rig.joins[0]] == [node(3)], "the slow source held up the quick one"
    config.go.set()
    await rig.until(lambda: len(rig.joins) == 2)
    assert [contact.key for contact in rig.joins[1]] == [node(1), node(3), node(2)]
    assert [one.source for one in rig.seeds.known] == ["config", "config", "dns"]


async def test_ourselves_are_no_seed_and_a_seed_named_twice_is_one(rig: Rig) -> None:
    rig.seeds.follow([Told("config", seed(0), seed(1), seed(1)), Told("list", seed(1))])
    await rig.until(lambda: rig.seeds.answers is not None and len(rig.seeds.known) == 2)
    assert rig.joins == [(Contact(*seed(1)),)]


async def test_that_nobody_is_known_is_told_once_all_sources_were_asked(rig: Rig) -> None:
    slow = Told("dns")
    slow.go.clear()
    rig.seeds.follow([Told("config"), slow])
    await asyncio.sleep(0.01)
    assert rig.joins == []
    slow.go.set()
    await rig.until(lambda: rig.joins == [()])


async def test_a_source_that_hangs_does_not_keep_the_node_from_starting(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0.01)
    slow = Told("dns")
    slow.go.clear()
    rig.seeds.follow([Told("config"), slow])
    await rig.until(lambda: rig.joins == [()])


async def test_a_woken_source_is_asked_again_and_what_it_drops_is_told(rig: Rig) -> None:
    config, dns = Told("config", seed(1)), Told("dns", seed(2))
    rig.seeds.follow([config, dns])
    await rig.until(lambda: len(rig.joins[-1:]) == 1 and len(rig.joins[-1]) == 2)
    dns.seeds = ()
    rig.seeds.wake("dns")
    await rig.until(lambda: rig.joins[-1] == (Contact(*seed(1)),))
    assert (config.asked, dns.asked) == (1, 2)
    rig.seeds.wake()
    await rig.until(lambda: (config.asked, dns.asked) == (2, 3))


async def test_new_sources_take_the_place_of_the_old_ones(rig: Rig) -> None:
    rig.seeds.follow([Told("config", seed(1)), Told("dns", seed(2))])
    await rig.until(lambda: bool(rig.joins) and len(rig.joins[-1]) == 2)
    rig.seeds.follow([Told("config", seed(3))])
    await rig.until(lambda: rig.joins[-1] == (Contact(*seed(3)),))


async def test_a_silent_seed_is_tried_at_each_of_its_places_in_turn(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_S", 0.005)
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0)
    rig.seeds.follow([Told("config", seed(1, port=1)), Told("list", seed(1, port=2))])
    await rig.until(lambda: {ports[0].port for ports in rig.joins if ports} == {1, 2})
    await rig.until(lambda: rig.ports() == [2])
    rig.heard.add(node(1))
    joins = len(rig.joins)
    await asyncio.sleep(0.05)
    assert len(rig.joins) <= joins + 1, "a seed that answers is left where it is"


async def test_a_name_without_an_address_keeps_its_last_one(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Told("config", seed(1, host="localhost"))
    rig.seeds.follow([source])
    await rig.until(lambda: bool(rig.joins))
    first = rig.joins[-1]
    assert first[0].host in ("127.0.0.1", "::1")

    async def nothing(*_: object) -> tuple[Contact, ...]:
        return ()

    monkeypatch.setattr(module, "resolve", nothing)
    rig.seeds.wake()
    await rig.until(lambda: source.asked == 2)
    assert rig.joins == [first]
    assert rig.seeds.known[0].contacts


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 300, "xn--" + "a" * 80])
async def test_a_name_that_is_none_resolves_to_nobody(host: str) -> None:
    names = Names()
    assert await resolve(seed(1, host=host), names) == ()
    names.close()


async def test_names_that_nobody_answers_for_hold_up_neither_other_sources_nor_the_node(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()

    def look_up(host: str, port: int) -> list[tuple[str, int]]:
        if host.startswith("slow"):
            answered.wait(WAIT_S)
        return [("192.0.2.7", port)]

    monkeypatch.setattr("ioa_p2p.node.names._look_up", look_up)
    slow = Told("dns", *(seed(number, host=f"slow-{number}.example.org") for number in range(1, 30)))
    try:
        rig.seeds.follow([Told("config", seed(99, host="quick.example.org")), slow])
        await rig.until(lambda: bool(rig.joins))
        assert [contact.key for contact in rig.joins[0]] == [node(99)]
        async with asyncio.timeout(WAIT_S):
            assert await asyncio.gather(*(asyncio.to_thread(int) for _ in range(64))) == [0] * 64
        assert not answered.is_set()
    finally:
        answered.set()


async def test_a_source_that_our_disk_fails_once_is_asked_again(rig: Rig) -> None:
    source = Told("list", seed(1))
    look, failures = source.look, [StorageError("unreadable", "the disk fails")]

    async def fails_once() -> Sequence[Seed]:
        if failures:
            raise failures.pop()
        return await look()

    source.look = fails_once
    rig.seeds.follow([source])
    await rig.until(lambda: not failures)
    rig.seeds.wake()
    await rig.until(lambda: bool(rig.joins))
    assert [contact.key for contact in rig.joins[0]] == [node(1)]


def test_a_full_source_does_not_shut_out_the_next() -> None:
    greedy = known("config", *(seed(number) for number in range(1, 200)))
    others = known("list", seed(1_001), seed(1_002))
    places = merged([greedy, others])
    assert len(places) == limits.DHT_SEEDS_MAX
    assert {node(1_001), node(1_002)} < set(places)


def test_places_of_one_seed_are_kept_apart_and_in_order() -> None:
    places = merged([known("config", seed(1, port=1)), known("dns", seed(1, port=2)), known("list", seed(1, port=1))])
    assert {key: [contact.port for contact in options] for key, options in places.items()} == {node(1): [1, 2]}
