"""Blobs as the node's other parts use them: put bytes, get bytes.

put(data) ──> PutBlob ──> hash            get(team, hash) ──> GetBlob ──> BlobHave ──> bytes
                                                          └─> BlobMissing, a few times ──> PeerError
"""

import asyncio
from typing import Any

from ioa_p2p.effects import Rows
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip import blobs, commands, events
from ioa_p2p.node.runtime import Driver
from ioa_p2p.wire.ids import node_short

TRIES = 3  # a member may be between two links
PAUSE_S = 2.0


class Blobs:
    """driver: of the gossip machine. Feed its events to `on_event`."""

    def __init__(self, driver: Driver, rows: Rows) -> None:
        self._driver = driver
        self._rows = rows
        self._waiting: dict[bytes, list[asyncio.Future[bool]]] = {}

    def on_event(self, event: Any) -> bool:
        """True if the event speaks of a blob."""
        if not isinstance(event, events.BlobHave | events.BlobMissing):
            return False
        for future in self._waiting.pop(event.hash, []):
            if not future.done():
                future.set_result(isinstance(event, events.BlobHave))
        return True

    def put(self, data: bytes) -> bytes:
        """Keep and serve it; its hash. Raises UsageError('blob-too-large')."""
        self._driver.command(commands.PutBlob(data))
        return blobs.name_of(data)

    async def get(self, team: bytes, blob: bytes) -> bytes:
        """From disk or from a member of the team. Raises PeerError('blob-missing'), UsageError('blobs-busy')."""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(PAUSE_S)
            if await self._fetch(team, blob):
                data = blobs.read(self._rows, blob)
                if data is not None:
                    return data
        raise PeerError("blob-missing", f"no member of the team has the file {node_short(blob)}")

    async def _fetch(self, team: bytes, blob: bytes) -> bool:
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(blob, []).append(future)
        self._driver.command(commands.GetBlob(team, blob))
        return await future
