"""Blobs as the node's other parts use them: values as bytes, files by path and never whole in memory.

put(data), put_file(path) ──> PutBlob | PutManifest, PutPiece .. ──> hash
get, get_file(team, hash) ──> GetBlob ──> BlobHave ──> bytes, or a file
                                      └─> BlobMissing, a few times ──> PeerError
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ioa_p2p.effects import Rows
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip import blobs, commands, events
from ioa_p2p.node.runtime import Driver
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.gossip import Manifest
from ioa_p2p.wire.ids import blake, node_short

TRIES = 3  # a member may be between two links
PAUSE_S = 2.0
WINDOW = 16  # pieces read from a file, or written to one, in one go: about 1 MB


class Blobs:
    """driver: of the gossip machine. Feed its events to `on_event`."""

    def __init__(self, driver: Driver, rows: Rows) -> None:
        self._driver = driver
        self._rows = rows
        self._waiting: dict[bytes, list[asyncio.Future[bool]]] = {}
        self._kept: dict[tuple[bytes, int], asyncio.Future[None]] = {}

    def on_event(self, event: Any) -> bool:
        """True if the event speaks of a blob."""
        if isinstance(event, events.BlobKept):
            kept = self._kept.pop((event.hash, event.piece), None)
            if kept is not None and not kept.done():
                kept.set_result(None)
            return True
        if not isinstance(event, events.BlobHave | events.BlobMissing):
            return False
        for future in self._waiting.pop(event.hash, []):
            if not future.done():
                future.set_result(isinstance(event, events.BlobHave))
        return True

    def put(self, data: bytes) -> bytes:
        """Keep and serve it; its hash. Raises UsageError('blob-too-large' | 'blobs-full')."""
        self._driver.command(commands.PutBlob(data))
        return blobs.name_of(data)

    async def put_file(self, path: Path) -> bytes:
        """Likewise for a file, when all of it is durable. Raises UsageError('file-changed') too, and OSError."""
        manifest = await asyncio.to_thread(_manifest, path)
        name = blake(codec.encode(manifest))
        whole = self._end_of(name)
        self._driver.command(commands.PutManifest(manifest))
        for first in range(0, len(manifest.chunks), WINDOW):
            pieces = await asyncio.to_thread(_pieces, path, first)
            if len(pieces) < min(WINDOW, len(manifest.chunks) - first):
                raise UsageError("file-changed", f"{path.name} was cut short", "put it again once nobody writes to it")
            await asyncio.gather(*(self._put_piece(name, first + number, one) for number, one in enumerate(pieces)))
        await whole
        return name

    async def get(self, team: bytes, blob: bytes) -> bytes:
        """A value, from disk or from a member of the team. Raises PeerError('blob-missing'),
        UsageError('blobs-busy')."""
        await self.have(team, blob)
        return b"".join(blobs.chunks(self._rows, blob))

    async def get_file(self, team: bytes, blob: bytes, path: Path) -> None:
        """Likewise, written to a new file, whole or not at all. Raises OSError too."""
        await self.have(team, blob)
        partial = path.with_name(f".{path.name}.part")
        try:
            chunks = blobs.chunks(self._rows, blob)
            await asyncio.to_thread(partial.write_bytes, b"")
            while some := [chunk for _, chunk in zip(range(WINDOW), chunks, strict=False)]:
                await asyncio.to_thread(_append, partial, b"".join(some))
            await asyncio.to_thread(os.replace, partial, path)
        finally:
            partial.unlink(missing_ok=True)

    async def have(self, team: bytes, blob: bytes) -> None:
        """Until it is on disk. Raises PeerError('blob-missing'), UsageError('blobs-busy')."""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(PAUSE_S)
            if await self._fetch(team, blob):
                return
        raise PeerError("blob-missing", f"no member of the team has the file {node_short(blob)}")

    async def _put_piece(self, name: bytes, piece: int, data: bytes) -> None:
        kept = self._kept[name, piece] = asyncio.get_running_loop().create_future()
        self._driver.command(commands.PutPiece(name, piece, data))
        await kept

    async def _fetch(self, team: bytes, blob: bytes) -> bool:
        end = self._end_of(blob)
        self._driver.command(commands.GetBlob(team, blob))
        return await end

    def _end_of(self, blob: bytes) -> "asyncio.Future[bool]":
        """True once it is on disk, False when it is missing."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(blob, []).append(future)
        return future


def _manifest(path: Path) -> Manifest:
    """Raises UsageError for a file that is too large, before all of it is read."""
    size = path.stat().st_size
    if size > limits.BLOB_BYTES_MAX:
        raise UsageError("blob-too-large", f"{path.name} has {size} bytes", "64 MiB at most: cut it into several")
    return blobs.manifest_of(size, _read_chunks(path))


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for _ in range(limits.BLOB_CHUNKS_MAX):
            if not (chunk := file.read(limits.BLOB_CHUNK_BYTES)):
                return
            yield chunk


def _pieces(path: Path, first: int) -> list[bytes]:
    with path.open("rb") as file:
        file.seek(first * limits.BLOB_CHUNK_BYTES)
        return list(blobs.cut(file.read(WINDOW * limits.BLOB_CHUNK_BYTES)))


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
