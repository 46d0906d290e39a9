"""Members of a team channel that `bench.log` and `bench.stall` watch: away for a while, counted, stopped.

go_away ──> links closed, others talk ──> come_back ──> a node that has just started, its disk as it was
"""

import asyncio
import random
import time
from collections.abc import Sequence

import psutil

from bench._channel_member import TEAM, ChannelMember
from ioa_p2p.gossip.commands import LinkPeer
from ioa_p2p.net.libp2p import Libp2pLinks
from ioa_p2p.net.ports import Frames, LinkEvent
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import VERSION, Hello

_LOOK_S = 0.005


class LogMember(ChannelMember):
    """Counts what comes over its links."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._heard_bytes = 0

    async def go_away(self) -> None:
        """Its links are closed; what it knows is on its disk."""
        peers = self.links.peers
        await self.links.aclose()
        for peer in peers:
            self._driver.command(LinkPeer(peer, False))

    async def come_back(self, everyone: Sequence[tuple[bytes, str]], lines: int) -> tuple[float, int, int]:
        """Dial everyone, and wait for so many lines: seconds since the first link, bytes that came, bytes on disk."""
        before_bytes, before = self._kept_bytes(), self.delivered
        hello = Hello(VERSION, network_id("bench"), time.time_ns() // 1_000_000, "bench")
        self.links = Libp2pLinks(self.key.seed, hello, random.Random())
        self._heard_bytes = 0
        await self.links.open(self._on_events)
        for node, address in everyone:
            if node != self.key.node:
                self.links.connect(node, [address])
        while not self.links.peers:
            await asyncio.sleep(_LOOK_S)
        began = time.monotonic()
        while self.delivered - before < lines and time.monotonic() - began < 60.0:
            await asyncio.sleep(_LOOK_S)
        return time.monotonic() - began, self._heard_bytes, self._kept_bytes() - before_bytes

    async def rss_mb(self) -> float:
        """Memory of the process now."""
        return psutil.Process().memory_info().rss / 1e6

    def _kept_bytes(self) -> int:
        """Of all entries on disk."""
        spaces = self._storage.spaces(f"chat/{TEAM.hex()}/")
        return sum(len(raw) for space in spaces for _, raw in self._storage.scan(space))

    def _on_events(self, events: Sequence[LinkEvent]) -> None:
        frames = [event for event in events if isinstance(event, Frames)]
        self._heard_bytes += sum(len(body) + limits.LINK_HEADER_BYTES for event in frames for _, body in event.frames)
        super()._on_events(events)
