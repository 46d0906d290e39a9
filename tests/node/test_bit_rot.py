"""T20: a bit flips on the disk of one of five: noticed before it is used, mended from the others, who keep theirs."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioa_p2p.gossip.commands import OpenChannel
from ioa_p2p.node.memory import Memory, open_memory
from ioa_p2p.team import saved_state
from ioa_p2p.team.events import MemoryLost
from ioa_p2p.team.machine import SPACE
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.gossip import Entries, Entry, Want, batches, split
from tests.gossip.long_talk import AWAY, LISTENER, Ear
from tests.gossip.team import KEYS, NODES, chain
from tests.gossip.team import TEAM as TALK
from tests.sim.jobs import CAST, TEAM, Jobs
from tests.sim.team import finish
from tests.sim.world import World

HEX = TEAM.hex()
HOMES = {"charter": "device-2", "writer": "device-3"}
WORKED = 12  # entries decided when the bit flips: one checkpoint is made, another under way
REPAIR_S = 30.0


class Five:
    """A team at work; one member is on SQLite, the others in memory."""

    def __init__(self, file: Path, victim: str) -> None:
        self.file = file
        self.jobs = Jobs(1, CAST, HOMES)
        self.node = self.jobs.node(victim)
        self.memory = open_memory(file, self.node)
        for node in self.jobs.nodes:
            host = self.world.add(node, self.jobs._make, start=False)
            host.disk = self.memory.storage if node == self.node else host.disk  # type: ignore[assignment]
            self.world.restart(node)
            self.jobs.offer(node)
        self.jobs.launch()

    @property
    def world(self) -> World:
        return self.jobs.world

    @property
    def commit(self) -> int:
        return max((team.election.commit_index for team in self.jobs.teams().values()), default=0)

    def start_again(self) -> Memory:
        """As a node does, on what the disk gives back."""
        self.memory = open_memory(self.file, self.node)
        self.world.hosts[self.node].disk = self.memory.storage  # type: ignore[assignment]
        self.jobs.restart(self.node)
        return self.memory

    def others(self) -> dict[bytes, dict[tuple[str, bytes], bytes]]:
        """What the four have on disk of log, base and archive."""
        disks = {node: self.world.hosts[node].disk for node in self.jobs.nodes if node != self.node}
        kinds = ("decision", "base", "archive")
        spaces = [(node, disk, f"{kind}/{HEX}") for node, disk in disks.items() for kind in kinds]
        found: dict[bytes, dict[tuple[str, bytes], bytes]] = {node: {} for node in disks}
        for node, disk, space in spaces:
            found[node] |= {(space, row): value for row, value in disk.scan(space)}
        return found


@pytest.fixture(params=["analyst", "device-1"])
def five(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Five]:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 8)
    made = Five(tmp_path / "node.db", request.param)
    yield made
    with contextlib.suppress(Exception):
        made.memory.storage.close()


def flip(file: Path, value: bytes) -> None:
    """One bit within a value, wherever the file holds it."""
    data, part = bytearray(file.read_bytes()), value[: min(len(value), 40)]
    at = data.find(part)
    assert at >= 0, "the row is not in the file"
    while at >= 0:
        data[at + len(part) // 2] ^= 4
        at = data.find(part, at + 1)
    file.write_bytes(data)


@pytest.mark.parametrize("kind", ["decision", "base", "archive", "vote", "task"])
def test_whatever_flips_is_told_at_the_start_and_nothing_that_differs_is_ever_handed_on(five: Five, kind: str) -> None:
    assert five.world.run(120, until=lambda: five.commit >= WORKED)
    five.jobs.crash(five.node)
    rows = [(space, row, value) for space in five.memory.storage.spaces(f"{kind}/{HEX}")
            for row, value in five.memory.storage.scan(space)]  # fmt: skip
    five.memory.storage.close()
    before, told = five.others(), len(five.world.events)
    space, _, value = max(rows, key=lambda row: len(row[2]))
    flip(five.file, value)
    found = five.start_again()
    assert "damaged" in found.losses[0].text
    assert found.storage.get(SPACE, TEAM) is not None, "the team is not left"
    assert value not in [left for _, left in found.storage.scan(space)], "the row counts as not there"
    finish(five.jobs)
    assert five.world.run(REPAIR_S, until=five.jobs.concluded)
    mine, *rest = _states(five)
    assert all(other == mine for other in rest)
    _must_agree(five)
    for node, kept in five.others().items():
        lost = {row for row in before[node] if row[0].startswith("archive") and kept.get(row) != before[node][row]}
        assert not lost, "the majority's data is as it was"
    assert five.jobs.teams()[five.node].election.may_vote == (kind == "archive"), "what it promised is known, or not"
    lost_team = any(isinstance(event, MemoryLost) for _, _, event in five.world.events[told:])
    assert lost_team == (kind in ("decision", "base", "vote")), "other rows cost no log"
    if kind == "archive":
        assert len(list(found.storage.scan(space))) >= len(rows) - 1, "what is whole of it stays"


def _states(five: Five) -> list[object]:
    """The decided state of all, the victim's first: equal as it is encoded for a checkpoint."""
    teams = five.jobs.teams()
    order = [five.node, *(node for node in teams if node != five.node)]
    return [saved_state.encode(teams[node].state) for node in order]


def _must_agree(five: Five) -> None:
    """Of no entry does any disk, the victim's among them, hold another copy than the rest."""
    copies: dict[bytes, set[bytes]] = {}
    for host in five.world.hosts.values():
        for kind in ("decision", "archive"):
            for row, value in host.disk.scan(f"{kind}/{HEX}"):
                copies.setdefault(row, set()).add(value)
    assert all(len(values) == 1 for values in copies.values())


LINES, ROTTEN = limits.CHAT_TAIL_ENTRIES + 100, 50


def test_a_line_that_rots_under_a_running_node_is_left_out_and_after_a_start_pulled_again(tmp_path: Path) -> None:
    author, file, raws = NODES[0], tmp_path / "node.db", chain(KEYS[0], LINES)
    ear = Ear(file, LISTENER)
    ear.do(OpenChannel(TALK, (author, LISTENER, AWAY)))
    for batch in batches(raws):
        ear.hear(author, batch)
    connection = ear.storage._connection
    assert connection is not None
    rot = "UPDATE rows SET value = x'00' WHERE space LIKE 'chat/%' AND key = ?"
    assert connection.execute(rot, (ROTTEN.to_bytes(8),)).rowcount == 1
    assert _served(ear, 1, 128) == [seq for seq in range(1, 129) if seq != ROTTEN]
    assert ear.storage.damaged, "status tells"
    ear.storage.close()
    found = open_memory(file, LISTENER)
    assert "damaged" in found.losses[0].text
    found.storage.close()
    again = Ear(file, LISTENER)
    assert again.machine.seq(TALK, author) == ROTTEN - 1, "nothing is told as known that is not there"
    again.hear(AWAY, Entries(b"".join(raws[ROTTEN - 1 : ROTTEN + 40])))
    for batch in batches(raws[ROTTEN + 40 :]):
        again.hear(AWAY, batch)
    assert again.machine.seq(TALK, author) == LINES
    assert _served(again, 1, 128) == list(range(1, 129))
    again.storage.close()


def _served(ear: Ear, first: int, last: int) -> list[int]:
    answer = [send.message for send in ear.hear(AWAY, Want(TALK, NODES[0], first, last))]
    frames_ = [raw for message in answer if isinstance(message, Entries) for raw in split(message.raw)]
    return [codec.decode(frames.parse(raw).body, Entry).seq for raw in frames_]
