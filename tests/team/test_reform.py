"""Forming anew, step by step: what the launcher asks, what the others sign, what becomes of the old incarnation."""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Save, Send, SetTimer
from ioa_p2p.errors import IoaError
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team.adoption import check_state
from ioa_p2p.team.commands import ReformTeam
from ioa_p2p.team.events import LeftBehind, Reformed, ReformFailed, Reforming
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.reform import PROMISE_S, SIGN_S
from ioa_p2p.team.reforms import PROMISES
from ioa_p2p.team.roster import check_successor, open_team
from ioa_p2p.team.row import SPACE, TeamRow
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import PreVoteReply, PreVoteRequest
from ioa_p2p.wire.roster import Adopted, Roster
from ioa_p2p.wire.team import (
    Founding,
    Invitation,
    InviteFrame,
    StatePart,
    StateWanted,
    Survey,
    Tail,
)
from tests.team.people import ANN, BOB, CY, DEE, MALLORY, MEMBERS, NETWORK, NOW, ROSTER, TEAM, founding, later

EVERYBODY = {key.node: key for key in (ANN, BOB, CY, DEE)}
FOUNDING = founding()
TIMER = f"reform/{TEAM.hex()}"
SURVEY = Survey(TEAM, 0, 0, 0)


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(IoaError) as told:
        yield
    assert told.value.code == code


class Group:
    """Members of one team, each with its disk; `reach`: who is there. Mail waits until `deliver`."""

    def __init__(self, *reach: NodeKey) -> None:
        self.disks = {node: MemoryStorage() for node in EVERYBODY}
        self.reach = [key.node for key in reach]
        self.mail: list[tuple[bytes, bytes, Any]] = []
        self.events: list[tuple[bytes, Any]] = []
        for disk in self.disks.values():
            disk.commit([Save(SPACE, TEAM, codec.encode(TeamRow(FOUNDING)))])
        self.machines = {node: self.made(node) for node in EVERYBODY}

    def made(self, node: bytes, now: Now = NOW) -> Teams:
        disk = self.disks[node]
        rows = lambda space: list(disk.scan(space))  # noqa: E731
        machine = Teams(EVERYBODY[node], NETWORK, rows, random.Random(1), lambda: frozenset(EVERYBODY))
        self.take(node, machine.start(now))
        return machine

    def take(self, node: bytes, effects: Iterable[Effect]) -> list[Effect]:
        effects = list(effects)
        self.disks[node].commit([effect for effect in effects if isinstance(effect, Save)])
        self.mail += [(node, each.to, each.message) for each in effects if isinstance(each, Send)]
        self.events += [(node, each.event) for each in effects if isinstance(each, Emit)]
        return effects

    def tell(self, to: NodeKey, peer: NodeKey, message: Any, now: Now = NOW) -> list[Effect]:
        return self.take(to.node, self.machines[to.node].handle_message(now, peer.node, message))

    def command(self, now: Now = NOW) -> list[Effect]:
        self.mail.clear()
        return self.take(ANN.node, self.machines[ANN.node].handle_command(now, ReformTeam(TEAM)))

    def tick(self, now: Now) -> list[Effect]:
        return self.take(ANN.node, self.machines[ANN.node].handle_timer(now, TIMER))

    def deliver(self, now: Now = NOW, *, lose: tuple[type[Any], ...] = ()) -> None:
        """All mail between those that are there, until nobody says more."""
        for _ in range(200):
            if not self.mail:
                return
            source, target, message = self.mail.pop(0)
            if source in self.reach and target in self.reach and not isinstance(message, lose):
                self.take(target, self.machines[target].handle_message(now, source, message))

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kind)]

    def reformed(self) -> "Group":
        """Asked, waited, signed, founded."""
        self.command()
        self.deliver()
        self.tick(later(4))
        self.deliver(later(4))
        return self


def test_the_launcher_asks_every_member_and_tells_its_owner() -> None:
    effects = Group(ANN, BOB).command()
    others = sorted([BOB.node, CY.node, DEE.node])
    assert effects == [
        Emit(Reforming(TEAM, tuple(others))),
        *(Send(node, SURVEY) for node in others),
        SetTimer(TIMER, 100.5),
    ]


def test_a_member_answers_with_the_end_of_its_log() -> None:
    assert Group(ANN, BOB).tell(BOB, ANN, SURVEY) == [Send(ANN.node, Tail(TEAM, 0, 0, 0, 0))]


@pytest.mark.parametrize("peer", [CY, MALLORY])
def test_only_the_launcher_is_told_of_a_log(peer: NodeKey) -> None:
    with refused("wrong-launcher" if peer is CY else "not-a-voter"):
        Group(ANN, BOB).tell(BOB, peer, SURVEY)


def test_those_who_answer_sign_and_go_on_in_the_next_incarnation_without_the_others() -> None:
    group = Group(ANN, BOB).reformed()
    for key in (ANN, BOB):
        team = group.machines[key.node].teams[TEAM]
        assert team.election.fence == (1, 0)
        assert team.state.roster.voters == {ANN.node, BOB.node}
        assert team.absent == {CY.node, DEE.node}
    assert {event.incarnation for event in group.told(Reformed)} == {1}


def test_what_was_adopted_and_the_founding_are_durable_at_all_who_signed() -> None:
    group = Group(ANN, BOB).reformed()
    for key in (ANN, BOB):
        again = group.made(key.node, later(9)).teams[TEAM]
        assert again.election.incarnation == 1
        assert again.election.may_vote


def test_a_member_that_hears_a_coordinator_ends_the_try() -> None:
    group = Group(ANN, BOB)
    group.command()
    effects = group.tell(ANN, BOB, Tail(TEAM, 0, 0, 0, 0, led=True))
    assert effects == [Emit(ReformFailed(TEAM, "led")), SetTimer(TIMER, None)]


def test_who_signed_neither_votes_nor_answers_in_the_old_incarnation_for_a_while() -> None:
    group = Group(ANN, BOB)
    group.command()
    group.deliver(lose=(InviteFrame,))
    group.tick(later(4))
    group.deliver(later(4), lose=(InviteFrame,))
    assert group.tell(BOB, CY, PreVoteRequest(TEAM, 0, 1, 0, 0), later(4 + PROMISE_S - 1)) == []
    answers = group.tell(BOB, CY, PreVoteRequest(TEAM, 0, 1, 0, 0), later(4 + PROMISE_S + 1))
    assert any(isinstance(each, Send) and isinstance(each.message, PreVoteReply) for each in answers)


def test_the_promise_outlives_a_restart() -> None:
    group = Group(ANN, BOB)
    group.command()
    group.deliver()
    group.tick(later(4))
    group.deliver(later(4), lose=(InviteFrame,))
    assert group.disks[BOB.node].get(PROMISES, TEAM)
    group.machines[BOB.node] = group.made(BOB.node, later(30))
    assert group.tell(BOB, CY, PreVoteRequest(TEAM, 0, 1, 0, 0), later(31)) == []


def test_the_promise_is_longer_than_the_time_in_which_the_launcher_founds() -> None:
    assert PROMISE_S >= 1.25 * SIGN_S


def test_signatures_that_come_late_found_nothing() -> None:
    group = Group(ANN, BOB)
    group.command()
    group.deliver()
    group.tick(later(4))
    held = [mail for mail in group.mail if isinstance(mail[2], Invitation)]
    group.mail.clear()
    (invitation,) = [message for _, target, message in held if target == BOB.node]
    (signed,) = [each.message for each in group.tell(BOB, ANN, invitation, later(5)) if isinstance(each, Send)]
    effects = group.tell(ANN, BOB, signed, later(4 + SIGN_S + 1))
    assert Emit(ReformFailed(TEAM, "changed")) in effects
    assert group.machines[ANN.node].teams[TEAM].election.incarnation == 0


def test_who_answers_and_does_not_sign_is_left_out() -> None:
    group = Group(ANN, BOB, CY)
    group.command()
    group.deliver()
    group.reach.remove(CY.node)
    group.deliver(later(4))
    group.tick(later(4))
    group.deliver(later(4))
    group.tick(later(4 + SIGN_S + 0.1))
    group.deliver(later(4 + SIGN_S + 0.1))
    assert group.machines[BOB.node].teams[TEAM].state.roster.voters == {ANN.node, BOB.node}


def test_who_comes_back_is_answered_with_the_founding_and_takes_no_more_part() -> None:
    group = Group(ANN, BOB).reformed()
    group.reach.append(CY.node)
    group.mail.clear()
    (effect,) = group.tell(BOB, CY, PreVoteRequest(TEAM, 0, 1, 0, 0), later(9))
    assert isinstance(effect, Send)
    left = group.tell(CY, BOB, effect.message, later(9))
    assert Emit(LeftBehind(TEAM, 1)) in left
    assert group.tell(CY, DEE, PreVoteRequest(TEAM, 0, 1, 0, 0), later(9)) == [Send(DEE.node, effect.message)]
    assert group.tell(CY, BOB, effect.message, later(9)) == []


def test_who_was_left_behind_still_is_after_a_restart() -> None:
    group = Group(ANN, BOB).reformed()
    frame = group.machines[ANN.node].teams[TEAM].founding
    group.tell(CY, ANN, Founding(frame), later(9))
    again = group.made(CY.node, later(20))
    assert again.teams[TEAM].halted
    with refused("wrong-launcher"):
        again.handle_message(later(20), ANN.node, SURVEY)


def test_an_old_founding_that_comes_late_is_answered_with_the_new_one() -> None:
    group = Group(ANN, BOB).reformed()
    frame = group.machines[ANN.node].teams[TEAM].founding
    assert group.tell(BOB, CY, Founding(FOUNDING), later(9)) == [Send(CY.node, Founding(frame))]


def test_nobody_but_the_launcher_forms_a_team_anew() -> None:
    with refused("not-allowed"):
        Group(ANN, BOB).machines[BOB.node].handle_command(later(0), ReformTeam(TEAM))


def test_another_team_of_the_same_number_is_refused() -> None:
    """A second founding of one incarnation: of a copy of the launcher's folder, say."""
    group, other = Group(ANN, BOB).reformed(), Group(ANN, BOB, CY).reformed()
    frame = other.machines[ANN.node].teams[TEAM].founding
    with refused("second-founding"):
        group.tell(BOB, ANN, Founding(frame), later(9))


def test_who_lost_its_disk_asks_for_the_state_in_parts_and_never_votes_there() -> None:
    group = Group(ANN, BOB).reformed()
    frame = group.machines[ANN.node].teams[TEAM].founding
    group.disks[BOB.node] = MemoryStorage()
    group.machines[BOB.node] = group.made(BOB.node, later(20))
    group.mail.clear()
    assert group.tell(BOB, ANN, Founding(frame), later(20)) == [Send(ANN.node, StateWanted(TEAM, 1, 0))]
    group.deliver(later(20))
    group.tell(BOB, ANN, Founding(frame), later(21))
    team = group.machines[BOB.node].teams[TEAM]
    assert team.election.incarnation == 1
    assert not team.election.may_vote


def test_a_state_that_is_not_the_adopted_one_is_dropped_and_asked_for_again() -> None:
    group = Group(ANN, BOB).reformed()
    frame = group.machines[ANN.node].teams[TEAM].founding
    group.disks[BOB.node] = MemoryStorage()
    group.machines[BOB.node] = group.made(BOB.node, later(20))
    group.tell(BOB, ANN, Founding(frame), later(20))
    group.tell(BOB, CY, StatePart(TEAM, 1, 5, 0, b"false"), later(20))
    assert group.tell(BOB, ANN, Founding(frame), later(21)) == [Send(ANN.node, StateWanted(TEAM, 1, 0))]


def test_the_state_is_given_to_members_alone() -> None:
    group = Group(ANN, BOB).reformed()
    with refused("not-a-voter"):
        group.tell(ANN, MALLORY, StateWanted(TEAM, 1, 0), later(9))


@pytest.mark.parametrize(
    "change",
    [
        {"goal": "something else"},
        {"launcher": BOB.node},
        {"deadline": ROSTER.deadline + 1},
        {"incarnation": 2},
        {"adopted": None},
        {"members": MEMBERS[:1]},
    ],
)
def test_a_member_signs_only_the_same_team_with_itself_as_it_was(change: dict[str, Any]) -> None:
    adopted = Adopted(0, 0, 0, bytes(32), bytes(32), 1)
    sound: Roster = codec.replace(ROSTER, incarnation=1, adopted=adopted)
    check_successor(sound, ROSTER, BOB.node)
    with refused("not-as-before"):
        check_successor(codec.replace(sound, **change), ROSTER, BOB.node)


def test_a_log_that_ends_later_than_the_adopted_one_is_not_signed_away() -> None:
    group = Group(ANN, BOB)
    adopted = Adopted(0, 0, 0, bytes(32), bytes(32), 1)
    team = group.machines[BOB.node].teams[TEAM]
    team.check_may_leave(adopted)
    with refused("longer-log"):
        team.check_may_leave(codec.replace(adopted, term=-1))


def test_a_founding_without_its_adopted_state_is_none() -> None:
    team = Group(ANN, BOB).reformed().machines[ANN.node].teams[TEAM]
    assert open_team(team.founding, TEAM, NETWORK).adopted is not None
    adopted = team.state.roster.adopted
    assert adopted is not None
    check_state(adopted, team.adopted)
    with refused("wrong-state"):
        check_state(adopted, team.adopted + b"x")
    with refused("other-version"):
        check_state(codec.replace(adopted, version=999), team.adopted)


def test_a_large_state_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_PART_BYTES_MAX", 50)
    group = Group(ANN, BOB).reformed()
    frame = group.machines[ANN.node].teams[TEAM].founding
    group.disks[BOB.node] = MemoryStorage()
    group.machines[BOB.node] = group.made(BOB.node, later(20))
    group.mail.clear()
    group.tell(BOB, ANN, Founding(frame), later(20))
    group.deliver(later(20))
    group.tell(BOB, ANN, Founding(frame), later(21))
    adopted = group.machines[ANN.node].teams[TEAM].adopted
    assert len(adopted) > 100
    assert group.machines[BOB.node].teams[TEAM].adopted == adopted


def test_who_forgot_its_votes_in_the_old_incarnation_votes_in_the_next() -> None:
    group = Group(ANN, BOB)
    group.disks[BOB.node] = MemoryStorage()
    group.disks[BOB.node].commit([Save(SPACE, TEAM, codec.encode(TeamRow(FOUNDING, lost_disk=True)))])
    group.machines[BOB.node] = group.made(BOB.node)
    assert not group.machines[BOB.node].teams[TEAM].election.may_vote
    group.reformed()
    team = group.machines[BOB.node].teams[TEAM]
    assert team.election.incarnation == 1
    assert team.election.may_vote
