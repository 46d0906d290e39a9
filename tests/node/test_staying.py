"""What a node's owner is shown of its own clock and of copies of its key, and how its starts are ordered."""

import time
from pathlib import Path

import pytest

from ioa_p2p.dht import events
from ioa_p2p.effects import Save
from ioa_p2p.node import checks
from ioa_p2p.node.alarms import KEPT_MAX
from ioa_p2p.node.memory import LAST_BOOT
from ioa_p2p.node.node import Node
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
    assert "our clock is -86400 s from our peers" in alone.alarms.texts[-1]


@pytest.mark.parametrize(("agent", "words"), [("stat", "its agent stat"), ("", "its start 7")])
async def test_a_copy_of_a_key_is_shown_to_the_owner(alone: Node, agent: str, words: str):
    alone._on_dht(events.CloneAlarm(alone.key.node, agent, 7))
    assert "two nodes use the key" in alone.alarms.texts[-1]
    assert words in alone.alarms.texts[-1]


async def test_what_strangers_say_of_themselves_hides_no_alarm_of_ours_and_is_no_fault_of_ours(alone: Node):
    assert not [check for check in checks.run(alone) if check["name"] == "alarms" and not check["ok"]]
    for number in range(300):
        alone._on_dht(events.CloneAlarm(bytes([number % 250]) * 32, "stat", number))
    assert [check for check in checks.run(alone) if check["name"] == "alarms" and check["ok"]]
    alone._on_dht(events.CloneAlarm(alone.key.node, "stat", 7))
    for number in range(300):
        alone._on_dht(events.CloneAlarm(bytes([number % 250]) * 32, "stat", number))
    (told,) = [check for check in checks.run(alone) if check["name"] == "alarms"]
    assert (told["ok"], "two nodes use the key" in told["detail"], bool(told["hint"])) == (False, True, True)
    assert len(alone.alarms.texts) <= 1 + KEPT_MAX
