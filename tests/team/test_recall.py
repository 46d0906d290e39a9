"""A member whose disk forgot: its votes are in doubt, it learns from the others, it never promises twice."""

from copy import deepcopy
from typing import Any

import pytest

from ioa_p2p.effects import Effect, Emit, Save, Send
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team.commands import LinkPeer
from ioa_p2p.team.decisions import spaces
from ioa_p2p.team.election_events import MemoryLost as ProvenLoss
from ioa_p2p.team.events import MemoryLost
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.recall import doubt
from ioa_p2p.team.row import SPACE, TeamRow
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import VoteReply, VoteRequest
from ioa_p2p.wire.team import Founding, Joined
from tests.team.people import ANN, BOB, NOW, TEAM, founding, later
from tests.team.stage import Stage
from tests.team.test_machine import FOUNDING, sent, teams, told

LOG, VOTE, *_ = spaces(TEAM)
ROW = TeamRow(founding())


def saved(disk: MemoryStorage, effects: list[Effect]) -> list[Effect]:
    disk.commit([effect for effect in effects if isinstance(effect, Save)])
    return effects


def member(disk: MemoryStorage) -> Teams:
    """BOB, who signed, in the team; all of it on `disk`."""
    machine = teams(BOB, disk)
    disk.commit([Save(SPACE, TEAM, codec.encode(ROW))])
    saved(disk, machine.start(NOW))
    disk.commit([Save(SPACE, TEAM, codec.encode(ROW))])
    return machine


def votes(machine: Teams, disk: MemoryStorage) -> bool:
    effects = saved(disk, machine.handle_message(NOW, ANN.node, VoteRequest(TEAM, 0, 1, 9, 0)))
    return any(reply.vote for _, reply in sent(effects, VoteReply))


def restarted(disk: MemoryStorage) -> tuple[Teams, list[Effect]]:
    machine = teams(BOB, disk)
    return machine, saved(disk, machine.start(NOW))


def sound() -> MemoryStorage:
    disk = MemoryStorage()
    disk.commit([Save("invite", TEAM, b"\x92\xce\x6b\x49\xd2\x00\x00")])
    saved(disk, teams(BOB, disk).handle_message(NOW, ANN.node, FOUNDING))
    return disk


def test_a_member_with_a_sound_disk_votes_after_a_restart() -> None:
    disk = sound()
    machine, effects = restarted(disk)
    assert told(effects, MemoryLost) == []
    assert votes(machine, disk)


def lose_vote(disk: MemoryStorage) -> None:
    disk.drop(VOTE)


def lose_vote_alone(disk: MemoryStorage) -> None:
    disk.commit([Save(VOTE, b"state", None), Save(VOTE, b"commit", bytes(8))])


def garble_log(disk: MemoryStorage) -> None:
    disk.commit([Save(LOG, (1).to_bytes(8), b"?")])


def lose_entries(disk: MemoryStorage) -> None:
    disk.commit([Save(VOTE, b"commit", (7).to_bytes(8))])


@pytest.mark.parametrize("spoil", [lose_vote, lose_vote_alone, garble_log, lose_entries])
def test_a_team_whose_vote_or_log_is_damaged_begins_again_without_its_vote(spoil: Any) -> None:
    disk = sound()
    spoil(disk)
    machine, effects = restarted(disk)
    assert [event.team for event in told(effects, MemoryLost)] == [TEAM]
    assert not votes(machine, disk)
    assert list(disk.scan(LOG)) == [], "what is damaged is gone from the disk"
    again, effects = restarted(disk)
    assert told(effects, MemoryLost) == [], "told once"
    assert not votes(again, disk)


def test_a_row_lost_by_name_costs_its_own_team_the_vote_and_the_log() -> None:
    disk = sound()
    rows = lambda space: list(disk.scan(space))  # noqa: E731
    assert doubt(rows, [("dht/seq", b"x"), (spaces(bytes(16))[0], b"k")], all_teams=False) == []
    disk.commit(doubt(rows, [(VOTE, b"commit")], all_teams=False))
    assert list(disk.scan(VOTE)) == []
    machine, _ = restarted(disk)
    assert not votes(machine, disk)


def test_a_disk_in_doubt_keeps_its_log_and_never_votes() -> None:
    disk = sound()
    disk.commit(doubt(lambda space: list(disk.scan(space)), [], all_teams=True))
    assert list(disk.scan(VOTE)) != []
    machine, effects = restarted(disk)
    assert told(effects, MemoryLost) == []
    assert not votes(machine, disk)


def test_a_member_that_was_away_is_brought_the_founding_entry_for_it_may_know_nothing() -> None:
    machine = teams(ANN)
    machine.handle_message(NOW, ANN.node, FOUNDING)
    machine.handle_message(NOW, BOB.node, Joined(TEAM))
    machine.handle_command(NOW, LinkPeer(BOB.node, up=False))
    assert sent(machine.handle_command(NOW, LinkPeer(BOB.node, up=True)), Founding) == [(BOB.node, FOUNDING)]
    machine.handle_message(NOW, BOB.node, Joined(TEAM))
    beat = machine.handle_timer(later(0.5), f"team/{TEAM.hex()}")
    assert BOB.node not in {to for to, _ in sent(beat, Founding)}, "until it is heard again"


# -- proven by others


def put_back(name: str, script: str) -> tuple[Stage, MemoryStorage]:
    """A stage of five on which `a` leads; and the disk of `name` as it was before the election."""
    stage = Stage(5)
    stage.play("\n".join(f"start {each}" for each in "abcde"))
    before = deepcopy(stage.disks[name])
    stage.play(script)
    return stage, before


def beat(stage: Stage, name: str) -> list[Effect]:
    """What the next beat of `a` makes of a restarted member."""
    stage.play(f"restart {name}\nwait 1\ntimer a")
    return [effect for message in stage.mail["a", name] for effect in take(stage, name, message)]


def losses(effects: list[Effect]) -> list[str]:
    return [each.event.what for each in effects if isinstance(each, Emit) and isinstance(each.event, ProvenLoss)]


def test_a_vote_in_a_certificate_that_we_do_not_remember_ends_our_voting() -> None:
    stage, before = put_back("b", "timer a\npass")
    stage.disks["b"] = before
    effects = beat(stage, "b")
    assert losses(effects) == ["our vote of term 1"]
    member = stage.members["b"]
    stage.disks["b"].commit([effect for effect in effects if isinstance(effect, Save)])
    assert not member.may_vote
    stage.play("restart b")
    assert not stage.members["b"].may_vote, "for good"


def test_a_member_that_remembers_its_vote_goes_on_voting() -> None:
    stage, _ = put_back("b", "timer a\npass")
    assert losses(beat(stage, "b")) == []
    assert stage.members["b"].may_vote


def test_a_member_that_had_no_part_in_the_election_goes_on_voting() -> None:
    stage, before = put_back("e", "timer a\npass")
    stage.disks["e"] = before
    assert losses(beat(stage, "e")) == []
    assert stage.members["e"].may_vote


def test_an_entry_of_ours_that_we_do_not_remember_ends_our_voting() -> None:
    stage, before = put_back("b", "timer b\npass\npropose b tea\npass\nwait 60\nlink a b down\ntimer a\npass")
    assert stage.members["a"].role.value == "coordinator"
    stage.disks["b"] = before
    assert losses(beat(stage, "b"))
    assert not stage.members["b"].may_vote


def take(stage: Stage, name: str, message: Any) -> list[Effect]:
    """What a member makes of a message of `a`; its refusals lead `a` back to what it lacks."""
    effects = deliver(stage, "a", name, message)
    more = [again for answer in letters(stage, effects, "a") for again in deliver(stage, name, "a", answer)]
    return [*effects, *(effect for again in letters(stage, more, name) for effect in take(stage, name, again))]


def deliver(stage: Stage, source: str, target: str, message: Any) -> list[Effect]:
    return stage.members[target].handle_message(stage.now, stage.nodes[source], message)


def letters(stage: Stage, effects: list[Effect], name: str) -> list[Any]:
    return [each.message for each in effects if isinstance(each, Send) and each.to == stage.nodes[name]]
