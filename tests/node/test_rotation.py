"""A public mesh whose seeds come and go: three volunteers, two die, the signed list rotates, and all stay one mesh."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands
from ioa_p2p.node import seed_list
from ioa_p2p.node.config import Seed
from ioa_p2p.node.node import Node
from ioa_p2p.wire import ids
from tests.node.mesh import MESH, Mesh

WAIT_S = 60.0
NETWORK = ids.network_id(MESH)
STEWARD = NodeKey(b"s" * 32)
"""Who runs the mesh and signs its lists; no node of it."""

VOLUNTEERS, USERS, FRESH = ("ash", "beech", "cedar"), ("kim", "lee", "max"), ("dogwood", "elder")


class PublicMesh:
    """Nodes that know nothing but the steward's key and one of the lists."""

    def __init__(self, folder: Path) -> None:
        self.mesh = Mesh(folder / "nodes")
        self.folder = folder

    def place(self, name: str) -> Seed:
        return Seed(self.mesh.key(name).node, "127.0.0.1", self.mesh._configs[name].dht_port)

    def make(self, *names: str) -> None:
        for name in names:
            self.mesh.make(name)
            self.mesh.change(name, seed_list_keys=(STEWARD.node,), seed_list_file=str(self.folder / f"{name}.list"))

    def list_of(self, *names: str, number: int) -> bytes:
        return seed_list.sign(STEWARD, NETWORK, [self.place(name) for name in names], number, int(time.time()), 86_400)

    def give(self, frame: bytes, *names: str) -> None:
        """The list is in their file; who runs looks at it now, not ten seconds later."""
        for name in names:
            seed_list.write(self.folder / f"{name}.list", frame)
            if name in self.mesh.stacks:
                self.mesh.nodes[name].access.seeds.wake("list")

    async def start(self, *names: str) -> list[Node]:
        return list(await asyncio.gather(*(self.mesh.start(name) for name in names)))

    @property
    def running(self) -> dict[bytes, Node]:
        return {node.key.node: node for name, node in self.mesh.nodes.items() if name in self.mesh.stacks}

    def is_one(self) -> bool:
        """Everybody can be reached from everybody, along the contacts of living nodes."""
        nodes = self.running
        reached, edge = set[bytes](), {next(iter(nodes))}
        while edge:
            reached |= edge
            edge = {
                contact.key for one in edge for contact in nodes[one].dht.contacts if contact.key in nodes
            } - reached
        return reached == set(nodes)

    def know(self, names: tuple[str, ...], others: tuple[str, ...]) -> bool:
        """Each of `names` has each of `others` (but itself) among its contacts."""
        keys = {self.mesh.key(other).node for other in others}
        nodes = [self.mesh.nodes[name] for name in names]
        return all(keys - {node.key.node} <= {contact.key for contact in node.dht.contacts} for node in nodes)


@pytest.fixture
async def public(tmp_path: Path) -> AsyncIterator[PublicMesh]:
    (tmp_path / "nodes").mkdir()
    made = PublicMesh(tmp_path)
    async with made.mesh:
        made.make(*VOLUNTEERS, *USERS)
        old = made.list_of(*VOLUNTEERS, number=1)
        made.give(old, *VOLUNTEERS, *USERS)
        await made.start(*VOLUNTEERS)
        await made.start(*USERS)
        await until(made.is_one)
        yield made


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.02)


async def test_two_of_three_seeds_die_the_list_rotates_and_everybody_stays(public: PublicMesh) -> None:
    old = public.list_of(*VOLUNTEERS, number=1)
    await public.mesh.stop("ash")
    await public.mesh.stop("beech")
    public.make(*FRESH, "late", "later")
    public.give(old, *FRESH)
    new = public.list_of("cedar", *FRESH, number=2)
    await public.start(*FRESH)
    public.give(new, "cedar", *FRESH, *USERS)

    await until(lambda: public.know((*USERS, "cedar", *FRESH), ("cedar", *FRESH)))
    assert public.is_one()
    seeds = {name: {known.seed for known in public.mesh.nodes[name].access.seeds.known} for name in USERS}
    assert seeds == {name: {public.place(one) for one in ("cedar", *FRESH)} for name in USERS}, "the dead are let go"

    public.give(new, "late")
    public.give(old, "later")
    await public.start("late", "later")
    await until(lambda: all(public.mesh.nodes[name].ready.is_set() for name in ("late", "later")))
    await until(lambda: public.know(("late", "later"), USERS) and public.know(USERS, ("late", "later")))
    assert public.is_one()


async def test_the_old_list_put_back_changes_nothing(public: PublicMesh) -> None:
    kim, old = public.mesh.nodes["kim"], public.list_of(*VOLUNTEERS, number=1)
    public.give(public.list_of("cedar", number=2), "kim")
    await until(lambda: [known.seed for known in kim.access.seeds.known] == [public.place("cedar")])
    public.give(old, "kim")
    await until(lambda: "older" in "".join(kim.access.notes))
    assert [known.seed for known in kim.access.seeds.known] == [public.place("cedar")]


async def test_without_any_seed_left_the_others_go_on_and_a_restarted_one_finds_them(public: PublicMesh) -> None:
    await until(lambda: public.know(USERS, USERS))
    kim = public.mesh.nodes["kim"]
    kim.dht_driver.machine._peers.save()  # every half a minute otherwise
    kim.dht_driver.command(commands.Refresh())
    await until(lambda: len(list(kim.storage.scan("dht/peers"))) >= len(USERS) - 1)
    for name in VOLUNTEERS:
        await public.mesh.stop(name)
    await public.mesh.stop("kim")
    again = await public.mesh.start("kim")
    await until(lambda: public.know(("kim",), ("lee", "max")))
    answering = {row["seed"] for row in again.access.rows() if row["source"] == "remembered" and row["answers"]}
    assert answering == {str(public.place(name)) for name in ("lee", "max")}
    assert public.is_one()
