"""Files of up to 64 MiB on their way between disks: in pieces, verified, with little of them in memory."""

import asyncio
import os
import random
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.node import blobs as node_blobs
from ioa_p2p.node import clock
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.node.runtime import Committer, Driver
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.wire import limits
from tests.gossip.team import KEYS, NETWORK, NODES, TEAM

WAIT_S = 60.0
MB = 1024 * 1024


class Peer:
    """The blobs of one node on a store of its own; what it sends goes straight to the other."""

    def __init__(self, number: int, storage: Any) -> None:
        self.storage, self.node = storage, NODES[number]
        self.committer = Committer(storage, lambda fault: None)
        machine = GossipMachine(KEYS[number], NETWORK, lambda space: list(storage.scan(space)), random.Random(number))
        self.driver = Driver(machine, self.committer, clock.now, self._send, lambda event: self.blobs.on_event(event))
        self.blobs = Blobs(self.driver, lambda space: list(storage.scan(space)))
        self.others: dict[bytes, Peer] = {}

    def meet(self, other: "Peer") -> None:
        self.others[other.node] = other
        self.driver.command(OpenChannel(TEAM, tuple(NODES[:2])))
        self.driver.command(LinkPeer(other.node, True))

    def _send(self, to: bytes, message: Any) -> None:
        asyncio.get_running_loop().call_soon(self.others[to].driver.message, self.node, message)

    async def aclose(self) -> None:
        self.driver.close()
        await self.committer.aclose()
        self.storage.close()


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[Peer, Peer]]:
    peers = Peer(0, SqliteStorage(tmp_path / "0.db")), Peer(1, SqliteStorage(tmp_path / "1.db"))
    for one, other in (peers, peers[::-1]):
        one.driver.start()
        one.meet(other)
    yield peers
    for peer in peers:
        await peer.aclose()


def made(path: Path, size: int) -> Path:
    """A file of pieces that all differ."""
    path.write_bytes(b"".join(number.to_bytes(8) for number in range(-(-size // 8)))[:size])
    return path


async def test_the_largest_file_goes_from_disk_to_disk_and_little_of_it_is_ever_in_memory(
    pair: tuple[Peer, Peer], tmp_path: Path
) -> None:
    giver, taker = pair
    source = made(tmp_path / "large", 24 * MB)
    tracemalloc.start()
    try:
        async with asyncio.timeout(WAIT_S):
            name = await giver.blobs.put_file(source)
            await taker.blobs.get_file(TEAM, name, tmp_path / "copy")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert peak < 12 * MB


@pytest.mark.parametrize("size", [0, 1, limits.BLOB_CHUNK_BYTES, node_blobs.WINDOW * limits.BLOB_CHUNK_BYTES + 1])
async def test_a_file_of_any_size_comes_whole(pair: tuple[Peer, Peer], tmp_path: Path, size: int) -> None:
    giver, taker = pair
    source = made(tmp_path / "source", size)
    async with asyncio.timeout(WAIT_S):
        name = await giver.blobs.put_file(source)
        assert giver.blobs.put(source.read_bytes()) == name
        await taker.blobs.get_file(TEAM, name, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert await taker.blobs.get(TEAM, name) == source.read_bytes()


async def test_a_file_that_is_too_large_is_refused_unread(pair: tuple[Peer, Peer], tmp_path: Path) -> None:
    large = tmp_path / "sparse"
    with large.open("wb") as file:
        file.truncate(limits.BLOB_BYTES_MAX + 1)
    with pytest.raises(UsageError, match="67108865 bytes") as refused:
        await pair[0].blobs.put_file(large)
    assert refused.value.code == "blob-too-large"


async def test_a_file_that_is_cut_short_while_it_is_put_is_refused(
    pair: tuple[Peer, Peer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made(tmp_path / "source", 3 * MB)
    pieces = node_blobs._pieces
    monkeypatch.setattr(node_blobs, "_pieces", lambda path, first: pieces(path, first) if not first else [])
    with pytest.raises(UsageError, match="was cut short"):
        await pair[0].blobs.put_file(source)


async def test_a_file_with_a_damaged_piece_on_disk_is_not_written(pair: tuple[Peer, Peer], tmp_path: Path) -> None:
    giver = pair[0]
    name = await giver.blobs.put_file(made(tmp_path / "source", 3 * MB))
    giver.storage.commit([Save(f"blob/{name.hex()}/20", b"", b"damaged")])
    with pytest.raises(PeerError, match="piece 20 is damaged"):
        await giver.blobs.get_file(TEAM, name, tmp_path / "copy")
    assert not any("copy" in name for name in os.listdir(tmp_path))


async def test_a_file_nobody_has_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_blobs, "PAUSE_S", 0.0)
    alone = Peer(0, MemoryStorage())
    alone.driver.start()
    alone.driver.command(OpenChannel(TEAM, (NODES[0],)))
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(PeerError, match="no member of the team"):
            await alone.blobs.get(TEAM, bytes(32))
    await alone.aclose()
