"""node/access.py: back into the mesh after sleep or a move; a configuration read again while the node runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.dht import commands
from ioa_p2p.node import neighbourhood as company
from ioa_p2p.node import watch
from ioa_p2p.node.config import Seed, reloaded
from ioa_p2p.node.neighbourhood import Neighbourhood
from ioa_p2p.node.node import Node
from ioa_p2p.node.trust import Level
from ioa_p2p.team.queue import Queue
from tests.node.mesh import HELLO, Mesh
from tests.node.test_node import GOAL, say, up

WAIT_S = 60.0


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    async with Mesh(tmp_path) as made:
        yield made


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.01)


async def pair(mesh: Mesh) -> tuple[Node, Node]:
    """A host with an agent, and a guest that knows it."""
    mesh.make("host", agents=[("hello", HELLO)])
    mesh.make("guest", seeds=("host",))
    await up(mesh, "host", "guest")
    return mesh.nodes["host"], mesh.nodes["guest"]


async def test_a_node_is_linked_to_whom_it_found_by_the_time_it_is_ready(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(company, "LOOK_S", 3_600.0)
    host, guest = await pair(mesh)
    assert guest.links.peers == {host.key.node}


# -- sleep and moves


async def test_a_network_that_changed_makes_the_node_publish_dial_and_look_again(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = ["192.168.1.7"]
    monkeypatch.setattr(watch, "LOOK_S", 0.01)
    monkeypatch.setattr(watch, "local_addresses", lambda: frozenset(ours))
    host, _ = await pair(mesh)
    await until(lambda: "hello" in host.publishing.told)
    before = host.directory.held_records()[0]
    told: list[Any] = []
    for part, name in ((host.dht_driver, "command"), (host.neighbourhood, "redial"), (host.access.seeds, "wake")):
        monkeypatch.setattr(part, name, noted(told, getattr(part, name)))
    ours[0] = "10.0.0.7"
    await until(lambda: ("wake",) in told)
    ours_alone = [one for one in told if not isinstance(one[-1], commands.NeighbourUp | commands.NeighbourDown)]
    assert ours_alone == [("command", commands.Moved(host.links.addresses)), ("redial",), ("wake",)]
    await until(lambda: any(one.seq > before.seq for one in host.directory.held_records()))


def noted(told: list[Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, its name and arguments written down."""

    def do(*arguments: Any) -> Any:
        told.append((call.__name__, *arguments))
        return call(*arguments)

    return do


class Dials:
    """Links that write down what they are told."""

    def __init__(self) -> None:
        self.peers = frozenset[bytes]()
        self.told: list[tuple[str, bytes]] = []
        self.where: dict[bytes, tuple[str, ...]] = {}

    def connect(self, peer: bytes, addresses: Any) -> None:
        self.where[peer] = tuple(addresses)
        self.told.append(("connect", peer))

    def forget(self, peer: bytes) -> None:
        self.told.append(("forget", peer))


def test_a_false_address_from_the_local_network_takes_no_good_one_away() -> None:
    links: Any = Dials()
    neighbourhood = Neighbourhood(links, list)
    neighbourhood.want(b"friend", ("/good",), "team")
    neighbourhood.want(b"friend", ("/false", "/good"), "lan")
    assert links.where == {b"friend": ("/good", "/false")}
    neighbourhood.drop(b"friend", "lan")
    assert links.where == {b"friend": ("/good",)}
    neighbourhood.drop(b"friend", "team")
    assert links.told[-1] == ("forget", b"friend")


def test_dialling_again_touches_only_wanted_links_that_do_not_stand() -> None:
    links: Any = Dials()
    neighbourhood = Neighbourhood(links, list)
    for peer in (b"standing", b"lost", b"dropped"):
        neighbourhood.want(peer, ("/x",), "team")
    neighbourhood.drop(b"dropped", "team")
    links.peers, links.told = frozenset({b"standing"}), []
    neighbourhood.redial()
    assert links.told == [("forget", b"lost"), ("connect", b"lost")]


# -- what people are told


async def test_every_first_contact_is_told_with_its_source_and_whether_it_answers(mesh: Mesh) -> None:
    host, guest = await pair(mesh)
    gone = Seed(bytes(32), "127.0.0.1", 9)
    guest.reload(replace(guest.config, seeds=(*guest.config.seeds, gone)))
    await until(lambda: len(guest.access.seeds.known) == 2 and bool(guest.dht.seeds_heard))
    told, _ = await say(guest, "seeds")
    assert [(row["source"], row["answers"], row["seed"]) for row in told["seeds"]][:2] == [
        ("config", True, str(host.seed)),
        ("config", False, str(gone)),
    ]
    assert told["seeds"][0]["addresses"] == [f"{host.seed.host}:{host.seed.port}"]


async def detail(node: Node, name: str) -> str:
    told, _ = await say(node, "doctor")
    return next(check["detail"] for check in told["checks"] if check["name"] == name)


async def test_a_seed_known_at_two_places_counts_once(mesh: Mesh) -> None:
    host, guest = await pair(mesh)
    again = Seed(host.key.node, "localhost", 4_001)
    guest.reload(replace(guest.config, seeds=(*guest.config.seeds, again)))
    await until(lambda: len(guest.access.seeds.known) == 2 and bool(guest.access.seeds.answering))
    status, _ = await say(guest, "status")
    assert (status["seeds"], status["seeds_answering"]) == (1, 1)
    assert await detail(guest, "seeds") == "1 of 1 answer"


async def test_a_seed_itself_is_not_told_that_none_of_none_answers(mesh: Mesh) -> None:
    host, _ = await pair(mesh)
    await until(lambda: bool(host.dht.contacts))
    assert await detail(host, "seeds") == "none known, and none needed"
    host.reload(replace(host.config, seeds=(Seed(host.key.node, "127.0.0.1", 4_001),)))
    await until(lambda: host.access.seeds.are_us)
    assert await detail(host, "seeds") == "this node is one, and knows no other"


async def test_a_source_that_fails_is_named_in_notes_and_by_the_doctor(mesh: Mesh, tmp_path: Path) -> None:
    host, _ = await pair(mesh)
    (tmp_path / "seeds.list").write_text("no list")
    host.reload(replace(host.config, seed_list_file=str(tmp_path / "seeds.list")))
    await until(lambda: bool(host.access.problems))
    told, _ = await say(host, "doctor")
    assert [check["name"] for check in told["checks"] if not check["ok"]] == ["source"]
    status, _ = await say(host, "status")
    assert ["is no seed list" in note for note in status["notes"]] == [True]


# -- reading the configuration again


async def test_a_new_seed_in_the_configuration_is_joined_without_a_restart(mesh: Mesh) -> None:
    mesh.make("host")
    mesh.make("island")
    await up(mesh, "host", "island")
    host, island = mesh.nodes["host"], mesh.nodes["island"]
    assert island.dht.contacts == []
    island.reload(mesh.change("island", seeds=(Seed(*host.seed),)))
    await until(lambda: host.key.node in {contact.key for contact in island.dht.contacts})
    island.reload(mesh.change("island", seeds=()))
    await until(lambda: island.dht.seeds_heard == set())
    assert island.access.seeds.known == []


async def test_a_node_works_for_whoever_was_allowed_while_it_ran(mesh: Mesh) -> None:
    host, guest = await pair(mesh)
    refused, _ = await say(guest, "ask", goal=GOAL, timeout_s=30)
    assert refused["why"] == "nobody-fits"
    host.reload(mesh.change("host", allow=(guest.key.node,)))
    assert host.trust.standing(guest.key.node, "hello").level is Level.GRANTED
    done, _ = await say(guest, "ask", goal=GOAL, timeout_s=30)
    assert done["outcome"] == "concluded"
    host.reload(mesh.change("host", allow=()))
    assert host.trust.standing(guest.key.node, "hello").level is not Level.GRANTED
    refused, _ = await say(guest, "ask", goal=GOAL, timeout_s=30)
    assert refused["why"] == "nobody-fits"


async def test_what_cannot_change_while_the_node_runs_is_named_and_stays(
    mesh: Mesh, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ioa_p2p")
    host, _ = await pair(mesh)
    host.reload(replace(host.config, mesh="other", dht_port=9, tasks_max=3, agents={}))
    assert "only from the next start: mesh, dht.port, agents" in caplog.text
    assert (host.config.mesh, host.config.dht_port, host.config.tasks_max) == ("test", 4_001, 3)
    assert host.config.agents
    assert [host.queue.take(bytes([number]) * 32) for number in range(4)] == [True, True, True, False]


def test_a_configuration_read_again_unchanged_changes_nothing(tmp_path: Path) -> None:
    config = Mesh(tmp_path).make("only")
    assert reloaded(config, config) == (config, [])


def test_a_smaller_queue_lets_go_of_nothing_it_took() -> None:
    queue = Queue(2, 2)
    assert [queue.take(b"a"), queue.take(b"a")] == [True, True]
    queue.resize(1, 1)
    queue.give(b"a")
    assert not queue.take(b"b")
    queue.give(b"a")
    assert queue.take(b"b")
