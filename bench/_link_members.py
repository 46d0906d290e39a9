"""The members that `bench.link` compares: our links, the floor, py-libp2p's gossipsub.

Each says 1 KiB messages, signed once, to nine others, who verify them; the first 8 bytes are when it was said
(`time.monotonic_ns`, one clock for all processes of a machine).
"""

import asyncio
import random
import struct
import time
from collections.abc import Sequence
from typing import Any

from ioa_p2p.crypto.keys import NodeKey, verify
from ioa_p2p.net.libp2p import Libp2pLinks
from ioa_p2p.net.ports import Frames, LinkDown, LinkEvent
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import VERSION, Hello, LinkKind

MESSAGE_BYTES = 1024
_STAMP = struct.Struct(">Q")
_RETRY_S = 0.002  # a sender whose queue is full looks again


class Member:
    """What all three have in common: making, checking and counting messages."""

    def __init__(self, number: int) -> None:
        self.key = NodeKey(bytes([number + 1]) * 32)
        self.delivered = 0
        self.latencies_ms: list[float] = []

    async def say(self, count: int, rate_hz: float) -> None:
        """`count` messages to everyone, at `rate_hz`, or as fast as they go when that is 0."""
        began = time.monotonic() + random.random() / (rate_hz or 1e9)
        for index in range(count):
            if rate_hz:
                await asyncio.sleep(max(0.0, began + index / rate_hz - time.monotonic()))
            await self.send_all(self._message())

    async def send_all(self, message: bytes) -> None:
        """To every other member, waiting while it does not fit."""
        raise NotImplementedError

    async def take_figures(self) -> tuple[int, list[float]]:
        """Deliveries and their times since the last call."""
        taken = self.delivered, self.latencies_ms
        self.delivered, self.latencies_ms = 0, []
        return taken

    async def delivered_so_far(self) -> int:
        return self.delivered

    def _message(self) -> bytes:
        body = self.stamp() + self.key.node + bytes(MESSAGE_BYTES - 8 - 32 - 64)
        return body + self.key.sign(body)

    def stamp(self) -> bytes:
        """Now, as a message begins."""
        return _STAMP.pack(time.monotonic_ns())

    def heard(self, message: bytes) -> None:
        verify(message[8:40], message[:-64], message[-64:])
        self.note(message)

    def note(self, message: bytes) -> None:
        self.delivered += 1
        self.latencies_ms.append((time.monotonic_ns() - _STAMP.unpack_from(message)[0]) / 1e6)


class LinkMember(Member):
    """Our links over libp2p."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        hello = Hello(VERSION, network_id("bench"), time.time_ns() // 1_000_000, "bench")
        self.links = Libp2pLinks(self.key.seed, hello, random.Random(number))
        self.downs: list[tuple[bytes, float]] = []

    async def open(self) -> tuple[bytes, str]:
        await self.links.open(self._on_events)
        return self.key.node, self.links.addresses[0]

    async def join(self, everyone: Sequence[tuple[bytes, str]]) -> None:
        """Dial those after us in the list; returns when a link to each of the others stands."""
        place = [node for node, _ in everyone].index(self.key.node)
        for node, address in everyone[place + 1 :]:
            self.links.connect(node, [address])
        while len(self.links.peers) < len(everyone) - 1:
            await asyncio.sleep(0.02)

    async def send_all(self, message: bytes) -> None:
        for peer in self.links.peers:
            while not self.links.send(peer, LinkKind.SIGNED, message):
                await asyncio.sleep(_RETRY_S)
        await asyncio.sleep(0)

    async def lost_at(self, node: bytes, wait_s: float) -> float:
        """When the link to `node` went down (monotonic), or infinity."""
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            for down, at in self.downs:
                if down == node:
                    return at
            await asyncio.sleep(0.02)
        return float("inf")

    async def counters(self) -> dict[str, int]:
        return self.links.counters

    def _on_events(self, events: Sequence[LinkEvent]) -> None:
        for event in events:
            if isinstance(event, Frames):
                for _, body in event.frames:
                    self.heard(body)
            elif isinstance(event, LinkDown):
                self.downs.append((event.peer, time.monotonic()))


class FloorMember(Member):
    """The least that can be done: plain asyncio TCP, a length before each message, the same signatures."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._peers: list[_FloorPeer] = []

    async def open(self) -> tuple[bytes, int]:
        server = await asyncio.get_running_loop().create_server(lambda: _FloorPeer(self), "127.0.0.1", 0)
        self._server = server
        return self.key.node, server.sockets[0].getsockname()[1]

    async def join(self, everyone: Sequence[tuple[bytes, int]]) -> None:
        place = [node for node, _ in everyone].index(self.key.node)
        for _, port in everyone[place + 1 :]:
            await asyncio.get_running_loop().create_connection(lambda: _FloorPeer(self), "127.0.0.1", port)
        while len(self._peers) < len(everyone) - 1:
            await asyncio.sleep(0.02)

    async def send_all(self, message: bytes) -> None:
        framed = len(message).to_bytes(4) + message
        for peer in self._peers:
            await peer.writable.wait()
            peer.transport.write(framed)
        await asyncio.sleep(0)

    def joined(self, peer: "_FloorPeer") -> None:
        self._peers.append(peer)


class _FloorPeer(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, member: FloorMember) -> None:
        self._member = member
        self._rest = b""
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._member.joined(self)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        at = 0
        while len(data) - at >= 4 and len(data) - at - 4 >= (size := int.from_bytes(data[at : at + 4])):
            self._member.heard(data[at + 4 : at + 4 + size])
            at += 4 + size
        self._rest = data[at:]

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()


class GossipsubMember(Member):
    """py-libp2p's own gossipsub: version 1.2 with the parameters it ships (`libp2p.tools.constants`), strict signing.

    Version 1.0 costs about half: it spares the IDONTWANT that each copy sets off. trio runs in a thread, so that
    the fleet can ask.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._thread: Any = None

    async def open(self) -> tuple[bytes, str]:
        import threading

        loop = asyncio.get_running_loop()
        ready: asyncio.Future[str] = loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(loop, ready), daemon=True)
        self._thread.start()
        return self.key.node, await ready

    async def join(self, everyone: Sequence[tuple[bytes, str]]) -> None:
        place = [node for node, _ in everyone].index(self.key.node)
        await self._call(self._join, [address for _, address in everyone[place + 1 :]], len(everyone) - 1)

    async def send_all(self, message: bytes) -> None:
        await self._call(self._publish, message)

    async def _call(self, call: Any, *arguments: Any) -> None:
        """Run a coroutine function over there and wait for it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        async def run() -> None:
            await call(*arguments)
            loop.call_soon_threadsafe(done.set_result, None)

        self._token.run_sync_soon(lambda: self._nursery.start_soon(run))
        await done

    def _run(self, loop: asyncio.AbstractEventLoop, ready: "asyncio.Future[str]") -> None:
        import trio
        from libp2p import new_host
        from libp2p.crypto.ed25519 import create_new_key_pair
        from libp2p.pubsub.gossipsub import PROTOCOL_ID_V12, GossipSub
        from libp2p.pubsub.pubsub import Pubsub
        from libp2p.tools.anyio_service import background_trio_service
        from libp2p.tools.constants import GOSSIPSUB_PARAMS
        from multiaddr import Multiaddr

        async def main() -> None:
            self._host = new_host(key_pair=create_new_key_pair(self.key.seed))
            router = GossipSub([PROTOCOL_ID_V12], **GOSSIPSUB_PARAMS._asdict())
            self._pubsub = Pubsub(self._host, router)
            async with (
                self._host.run([Multiaddr("/ip4/127.0.0.1/tcp/0")]),
                background_trio_service(self._pubsub),
                background_trio_service(router),
                trio.open_nursery() as self._nursery,
            ):
                self._token = trio.lowlevel.current_trio_token()
                subscription = await self._pubsub.subscribe("bench")
                self._nursery.start_soon(self._hear, subscription)
                loop.call_soon_threadsafe(ready.set_result, str(self._host.get_addrs()[0]))
                await trio.sleep_forever()

        trio.run(main)

    async def _hear(self, subscription: Any) -> None:
        own = self._host.get_id().to_bytes()
        async for message in subscription:
            if message.from_id != own:
                self.note(message.data)  # the router has verified its own signature

    async def _join(self, addresses: Sequence[str], others: int) -> None:
        import trio
        from libp2p.peer.peerinfo import info_from_p2p_addr
        from multiaddr import Multiaddr

        for address in addresses:
            await self._host.connect(info_from_p2p_addr(Multiaddr(address)))
        while len(self._pubsub.peer_topics.get("bench", ())) < others:
            await trio.sleep(0.1)

    async def _publish(self, message: bytes) -> None:
        await self._pubsub.publish("bench", message)
