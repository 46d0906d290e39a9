"""A member that talks over a team channel as a node does: durable, chained, verified, told by an event.

say ─> gossip machine ─> SQLite, fsync ─> links ═> links ─> gossip machine ─> SQLite, fsync ─> Said
"""

import asyncio
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench._link_members import MESSAGE_BYTES, LinkMember
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Say
from ioa_p2p.gossip.events import Delivered, Said
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.net.ports import Frames, LinkEvent, LinkUp
from ioa_p2p.node import clock
from ioa_p2p.node.runtime import Committer, Driver
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.wire import gossip
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import LinkKind

TEAM = bytes(16)
_UNHELD_MAX = 256  # lines of ours that some member has not acknowledged; beyond, it would count as behind


class ChannelMember(LinkMember):
    """Lines of 1 KiB; a delivery is the Said event at another member."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._folder = tempfile.TemporaryDirectory(prefix="bench-channel-")
        self._storage = storage = SqliteStorage(Path(self._folder.name) / "node.db")
        machine = GossipMachine(
            self.key, network_id("bench"), lambda space: list(storage.scan(space)), random.Random(number)
        )
        self._driver = Driver(machine, Committer(storage, self._on_health), clock.now, self._send, self._emit)
        self._said = self._held = 0
        self._absent = 0
        self._news = asyncio.Event()

    async def join(self, everyone: Sequence[tuple[bytes, str]]) -> None:
        self._driver.start()
        self._driver.command(OpenChannel(TEAM, tuple(node for node, _ in everyone)))
        await super().join(everyone)

    async def send_all(self, message: bytes) -> None:
        while self._said - self._held >= _UNHELD_MAX:
            self._news.clear()
            await self._news.wait()
        self._driver.command(Say(TEAM, "text", message))
        self._said += 1
        await asyncio.sleep(0)

    async def expect_absent(self, count: int) -> None:
        """So many members will hold nothing for a while: do not wait for them."""
        self._absent = count

    def _message(self) -> bytes:
        return self.stamp() + bytes(MESSAGE_BYTES - 8)  # the channel signs

    def _on_events(self, events: Sequence[LinkEvent]) -> None:
        super()._on_events([event for event in events if not isinstance(event, Frames)])
        for event in events:
            if isinstance(event, Frames):
                self._on_frames(event)
            else:
                self._driver.command(LinkPeer(event.peer, isinstance(event, LinkUp)))

    def _on_frames(self, event: Frames) -> None:
        for kind, body in event.frames:
            message = gossip.Entries(body) if kind == LinkKind.SIGNED else gossip.unpack(body)
            self._driver.message(event.peer, message)

    def _send(self, to: bytes, message: Any) -> None:
        self.links.send(to, *gossip.pack(message))

    def _emit(self, event: Any) -> None:
        if isinstance(event, Said) and event.author != self.key.node:
            self.note(event.entry.body)
        elif isinstance(event, Delivered) and event.count >= event.of - self._absent:
            self._held = max(self._held, event.seq)
            self._news.set()

    def _on_health(self, fault: Exception | None) -> None:
        if fault is not None:
            raise fault
