"""The asked side: full effect lists."""

import pytest

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.effects import Effect, Save, Send
from ioa_p2p.team.commands import Offer
from ioa_p2p.team.guest import SPACE, Guest, Signed
from ioa_p2p.team.roster import sign
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.team import Bid, BidFrame, Call, Decline, Invitation, InviteFrame
from tests.team.people import ANN, BOB, COUNT, MALLORY, MEMBERS, NETWORK, NOW, ROSTER, TEAM, WALL, later, no_rows

CALL = Call(TEAM, "bob", ("words.count",), "count the words", WALL + 600)
BELOW_IT = codec.replace(CALL, ancestors=(b"above team 16 B.",))
INVITATION = Invitation(codec.encode(ROSTER))


def guest(load: int = 0, busy_s: int = 0) -> Guest:
    made = Guest(BOB, NETWORK, no_rows, lambda: frozenset({ANN.node}))
    made.offer(Offer((MEMBERS[1],), load, busy_s))
    return made


def test_an_agent_that_waits_for_the_team_or_one_above_it_declines() -> None:
    above = b"above team 16 B."
    for team, called, refused in ((TEAM, CALL, True), (above, CALL, False), (above, BELOW_IT, True)):
        waits = lambda path, team=team: frozenset({"bob"} if team in path else ())  # noqa: E731
        made = Guest(BOB, NETWORK, no_rows, lambda: frozenset({ANN.node}), waits)
        made.offer(Offer((MEMBERS[1],)))
        (answer,) = made.on_call(NOW, ANN.node, called, True)
        assert isinstance(answer, Send)
        assert (answer.message == Decline(TEAM, "bob", "cycle")) is refused


def bid_in(effects: list[Effect]) -> Bid:
    (send,) = effects
    assert isinstance(send, Send)
    assert send.to == ANN.node
    assert isinstance(send.message, BidFrame)
    return open_frame(frames.parse(send.message.frame), NETWORK, Kind.BID, Bid)


def test_a_call_is_answered_with_a_signed_bid_for_the_skills_asked() -> None:
    member = codec.replace(MEMBERS[1], skills=(COUNT,))
    bid = bid_in(guest(load=7, busy_s=5).on_call(NOW, ANN.node, CALL, True))
    assert bid == Bid(BOB.node, TEAM, member, WALL + 5, 7, WALL, WALL + 60)


@pytest.mark.parametrize(
    ("peer", "call", "room", "load", "reason"),
    [
        (MALLORY.node, CALL, True, 0, "not-allowed"),
        (MALLORY.node, codec.replace(CALL, agent="nobody"), True, 255, "not-allowed"),
        (ANN.node, codec.replace(CALL, agent="nobody"), True, 0, "no-such-agent"),
        (ANN.node, codec.replace(CALL, skills=("words.count", "fly")), True, 0, "no-such-agent"),
        (ANN.node, codec.replace(CALL, deadline=WALL - 601), True, 0, "deadline"),
        (ANN.node, CALL, False, 0, "busy"),
        (ANN.node, CALL, True, 255, "busy"),
    ],
)
def test_a_call_is_declined_with_a_code_and_strangers_learn_nothing(
    peer: bytes, call: Call, room: bool, load: int, reason: str
) -> None:
    assert guest(load).on_call(NOW, peer, call, room) == [Send(peer, Decline(TEAM, call.agent, reason))]


def test_nobody_is_allowed_by_default() -> None:
    shut = Guest(BOB, NETWORK, no_rows, frozenset)
    shut.offer(Offer((MEMBERS[1],)))
    assert shut.on_call(NOW, ANN.node, CALL, True) == [Send(ANN.node, Decline(TEAM, "bob", "not-allowed"))]
    assert shut.on_invitation(NOW, ANN.node, INVITATION) == [Send(ANN.node, Decline(TEAM, "any", "not-allowed"))]


def test_our_own_launch_needs_no_permission() -> None:
    own = Guest(ANN, NETWORK, no_rows, frozenset)
    own.offer(Offer((MEMBERS[1],)))
    (send,) = own.on_call(NOW, ANN.node, CALL, True)
    assert isinstance(send, Send)
    assert isinstance(send.message, BidFrame)


def test_a_signature_is_remembered_before_it_leaves_with_how_the_clocks_differ() -> None:
    asked = guest()
    effects = asked.on_invitation(later(-40), ANN.node, INVITATION)
    assert effects == [
        Save(SPACE, TEAM, codec.encode(Signed(WALL + 600, 40))),
        Send(ANN.node, InviteFrame(TEAM, sign(BOB, NETWORK, INVITATION.roster, later(-40)))),
    ]
    assert asked.signed(TEAM) == Signed(WALL + 600, 40)


def test_a_roster_that_is_not_as_bid_is_declined_and_not_remembered() -> None:
    asked = guest()
    wrong = Invitation(codec.encode(codec.replace(ROSTER, deadline=WALL)))
    assert asked.on_invitation(NOW, ANN.node, wrong) == [Send(ANN.node, Decline(TEAM, "any", "deadline"))]
    assert asked.signed(TEAM) is None


def test_what_was_signed_is_known_after_a_restart_and_forgotten_when_it_is_too_late() -> None:
    rows = [(TEAM, codec.encode(Signed(WALL + 600, 3)))]
    again = Guest(BOB, NETWORK, lambda space: rows if space == SPACE else [], frozenset)
    assert again.start(NOW) == []
    assert again.signed(TEAM) == Signed(WALL + 600, 3)
    assert again.start(later(600 + 601)) == [Save(SPACE, TEAM, None)]
    assert again.signed(TEAM) is None
    assert again.forget(TEAM) == []


def test_a_launcher_that_founds_nothing_fills_neither_memory_nor_disk() -> None:
    asked, kept = guest(), set[bytes]()
    for number in range(limits.INVITES_SIGNED_MAX + 3):
        roster = codec.replace(ROSTER, team=number.to_bytes(16, "big"))
        for effect in asked.on_invitation(NOW, ANN.node, Invitation(codec.encode(roster))):
            if isinstance(effect, Save):
                kept = kept - {effect.key} if effect.value is None else kept | {effect.key}
    assert len(kept) == limits.INVITES_SIGNED_MAX
    assert asked.signed((0).to_bytes(16, "big")) is None
    assert asked.signed(number.to_bytes(16, "big")) is not None
