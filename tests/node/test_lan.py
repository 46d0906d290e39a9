"""node/lan.py: found by multicast on the loopback interface; what strangers announce is read strictly."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.node import lan as module
from ioa_p2p.node.config import Config, Seed
from ioa_p2p.node.home import Home
from ioa_p2p.node.lan import Lan, Neighbour, Us, is_wanted, neighbour_of
from ioa_p2p.wire import ids, limits
from tests.node.mesh import Mesh
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, fault_of

WAIT_S = 30.0
GOOD: dict[bytes, bytes | None] = {
    b"v": b"1",
    b"n": NETWORK.hex().encode(),
    b"k": ids.node_text(BOB.node).encode(),
    b"p": b"4002",
}


def us(node: bytes = ALICE.node, bind: str = "127.0.0.1", network: bytes = NETWORK, port: int = 4001) -> Us:
    return Us(node, network, bind, port, port + 1, lambda: [bind])


class Street:
    """Nodes that announce themselves on loopback."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def open(self, ours: Us) -> Lan:
        made = Lan(ours, lambda: None)
        await made.open()
        if made.counters["lan-unavailable"]:
            pytest.skip("no multicast on the loopback interface here")
        self._stack.push_async_callback(made.aclose)
        return made


@pytest.fixture
async def street() -> AsyncIterator[Street]:
    async with AsyncExitStack() as stack:
        yield Street(stack)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.01)


# -- on the wire


async def test_two_nodes_of_one_mesh_find_each_other_and_say_goodbye(street: Street) -> None:
    alice, bob = await street.open(us()), await street.open(us(BOB.node, port=5001))
    await until(lambda: bool(alice.neighbours and bob.neighbours))
    assert alice.neighbours == [Neighbour(BOB.node, ("127.0.0.1",), 5001, 5002)]
    assert list(await alice.look()) == [Seed(BOB.node, "127.0.0.1", 5001)]
    await bob.aclose()
    await until(lambda: not alice.neighbours)


async def test_a_node_of_another_mesh_is_passed_over(street: Street) -> None:
    alice = await street.open(us())
    await street.open(us(MALLORY.node, network=OTHER_NETWORK, port=6001))
    await street.open(us(BOB.node, port=5001))
    await until(lambda: bool(alice.neighbours))
    assert [one.node for one in alice.neighbours] == [BOB.node]


async def test_a_moved_node_is_found_at_its_new_port(street: Street) -> None:
    alice = await street.open(us())
    bob = await street.open(us(BOB.node, port=5001))
    await until(lambda: bool(alice.neighbours))
    bob._us = replace(bob._us, port=5003)
    await bob.reopen()
    await until(lambda: [one.port for one in alice.neighbours] == [5003])


async def test_the_mesh_is_not_named_on_the_local_network() -> None:
    info = Lan(us(network=ids.network_id("our secret garden")), lambda: None)._announcement()
    assert b"garden" not in b"".join(key + (value or b"") for key, value in info.properties.items())


async def test_without_multicast_nothing_happens_and_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_S", 0.01)
    alone = Lan(us(bind="192.0.2.77"), lambda: None)
    await alone.open()
    assert list(await alone.look()) == []
    assert alone.counters["lan-unavailable"] == 1
    await alone.aclose()


async def test_whole_nodes_without_a_seed_meet_and_link_on_the_local_network(tmp_path: Path) -> None:
    async with Mesh(tmp_path) as mesh:
        for name in ("left", "right"):
            mesh.make(name)
            mesh.change(name, lan="on")
        left, right = await mesh.start("left"), await mesh.start("right")
        if left.access.counters["lan-unavailable"]:
            pytest.skip("no multicast on the loopback interface here")
        await until(lambda: bool(left.links.peers and right.links.peers and left.dht.contacts))
        assert left.links.peers == {mesh.key("right").node}
        assert [row["source"] for row in left.access.rows()] == ["lan"]
        await mesh.stop("right")
        await until(lambda: not left.access.seeds.known)


# -- what strangers announce


def heard(changes: Mapping[bytes, bytes | None], hosts: tuple[str, ...] = ("127.0.0.1",), port: int = 4001) -> Any:
    return neighbour_of(us(), {**GOOD, **changes}, hosts, port)


def test_a_good_announcement_is_read_in_full() -> None:
    assert heard({}) == Neighbour(BOB.node, ("127.0.0.1",), 4001, 4002)


@pytest.mark.parametrize(
    "changes",
    [{b"v": b"2"}, {b"v": None}, {b"n": OTHER_NETWORK.hex().encode()}, {b"n": b"\xff"},
     {b"k": ids.node_text(ALICE.node).encode()}],
    ids=["version", "no version", "mesh", "no mesh", "ourselves"],
)  # fmt: skip
def test_what_is_not_for_us_is_passed_over(changes: dict[bytes, bytes | None]) -> None:
    assert heard(changes) is None


@pytest.mark.parametrize(
    ("changes", "hosts", "port"),
    [
        ({b"k": b""}, ("127.0.0.1",), 4001),
        ({b"k": b"a" * 52 + b"x"}, ("127.0.0.1",), 4001),
        ({b"k": b"\xff" * 52}, ("127.0.0.1",), 4001),
        ({b"p": b"0"}, ("127.0.0.1",), 4001),
        ({b"p": b"65536"}, ("127.0.0.1",), 4001),
        ({b"p": "²".encode()}, ("127.0.0.1",), 4001),
        ({b"p": None}, ("127.0.0.1",), 4001),
        ({}, ("127.0.0.1",), 0),
        ({}, (), 4001),
        ({}, ("nobody", "0.0.0.0", "224.0.0.1", "::1", "192.168.1.7"), 4001),
    ],
)
def test_a_faulty_announcement_is_refused(
    changes: dict[bytes, bytes | None], hosts: tuple[str, ...], port: int
) -> None:
    assert fault_of(heard, changes, hosts, port) == "lan-bad-record"


def test_only_addresses_that_our_socket_can_send_to_are_used() -> None:
    hosts = ("127.0.0.1", "fe80::1", "::1", "fd00::7", *(f"192.168.1.{number}" for number in range(1, 9)))
    there = neighbour_of(us(bind="0.0.0.0"), GOOD, hosts, 4001)
    assert there is not None
    assert there.hosts == tuple(f"192.168.1.{number}" for number in range(1, limits.LAN_ADDRESSES_MAX + 1))
    there = neighbour_of(us(bind="::"), GOOD, hosts, 4001)
    assert there is not None
    assert there.hosts == ("fd00::7",)


def test_a_crowd_of_strangers_is_bounded_and_the_newest_still_get_in() -> None:
    told: list[int] = []
    alice = Lan(us(), lambda: told.append(1))
    for number in range(3 * limits.LAN_PEERS_MAX):
        alice._hear(f"{number}", Neighbour(number.to_bytes(32), ("127.0.0.1",), 4001, 4002))
    assert len(alice._found) == limits.LAN_PEERS_MAX
    assert len(alice.neighbours) == limits.LAN_SEEDS_MAX
    assert len(told) == 3 * limits.LAN_PEERS_MAX
    alice._hear("0", Neighbour(bytes(32), ("127.0.0.1",), 4001, 4002))
    alice._hear("0", Neighbour(bytes(32), ("127.0.0.1",), 4001, 4002))
    assert len(told) == 3 * limits.LAN_PEERS_MAX + 1, "the same word twice is no news"


@pytest.mark.parametrize(
    ("lan", "profile", "host", "wanted"),
    [
        ("auto", "lan", "127.0.0.1", False),
        ("auto", "lan", "192.168.1.7", True),
        ("auto", "lan", "0.0.0.0", True),
        ("auto", "wan", "0.0.0.0", False),
        ("on", "wan", "127.0.0.1", True),
        ("off", "lan", "0.0.0.0", False),
    ],
)
def test_who_is_seen_on_the_local_network(lan: Any, profile: Any, host: str, wanted: bool, tmp_path: Path) -> None:
    config = Config(home=Home("a", tmp_path, tmp_path), lan=lan, profile=profile, dht_host=host)
    assert is_wanted(config) is wanted
