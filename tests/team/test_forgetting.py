"""Teams that are over do not fill the disk for ever: the newest are kept, of the others no row stays."""

import random

import pytest

from ioa_p2p.effects import Effect, Emit, Save
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team.decisions import Decisions, Held, next_entry, open_founding
from ioa_p2p.team.events import Concluded, Forgotten, TeamFormed
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.row import SPACE, TeamRow
from ioa_p2p.team.worker import Job
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Assign, Blob, Conclude, Elect, Outcome, Step, encode_step
from ioa_p2p.wire.team import Founding
from tests.team.people import ANN, BOB, CY, DEE, MEMBERS, NETWORK, NOW, ROSTER, TEAM, WALL, founding, spec

KEPT = 3
TASK = spec(1)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEAMS_OVER_MAX", KEPT)


def team(number: int) -> bytes:
    return bytes([number]) * 16


def file(name: str) -> Blob:
    return Blob(name, "text/plain", blake(name.encode()), 9)


def past(disk: MemoryStorage, number: int, *files: str, over: bool = True) -> None:
    """What a member keeps of a team whose last entry is of wall second `number`."""
    frame = founding(codec.replace(ROSTER, team=team(number)))
    log = Decisions(
        Held(open_founding(frame, NETWORK, team(number), 0), frame, blake(frame)), NETWORK, lambda space: []
    )
    log.set_term(1)
    outcome = Outcome(TASK.id, 1, "succeeded", blobs=tuple(map(file, files)))
    steps: list[Step] = [Elect(), Assign("async", (TASK,)), outcome]
    for step in [*steps, *([Conclude("cancelled", "enough")] if over else [])]:
        log.append(next_entry(log, ANN, NETWORK, WALL + number, encode_step(step), ()))
    log.set_commit(log.last_index)
    row = Save(SPACE, team(number), codec.encode(TeamRow(frame)))
    job = Save(f"task/{team(number).hex()}", TASK.id, codec.encode(Job(1)))
    disk.commit([row, job, *log.drain()])


def begin(disk: MemoryStorage) -> tuple[Teams, list[Effect]]:
    everybody = frozenset(one.node for one in MEMBERS)
    machine = Teams(BOB, NETWORK, lambda space: list(disk.scan(space)), random.Random(1), lambda: everybody)
    return machine, carried(disk, machine.start(NOW))


def carried(disk: MemoryStorage, effects: list[Effect]) -> list[Effect]:
    disk.commit([effect for effect in effects if isinstance(effect, Save)])
    return effects


def told(effects: list[Effect], kind: type[Forgotten] | type[Concluded] | type[TeamFormed]) -> list[bytes]:
    events = [effect.event for effect in effects if isinstance(effect, Emit)]
    return [event.team for event in events if isinstance(event, kind)]


def kept(disk: MemoryStorage) -> set[str]:
    """Teams of which anything is on disk."""
    return {key.hex() for key, _ in disk.scan(SPACE)} | {
        space.partition("/")[2] for kind in ("decision/", "vote/", "task/") for space in disk.spaces(kind)
    }


def test_the_newest_teams_that_are_over_stay_and_of_older_ones_nothing() -> None:
    disk = MemoryStorage()
    for number in (5, 1, 4, 2, 3):
        past(disk, number)
    machine, effects = begin(disk)
    assert told(effects, Forgotten) == [team(1), team(2)]
    assert set(machine.teams) == {team(3), team(4), team(5)}
    assert kept(disk) == {each.hex() for each in machine.teams}
    assert set(told(effects, Concluded)) == set(told(effects, TeamFormed)) == set(machine.teams)
    assert told(begin(disk)[1], Forgotten) == []


def test_a_team_that_is_not_over_stays_however_old() -> None:
    disk = MemoryStorage()
    past(disk, 1, over=False)
    for number in range(2, 4 + KEPT):
        past(disk, number)
    machine, effects = begin(disk)
    assert told(effects, Forgotten) == [team(2), team(3)]
    assert team(1) in machine.teams


def test_files_go_with_the_last_team_that_names_them() -> None:
    disk = MemoryStorage()
    past(disk, 1, "mine", "shared")
    for number in range(2, 2 + KEPT):
        past(disk, number, "shared")
    events = [effect.event for effect in begin(disk)[1] if isinstance(effect, Emit)]
    voters = tuple(sorted(key.node for key in (ANN, BOB, CY, DEE)))
    assert [event for event in events if isinstance(event, Forgotten)] == [
        Forgotten(team(1), voters, (file("mine").hash,))
    ]


def test_a_new_team_makes_the_oldest_forgotten_and_is_not_so_itself() -> None:
    disk = MemoryStorage()
    for number in range(1, 2 + KEPT):
        past(disk, number)
    limits.TEAMS_OVER_MAX += 1
    machine, _ = begin(disk)
    limits.TEAMS_OVER_MAX -= 1
    effects = carried(disk, machine.handle_message(NOW, ANN.node, Founding(founding())))
    assert told(effects, Forgotten) == [team(1)]
    assert set(machine.teams) == {team(2), team(3), team(4), TEAM}
    assert kept(disk) == {each.hex() for each in machine.teams}
