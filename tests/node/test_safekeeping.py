"""A keeper holds the files of its teams' results, up to a bound, and nobody else fetches unasked."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ioa_p2p.errors import PeerError
from ioa_p2p.node.safekeeping import Safekeeping
from ioa_p2p.wire import limits
from ioa_p2p.wire.step import Blob

ME, OTHER, TASK = b"m" * 32, b"o" * 32, b"t" * 16


class Asked:
    """Stands where the node's blobs do."""

    def __init__(self, fails: bool = False) -> None:
        self.hashes: list[bytes] = []
        self._fails = fails

    async def have(self, team: bytes, blob: bytes) -> None:
        self.hashes.append(blob)
        if self._fails:
            raise PeerError("blob-missing")


def file(number: int, size: int = 10) -> Blob:
    return Blob(f"{number}", "text/plain", bytes([number]) * 32, size)


def team(keeper: bytes, *blobs: Blob) -> Any:
    row = SimpleNamespace(outcome=SimpleNamespace(blobs=blobs))
    roster = SimpleNamespace(keepers=(keeper,))
    return SimpleNamespace(team=bytes(16), state=SimpleNamespace(roster=roster, tasks={TASK: row}))


async def kept(*teams: Any, fails: bool = False) -> list[bytes]:
    asked: Any = Asked(fails)
    keeping = Safekeeping(ME, asked)
    for one in teams:
        keeping.look(one, TASK)
        keeping.look(one, b"another task")
    await asyncio.gather(*keeping._tasks)
    await keeping.aclose()
    return asked.hashes


async def test_a_keeper_fetches_each_file_of_a_decided_result_once() -> None:
    assert await kept(team(ME, file(1), file(2)), team(ME, file(2), file(3))) == [file(n).hash for n in (1, 2, 3)]


async def test_who_is_no_keeper_fetches_nothing_unasked() -> None:
    assert await kept(team(OTHER, file(1))) == []


async def test_a_team_gets_no_more_room_than_its_share() -> None:
    large = limits.KEEPER_BLOB_BYTES_MAX - 5
    assert await kept(team(ME, file(1, large), file(2, 10), file(3, 5))) == [file(1).hash, file(3).hash]


async def test_a_file_nobody_has_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert await kept(team(ME, file(1), file(2)), fails=True) == [file(1).hash, file(2).hash]
