"""Teams at a node: routing, joining, sleeping. What whole teams do together is simulated in tests/sim."""

import random
from dataclasses import replace
from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.steps import Candidate, Role
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team.commands import CancelTeam, Launch, LinkPeer, Offer
from ioa_p2p.team.events import Connect, LaunchFailed, TeamFormed
from ioa_p2p.team.guest import Signed
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.row import SPACE, TeamRow
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Append, PreVoteRequest
from ioa_p2p.wire.team import Call, Decline, Founding, Joined, LostLinks, Report
from tests.team.people import ANN, BOB, CY, DEE, MALLORY, MEMBERS, NETWORK, NOW, ROSTER, TEAM, WALL, founding, later

FOUNDING = Founding(founding())


def teams(key: NodeKey = BOB, disk: MemoryStorage | None = None) -> Teams:
    rows = disk or MemoryStorage()
    everybody = frozenset(one.node for one in MEMBERS)
    return Teams(key, NETWORK, lambda space: list(rows.scan(space)), random.Random(1), lambda: everybody)


def told(effects: list[Effect], kind: type[Any]) -> list[Any]:
    return [effect.event for effect in effects if isinstance(effect, Emit) and isinstance(effect.event, kind)]


def sent(effects: list[Effect], kind: type[Any]) -> list[tuple[bytes, Any]]:
    return [(each.to, each.message) for each in effects if isinstance(each, Send) and isinstance(each.message, kind)]


def joined(key: NodeKey = BOB) -> Teams:
    machine = teams(key)
    machine.handle_message(NOW, ANN.node, FOUNDING)
    return machine


def test_a_founding_entry_is_saved_told_and_answered() -> None:
    effects = teams().handle_message(NOW, ANN.node, FOUNDING)
    assert effects[0] == Save(SPACE, TEAM, codec.encode(TeamRow(FOUNDING.frame, lost_disk=True)))
    assert told(effects, TeamFormed) == [TeamFormed(TEAM, ROSTER)]
    assert {event.node for event in told(effects, Connect)} == {ANN.node, CY.node, DEE.node}
    assert sent(effects, Joined) == [(ANN.node, Joined(TEAM))]


def test_who_remembers_its_signature_joins_with_its_vote_and_the_launchers_clock() -> None:
    disk = MemoryStorage()
    disk.commit([Save("invite", TEAM, codec.encode(Signed(WALL + 600, 40)))])
    effects = teams(BOB, disk).handle_message(NOW, ANN.node, FOUNDING)
    assert effects[:2] == [
        Save("invite", TEAM, None),
        Save(SPACE, TEAM, codec.encode(TeamRow(FOUNDING.frame, lost_disk=False, ahead_s=40))),
    ]


def test_a_founding_entry_is_taken_from_any_member_and_once() -> None:
    machine = teams()
    assert told(machine.handle_message(NOW, CY.node, FOUNDING), TeamFormed)
    assert machine.handle_message(NOW, ANN.node, FOUNDING) == [Send(ANN.node, Joined(TEAM))]


def test_a_second_founding_of_a_team_is_refused() -> None:
    machine = joined()
    other = founding(codec.replace(ROSTER, goal="something else"))
    with pytest.raises(PeerError, match="second-founding"):
        machine.handle_message(NOW, ANN.node, Founding(other))


def test_a_team_without_us_is_not_ours() -> None:
    machine = teams(MALLORY)
    with pytest.raises(PeerError, match="not-a-member"):
        machine.handle_message(NOW, ANN.node, FOUNDING)
    assert machine.teams == {}


def test_words_of_a_team_we_do_not_know_and_of_strangers_are_faults() -> None:
    with pytest.raises(PeerError, match="unknown-team"):
        teams().handle_message(NOW, ANN.node, Report(TEAM, b"t" * 16, 1, "running"))
    with pytest.raises(PeerError, match="not-a-voter"):
        joined().handle_message(NOW, MALLORY.node, Report(TEAM, b"t" * 16, 1, "running"))


def test_commands_for_a_team_we_do_not_know_say_so() -> None:
    with pytest.raises(UsageError) as refused:
        teams().handle_command(NOW, CancelTeam(TEAM))
    assert refused.value.code == "no-such-team"
    with pytest.raises(UsageError) as refused:
        joined().handle_command(NOW, CancelTeam(TEAM, (b"t" * 16,)))
    assert refused.value.code == "no-such-task"


def test_the_launcher_brings_the_founding_entry_until_each_is_heard() -> None:
    disk = MemoryStorage()
    disk.commit([Save(SPACE, TEAM, codec.encode(TeamRow(FOUNDING.frame)))])
    machine = teams(ANN, disk)
    assert {to for to, _ in sent(machine.start(NOW), Founding)} == {BOB.node, CY.node, DEE.node}
    machine.handle_message(NOW, BOB.node, Joined(TEAM))
    again = machine.handle_timer(later(0.5), f"team/{TEAM.hex()}")
    assert {to for to, _ in sent(again, Founding)} == {CY.node, DEE.node}
    assert sent(machine.handle_command(NOW, LinkPeer(DEE.node, up=True)), Founding) == [(DEE.node, FOUNDING)]


def launch(*agents: int) -> Launch:
    candidates = tuple(Candidate(MEMBERS[n].node, MEMBERS[n].agent) for n in agents)
    return Launch(TEAM, "count", MEMBERS[0], (Role("count", ("words.count",), candidates),))


def test_the_same_launch_again_changes_nothing() -> None:
    machine = teams(ANN)
    assert machine.handle_command(NOW, launch(1, 2))
    assert machine.handle_command(NOW, launch(1, 2)) == []


def test_launches_are_bounded() -> None:
    machine = teams(ANN)
    for number in range(limits.LAUNCHES_MAX):
        machine.handle_command(NOW, replace(launch(1), team=bytes([number]) * 16))
    with pytest.raises(UsageError, match="too-many-launches"):
        machine.handle_command(NOW, launch(1))


def test_a_launch_is_resumed_after_a_restart() -> None:
    disk = MemoryStorage()
    effects = teams(ANN, disk).handle_command(NOW, launch(1, 2))
    disk.commit([effect for effect in effects if isinstance(effect, Save)])
    again = teams(ANN, disk).start(later(60))
    assert [to for to, _ in sent(again, Call)] == [BOB.node, CY.node]


def test_a_launch_that_nobody_answers_fails_in_time_and_is_over() -> None:
    machine, name = teams(ANN), f"launch/{TEAM.hex()}"
    machine.handle_command(NOW, launch(1, 2))
    assert SetTimer(name, later(1.0).boot) in machine.handle_timer(later(0.5), name)
    effects = machine.handle_timer(later(3), name)
    assert told(effects, LaunchFailed) == [LaunchFailed(TEAM, "nobody-fits", ("count",))]
    assert effects[-1] == SetTimer(name, None)
    assert machine.handle_timer(later(4), name) == []


def test_a_cancelled_launch_is_over_and_founds_nothing() -> None:
    machine, name = teams(ANN), f"launch/{TEAM.hex()}"
    machine.handle_command(NOW, launch(1, 2))
    effects = machine.handle_command(NOW, CancelTeam(TEAM))
    assert effects == [
        Save("launch", TEAM, None),
        Emit(LaunchFailed(TEAM, "cancelled", ())),
        SetTimer(name, None),
    ]
    assert machine.handle_timer(later(3), name) == []
    with pytest.raises(UsageError) as refused:
        machine.handle_command(NOW, CancelTeam(TEAM))
    assert refused.value.code == "no-such-team"


def test_an_agent_of_the_launcher_itself_is_asked_without_the_network() -> None:
    machine = teams(ANN)
    mine = codec.replace(MEMBERS[1], node=ANN.node)
    machine.handle_command(NOW, Offer((mine,)))
    role = Role("count", ("words.count",), (Candidate(ANN.node, "bob"),))
    effects = machine.handle_command(NOW, Launch(TEAM, "count", MEMBERS[0], (role,)))
    (formed,) = told(effects, TeamFormed)
    assert [member.agent for member in formed.roster.members] == ["ann", "bob"]
    assert not any(isinstance(effect, Send) for effect in effects)


def test_a_full_node_declines() -> None:
    machine = joined()
    machine.handle_command(NOW, Offer((MEMBERS[1],), load=255))
    call = Call(b"another team 16B", "bob", ("words.count",), "count", WALL + 60)
    assert machine.handle_message(NOW, ANN.node, call) == [Send(ANN.node, Decline(call.team, "bob", "busy"))]


def test_a_lost_link_is_told_to_the_coordinator_only() -> None:
    machine = joined()
    assert sent(machine.handle_command(NOW, LinkPeer(CY.node, up=False)), LostLinks) == []
    assert machine.handle_command(NOW, LinkPeer(MALLORY.node, up=False)) == []


def test_votes_of_a_team_are_asked_of_its_election() -> None:
    effects = joined().handle_message(NOW, ANN.node, PreVoteRequest(TEAM, 0, 1, 0, 0))
    assert [to for to, _ in sent(effects, object)] == [ANN.node]


def test_a_team_that_nobody_leads_long_after_its_deadline_sleeps_until_somebody_does() -> None:
    machine, timer = joined(), f"team/{TEAM.hex()}"
    team = machine.teams[TEAM]
    for second in range(600, 616, 2):
        machine.handle_timer(later(second), timer)
    assert not team.asleep
    assert SetTimer(timer, None) in machine.handle_timer(later(616), timer)
    assert team.asleep
    assert machine.handle_message(later(617), CY.node, PreVoteRequest(TEAM, 0, 2, 0, 0)) == []
    machine.handle_message(later(618), CY.node, Append(TEAM, 0, 1, 0, 0, (), 0, 1))
    assert not team.asleep


def test_a_team_found_again_after_long_sleep_is_given_time_to_elect() -> None:
    disk = MemoryStorage()
    for effect in teams(BOB, disk).handle_message(NOW, ANN.node, FOUNDING):
        if isinstance(effect, Save):
            disk.commit([effect])
    machine, timer = teams(BOB, disk), f"team/{TEAM.hex()}"
    machine.start(later(9_000))
    for second in range(9_002, 9_016, 2):
        machine.handle_timer(later(second), timer)
    assert not machine.teams[TEAM].asleep
    machine.handle_timer(later(9_016), timer)
    assert machine.teams[TEAM].asleep
