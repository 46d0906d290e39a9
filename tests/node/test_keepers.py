"""T16, files: what a task put out is had from the keepers though its author sleeps, and they are there in turns."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ioa_p2p.gossip.commands import LinkPeer, OpenChannel
from ioa_p2p.node.safekeeping import Safekeeping
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import BlobPiece
from ioa_p2p.wire.step import Blob
from tests.gossip.team import NODES, TEAM
from tests.node.test_blobs import MB, Peer, made

WAIT_S = 60.0
TASK = b"t" * 16
PIECES_A_TURN = 20  # then the keeper that serves goes, and the other comes
RATIO_MAX = 1.3


class Member(Peer):
    """One of four, linked with some of the others. pieces: that it was sent, of any file."""

    def __init__(self, number: int, folder: Path) -> None:
        super().__init__(number, SqliteStorage(folder / f"{number}.db"))
        self.pieces = 0
        self.safekeeping = Safekeeping(self.node, self.blobs)
        self.driver.start()
        self.driver.command(OpenChannel(TEAM, tuple(NODES[:4])))

    def link(self, other: "Member", up: bool = True) -> None:
        for one, its in ((self, other), (other, self)):
            if up:
                one.others[its.node] = its
            else:
                one.others.pop(its.node, None)
            one.driver.command(LinkPeer(its.node, up))

    def _send(self, to: bytes, message: Any) -> None:
        other = self.others.get(to)
        if isinstance(other, Member):
            other.pieces += isinstance(message, BlobPiece) and message.piece >= 0
            super()._send(to, message)

    async def aclose(self) -> None:
        await self.safekeeping.aclose()
        await super().aclose()


@pytest.fixture
async def four(tmp_path: Path) -> AsyncIterator[list[Member]]:
    """The author, two keepers, and one that is away."""
    members = [Member(number, tmp_path) for number in range(4)]
    author, one, other, _ = members
    for a, b in ((author, one), (author, other), (one, other)):
        a.link(b)
    yield members
    for member in members:
        await member.aclose()


def decided(author: Member, blob: Blob) -> Any:
    """A team whose task has this file for its outcome."""
    row = SimpleNamespace(outcome=SimpleNamespace(blobs=(blob,)))
    roster = SimpleNamespace(keepers=tuple(NODES[1:3]))
    return SimpleNamespace(team=TEAM, state=SimpleNamespace(roster=roster, tasks={TASK: row}))


async def test_a_file_is_had_from_keepers_that_come_and_go_while_its_author_sleeps(
    four: list[Member], tmp_path: Path
) -> None:
    author, one, other, away = four
    source = made(tmp_path / "source", 8 * MB)
    async with asyncio.timeout(WAIT_S):
        name = await author.blobs.put_file(source)
        team = decided(author, Blob("house", "image/png", name, 8 * MB))
        for member in four:
            member.safekeeping.look(team, TASK)
        await asyncio.gather(*one.safekeeping._tasks, *other.safekeeping._tasks)
        assert away.pieces == 0, "who keeps nothing fetches nothing"
        for keeper in (one, other):
            author.link(keeper, False)
        away.link(one)
        getting = asyncio.create_task(away.blobs.get_file(TEAM, name, tmp_path / "copy"))
        turns = 0
        while not getting.done():
            before = away.pieces
            while away.pieces < before + PIECES_A_TURN and not getting.done():
                await asyncio.sleep(0)
            on, off = (other, one) if turns % 2 == 0 else (one, other)
            turns += 1
            away.link(off, False)
            away.link(on)
        await getting
    assert turns > 3
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert away.pieces <= RATIO_MAX * -(-8 * MB // limits.BLOB_CHUNK_BYTES)
