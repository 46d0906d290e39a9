"""A hostile peer on a memory mesh: a key of its own, both ports, and no manners."""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

from ioa_p2p.crypto.box import Boxes
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.net.memory import MemoryDatagrams, MemoryHub, MemoryLinks
from ioa_p2p.net.ports import Endpoint, Frames, LinkDown, LinkEvent
from ioa_p2p.node.neighbourhood import link_address
from ioa_p2p.node.node import Node
from ioa_p2p.wire import codec, ids
from ioa_p2p.wire.link import VERSION, Hello
from tests.node.mesh import MESH

NETWORK = ids.network_id(MESH)
WAIT_S = 60.0


class Mallory:
    """`async with Mallory(hub, victim) as mallory`: linked to the victim. number: which of the gang this one is."""

    def __init__(self, hub: MemoryHub, victim: Node, number: int = 0) -> None:
        self.key = NodeKey(bytes([200 + number]) * 32)
        self.heard: list[tuple[int, bytes]] = []
        self.answers: list[Any] = []
        self.cut = asyncio.Event()
        self._victim = victim
        self._up = asyncio.Event()
        port = 9_000 + number
        self.boxes = Boxes(self.key, NETWORK)
        self.datagrams = MemoryDatagrams(hub, self.key.node, port)
        hello = Hello(VERSION, NETWORK, 1)
        self.links = MemoryLinks(hub, self.key.node, hello, random.Random(1), link_address("127.0.0.1", port))

    async def __aenter__(self) -> "Mallory":
        await self.datagrams.open(self._on_datagrams)
        await self.links.open(self._on_events)
        await self.link()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.links.aclose()
        await self.datagrams.aclose()

    async def link(self) -> None:
        self._up.clear()
        self.links.connect(self._victim.key.node, self._victim.links.addresses)
        async with asyncio.timeout(WAIT_S):
            await self._up.wait()

    def throw(self, data: bytes) -> None:
        """A datagram, as it is."""
        self.datagrams.send(self._victim.datagrams.endpoint, data)

    def say(self, message: Any) -> None:
        """A well-boxed datagram of any content: typed, or bytes."""
        body = message if isinstance(message, bytes) else codec.encode(message)
        self.throw(self.boxes.seal(self._victim.key.node, os.urandom(24), body))

    def frame(self, kind: int, message: Any) -> None:
        """A link frame of any content: typed, or bytes."""
        body = message if isinstance(message, bytes) else codec.encode(message)
        self.links.send(self._victim.key.node, kind, body)

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the victim work until `holds`; bounded."""
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await asyncio.sleep(0)

    def _on_datagrams(self, batch: Sequence[tuple[Endpoint, bytes]]) -> None:
        self.answers += [self.boxes.open(data)[1] for _, data in batch]

    def _on_events(self, batch: Sequence[LinkEvent]) -> None:
        for event in batch:
            if isinstance(event, Frames):
                self.heard += event.frames
            elif isinstance(event, LinkDown):
                self.cut.set()
            else:
                self._up.set()
