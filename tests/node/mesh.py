"""Whole nodes over memory transports, in one process: real machines, storage, agents and control."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.llm.port import Model
from ioa_p2p.net.memory import MemoryDatagrams, MemoryHub, MemoryLinks
from ioa_p2p.node import verbs
from ioa_p2p.node.config import AgentConfig, Config, Seed
from ioa_p2p.node.home import Home
from ioa_p2p.node.neighbourhood import link_address
from ioa_p2p.node.node import Node
from ioa_p2p.wire import ids
from ioa_p2p.wire.link import VERSION, Hello

HELLO = str(Path(__file__).parents[2] / "examples" / "hello" / "hello.py")
MESH = "test"
WAIT_S = 60.0


class Mesh:
    """`async with Mesh(folder) as mesh`: nodes by name; each keeps its folder when it is stopped.

    meaning: what loads the index model of each; none unless told. models: who plans at a node instead of rules.
    """

    def __init__(self, folder: Path, meaning: Callable[[], Any] = lambda: None) -> None:
        self.hub = MemoryHub()
        self.meaning = meaning
        self.models: dict[str, Model] = {}
        self.nodes: dict[str, Node] = {}
        self._folder = folder
        self._configs: dict[str, Config] = {}
        self._seeds: dict[str, tuple[str, ...]] = {}
        self._tried: dict[str, asyncio.Event] = {}  # set once a start has succeeded or failed
        self.stacks: dict[str, AsyncExitStack] = {}

    async def __aenter__(self) -> "Mesh":
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*map(self.stop, list(self.stacks)))

    def make(self, name: str, *, seeds: tuple[str, ...] = (), allow: tuple[str, ...] = (), agents: Any = ()) -> Config:
        """Write down a node, with the key that its folder may have. seeds and allow name other nodes of this mesh.
        agents: (name, target) pairs."""
        place = self._folder / name
        home = Home(name, place, place)
        home.make_folders()
        if not home.key.exists():
            home.make_key()
        number = len(self._configs) + 1
        self._seeds[name] = seeds
        self._configs[name] = Config(
            home=home,
            mesh=MESH,
            dht_port=4_000 + number,
            seeds=tuple(Seed(self.key(seed).node, "127.0.0.1", self._configs[seed].dht_port) for seed in seeds),
            allow=tuple(self.key(one).node for one in allow),
            agents={agent: AgentConfig(agent, "python", {"target": target}) for agent, target in agents},
        )
        return self._configs[name]

    def allow(self, name: str, *others: str) -> None:
        """Let `name` work for nodes that were made after it."""
        allowed = tuple(self.key(other).node for other in others)
        self._configs[name] = replace(self._configs[name], allow=allowed)

    def change(self, name: str, **settings: Any) -> Config:
        """Other values of its settings, from the next start."""
        self._configs[name] = replace(self._configs[name], **settings)
        return self._configs[name]

    def key(self, name: str) -> NodeKey:
        return NodeKey(self._configs[name].home.read_key())

    async def start(self, name: str) -> Node:
        """After those of its seeds that are about to start: who asks before they listen asks again seconds later."""
        tried = self._tried[name] = asyncio.Event()
        try:
            for seed in self._seeds[name]:
                if seed in self._tried:
                    await self._tried[seed].wait()
            return await self._start(name)
        finally:
            tried.set()

    async def _start(self, name: str) -> Node:
        config = self._configs[name]
        stack = self.stacks[name] = AsyncExitStack()
        parts: Any = {"datagrams": self._datagrams(config), "links": self._links(config)}
        node = Node(config, **parts, meaning=self.meaning, model=self.models.get(name))
        self.nodes[name] = await stack.enter_async_context(node)
        return node

    async def stop(self, name: str) -> None:
        await self.stacks.pop(name).aclose()

    async def crash(self, name: str) -> None:
        """It is silent from now on, without a word, as if its machine had lost its power."""
        node = self.nodes[name]
        await node.datagrams.aclose()
        await node.links.aclose()

    def _datagrams(self, config: Config) -> MemoryDatagrams:
        return MemoryDatagrams(self.hub, NodeKey(config.home.read_key()).node, config.dht_port)

    def _links(self, config: Config) -> MemoryLinks:
        hello = Hello(VERSION, ids.network_id(MESH), 0)  # the node's boot id is drawn later
        node = NodeKey(config.home.read_key()).node
        return MemoryLinks(self.hub, node, hello, random.Random(1), link_address(config.dht_host, config.dht_port))


async def up(mesh: Mesh, *names: str) -> None:
    """Start these together, until each is ready."""
    await asyncio.gather(*(mesh.start(name) for name in names))
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*(mesh.nodes[name].ready.wait() for name in names))


async def say(node: Node, verb: str, /, **args: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A verb as the control socket takes it: its answer, and the events told on the way."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(WAIT_S):
        return await verbs.handlers(node)[verb](args, events.append), events
