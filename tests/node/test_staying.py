"""What a node's owner is shown of its own clock and of copies of its key, and how its starts are ordered."""

import time
from pathlib import Path

import pytest

from ioa_p2p.dht import events
from ioa_p2p.effects import Save
from ioa_p2p.node.node import LAST_BOOT, Node
from ioa_p2p.storage.sqlite import SqliteStorage
from tests.node.mesh import Mesh


@pytest.fixture
async def alone(tmp_path: Path):
    async with Mesh(tmp_path) as mesh:
        mesh.make("alone")
        yield await mesh.start("alone")


async def test_every_start_has_a_larger_id_even_if_the_clock_went_back(tmp_path: Path):
    async with Mesh(tmp_path) as mesh:
        config = mesh.make("alone")
        future = int(time.time() * 1_000) + 10**9
        config.home.make_folders()
        storage = SqliteStorage(config.home.database)
        storage.commit([Save(*LAST_BOOT, future.to_bytes(8))])
        storage.close()
        boots = list[int]()
        for _ in range(2):
            boots.append((await mesh.start("alone")).boot)
            await mesh.stop("alone")
    assert boots == [future + 1, future + 2]


async def test_a_clock_that_peers_contradict_is_shown_to_the_owner(alone: Node):
    alone._on_dht(events.ClockDoubted(-86_400.0))
    assert "our clock is -86400 s from our peers" in alone.alarms[-1]


@pytest.mark.parametrize(("agent", "words"), [("stat", "its agent stat"), ("", "its start 7")])
async def test_a_copy_of_a_key_is_shown_to_the_owner(alone: Node, agent: str, words: str):
    alone._on_dht(events.CloneAlarm(alone.key.node, agent, 7))
    assert "two nodes use the key" in alone.alarms[-1]
    assert words in alone.alarms[-1]
