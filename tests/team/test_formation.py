"""The launcher's side: full effect lists of every stage."""

import pytest

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Save, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.steps import Candidate, Role
from ioa_p2p.team.commands import Launch, Policy
from ioa_p2p.team.decisions import open_founding
from ioa_p2p.team.events import Bidding, BidHeard, Connect, LaunchFailed
from ioa_p2p.team.formation import SPACE, Formation, Journal, keepers
from ioa_p2p.team.roster import open_found, sign
from ioa_p2p.wire import codec
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.team import Bid, Call, Invitation
from tests.team.people import ANN, BOB, CY, DEE, MALLORY, MEMBERS, NETWORK, NOW, TEAM, WALL, later

A, B, C, D = MEMBERS


def candidate(one: Member) -> Candidate:
    return Candidate(one.node, one.agent, one.addresses)


COUNTERS = Role("count", ("words.count",), (candidate(B), candidate(C)))
MAILER = Role("mail", ("mail.send",), (candidate(D),))
LEADERS = frozenset({BOB.node, CY.node, DEE.node})
LAUNCH = Launch(TEAM, "count the words", A, (COUNTERS, MAILER), Policy(spares=0, leaders=LEADERS))


def call(one: Member, *skills: str) -> Call:
    return Call(TEAM, one.agent, skills, "count the words", WALL + 600)


CALLS = [
    Send(BOB.node, call(B, "words.count")),
    Send(CY.node, call(C, "words.count")),
    Send(DEE.node, call(D, "mail.send")),
]


def begun(launch: Launch = LAUNCH) -> Formation:
    formation = Formation(ANN, NETWORK, Journal(launch, WALL), NOW)
    formation.begin()
    return formation


def bid(key: NodeKey, one: Member, load: int = 0, expires: int = WALL + 60) -> bytes:
    return seal(key, NETWORK, Kind.BID, Bid(key.node, TEAM, one, WALL, load, WALL, expires))


def sent(effects: list[Effect]) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send)]


def invited(effects: list[Effect]) -> Roster:
    """The one roster that these effects ask to sign."""
    rosters = {send.message.roster for send in sent(effects) if isinstance(send.message, Invitation)}
    assert len(rosters) == 1
    return codec.decode(rosters.pop(), Roster)


def all_bid(formation: Formation) -> list[Effect]:
    for key, one in ((BOB, B), (CY, C)):
        formation.on_bid(NOW, key.node, bid(key, one))
    return formation.on_bid(NOW, DEE.node, bid(DEE, D))


def test_the_journal_is_written_before_anything_is_sent() -> None:
    formation = Formation(ANN, NETWORK, Journal(LAUNCH, WALL), NOW)
    assert formation.begin() == [
        Save(SPACE, TEAM, codec.encode(Journal(LAUNCH, WALL))),
        Emit(Connect(BOB.node, B.addresses)),
        Emit(Connect(CY.node, C.addresses)),
        Emit(Connect(DEE.node, D.addresses)),
        *CALLS,
    ]


def test_who_has_not_answered_is_asked_again_and_a_new_link_at_once() -> None:
    formation = begun()
    formation.on_bid(NOW, BOB.node, bid(BOB, B))
    assert formation.tick(later(0.5)) == CALLS[1:]
    assert formation.ask(CY.node) == [CALLS[1]]
    assert formation.ask(BOB.node) == []


def test_a_bid_is_saved_and_told_and_counts_once() -> None:
    formation = begun()
    body = Bid(BOB.node, TEAM, B, WALL, 9, WALL, WALL + 60)
    frame = seal(BOB, NETWORK, Kind.BID, body)
    assert formation.on_bid(NOW, BOB.node, frame) == [
        Save(SPACE, TEAM, codec.encode(Journal(LAUNCH, WALL, (body,)))),
        Emit(BidHeard(TEAM, BOB.node, "bob", willing=True, load=9)),
        Emit(Bidding(TEAM, 3, 1)),
    ]
    assert formation.on_bid(NOW, BOB.node, frame) == []


def test_a_no_is_told_and_counts_as_an_answer() -> None:
    formation = begun()
    effects = formation.on_decline(NOW, BOB.node, "bob", "busy")
    assert Emit(BidHeard(TEAM, BOB.node, "bob", willing=False, reason="busy")) in effects
    assert formation.on_decline(NOW, BOB.node, "bob", "busy") == []
    assert formation.tick(later(0.5)) == CALLS[1:]


@pytest.mark.parametrize(
    ("peer", "frame", "code"),
    [
        (MALLORY.node, bid(MALLORY, codec.replace(B, node=MALLORY.node)), "wrong-bid"),
        (MALLORY.node, bid(MALLORY, B), "wrong-bid"),
        (MALLORY.node, bid(BOB, B), "wrong-bid"),
        (BOB.node, bid(BOB, codec.replace(B, skills=())), "wrong-bid"),
        (BOB.node, bid(BOB, B, 0, WALL - 601), "wrong-bid"),
        (BOB.node, bid(BOB, B)[:-64] + bid(MALLORY, B)[-64:], "bad-signature"),
        (BOB.node, sign(BOB, NETWORK, codec.encode(Roster(TEAM, 0, "", ANN.node, (A, B), 0, 1)), NOW), "wrong-kind"),
    ],
)
def test_a_bid_must_be_the_called_agents_own(peer: bytes, frame: bytes, code: str) -> None:
    with pytest.raises(PeerError) as refused:
        begun().on_bid(NOW, peer, frame)
    assert refused.value.code == code


def test_when_all_have_answered_the_best_bids_are_invited() -> None:
    formation = begun()
    formation.on_bid(NOW, BOB.node, bid(BOB, B, load=50))
    formation.on_bid(NOW, CY.node, bid(CY, C, load=3))
    effects = formation.on_bid(NOW, DEE.node, bid(DEE, D))
    roster = invited(effects)
    assert roster == Roster(
        TEAM, 0, "count the words", ANN.node, (A, C, D), WALL, WALL + 600, keepers=keepers((A, C, D))
    )
    assert [send.to for send in sent(effects)] == sorted([CY.node, DEE.node])


def test_costs_decide_before_load_and_the_given_order_between_equals() -> None:
    formation = begun()
    formation.on_bid(NOW, CY.node, bid(CY, codec.replace(C, cost=2)))
    formation.on_bid(NOW, BOB.node, bid(BOB, codec.replace(B, cost=1), load=200))
    assert invited(formation.on_bid(NOW, DEE.node, bid(DEE, D))).members[1].agent == "bob"
    assert invited(all_bid(begun())).members[1].agent == "bob"


def test_when_time_is_up_who_did_bid_is_invited() -> None:
    formation = begun()
    formation.on_bid(NOW, CY.node, bid(CY, C))
    formation.on_bid(NOW, DEE.node, bid(DEE, D))
    assert sent(formation.tick(later(2.9))) == [CALLS[0]]
    assert invited(formation.tick(later(3.0))).members == (A, C, D)


def test_a_spare_is_kept_and_an_input_for_all_takes_all() -> None:
    spare = Launch(TEAM, "g", A, (COUNTERS, MAILER), Policy(leaders=LEADERS))
    assert invited(all_bid(begun(spare))).members == (A, B, D, C)
    everybody = Role("count", ("words.count",), COUNTERS.candidates, count=0)
    assert invited(all_bid(begun(Launch(TEAM, "g", A, (everybody, MAILER), LAUNCH.policy)))).members == (A, B, C, D)


def test_strangers_may_work_but_not_lead() -> None:
    roster = invited(all_bid(begun(Launch(TEAM, "g", A, (COUNTERS, MAILER), Policy(spares=0)))))
    assert roster.candidates == {ANN.node}
    assert roster.voters == {ANN.node, BOB.node, DEE.node}


@pytest.mark.parametrize("silent", [True, False])
def test_a_role_without_a_bid_ends_the_launch_with_its_name(silent: bool) -> None:
    formation = begun()
    formation.on_bid(NOW, BOB.node, bid(BOB, B))
    formation.on_bid(NOW, CY.node, bid(CY, C))
    effects = formation.tick(later(3)) if silent else formation.on_decline(NOW, DEE.node, "dee", "not-allowed")
    assert effects[-2:] == [Save(SPACE, TEAM, None), Emit(LaunchFailed(TEAM, "nobody-fits", ("mail",)))]
    assert formation.over
    assert not formation.founding


def test_who_does_not_sign_in_time_is_replaced_and_all_sign_anew() -> None:
    formation = begun()
    first = invited(all_bid(formation))
    formation.on_signature(NOW, DEE.node, sign(DEE, NETWORK, codec.encode(first), NOW))
    assert [send.to for send in sent(formation.tick(later(3.9)))] == [BOB.node]
    effects = formation.tick(later(4))
    assert invited(effects).members == (A, C, D)
    assert {send.to for send in sent(effects)} == {CY.node, DEE.node}


def test_who_refuses_to_sign_is_replaced_at_once() -> None:
    formation = begun()
    all_bid(formation)
    assert invited(formation.on_decline(NOW, BOB.node, "any", "clock")).members == (A, C, D)


def test_nobody_left_for_a_role_is_too_few() -> None:
    formation = begun()
    all_bid(formation)
    effects = formation.on_decline(NOW, DEE.node, "any", "clock")
    assert effects == [Save(SPACE, TEAM, None), Emit(LaunchFailed(TEAM, "too-few", ("mail",)))]


def test_a_roster_that_no_step_can_carry_is_not_sent() -> None:
    keys = [NodeKey(bytes([number]) * 32) for number in range(100, 115)]
    wordy = tuple(codec.replace(B.skills[0], name=f"words.count-{n}", description="ü" * 240) for n in range(9))
    members = [
        codec.replace(B, node=key.node, agent=f"a{n}", skills=(B.skills[0], *wordy)) for n, key in enumerate(keys)
    ]
    role = Role("count", ("words.count",), tuple(map(candidate, members)), count=0)
    formation = begun(Launch(TEAM, "g", A, (role,), LAUNCH.policy))
    effects = [formation.on_bid(NOW, key.node, bid(key, one)) for key, one in zip(keys, members, strict=True)]
    assert effects[-1][-1] == Emit(LaunchFailed(TEAM, "too-large", ()))


def test_when_all_signed_the_founding_entry_proves_the_team() -> None:
    formation = begun()
    roster = invited(all_bid(formation))
    for key in (BOB, DEE):
        assert not formation.over
        effects = formation.on_signature(later(1), key.node, sign(key, NETWORK, codec.encode(roster), NOW))
    assert effects[-1] == Save(SPACE, TEAM, None)
    assert formation.over
    entry = open_founding(formation.founding, NETWORK, TEAM, 0)
    assert open_found(entry.step, entry.node, TEAM, NETWORK) == roster
    assert entry.at == WALL + 1


def test_a_signature_counts_only_for_this_roster_and_its_own_voter() -> None:
    formation = begun()
    roster = codec.encode(invited(all_bid(formation)))
    other = codec.encode(codec.replace(codec.decode(roster, Roster), goal="other"))
    for peer, frame in (
        (BOB.node, sign(BOB, NETWORK, other, NOW)),
        (MALLORY.node, sign(BOB, NETWORK, roster, NOW)),
        (MALLORY.node, sign(MALLORY, NETWORK, roster, NOW)),
    ):
        with pytest.raises(PeerError) as refused:
            formation.on_signature(NOW, peer, frame)
        assert refused.value.code == "wrong-invite"
    assert not formation.over


def test_a_launcher_that_died_goes_on_where_it_was() -> None:
    formation = begun()
    effects = all_bid(formation)
    saved = [effect.value for effect in effects if isinstance(effect, Save)][-1]
    assert saved is not None
    again = Formation(ANN, NETWORK, codec.decode(saved, Journal), later(100))
    assert invited(again.begin()) == invited(effects)
    assert {send.to for send in sent(again.tick(later(101)))} == {BOB.node, DEE.node}


def test_a_launcher_whose_own_agent_alone_fits_founds_a_team_of_one() -> None:
    formation = begun(Launch(TEAM, "count the words", A, (Role("count", (), (candidate(A),)),)))
    formation.on_bid(NOW, ANN.node, bid(ANN, A))
    assert formation.founding


def test_the_two_of_highest_rank_keep_and_nobody_whose_owner_does_not_want_to() -> None:
    def one(number: int, rank: int) -> Member:
        return Member(bytes([number]) * 32, f"agent-{number}", rank=rank)

    keys = [bytes([number]) * 32 for number in range(4)]
    assert keepers([one(0, 100), one(1, 200), one(2, 100), one(3, 0)]) == (keys[1], keys[0])
    assert keepers([one(0, 0), one(1, 0)]) == ()
    assert keepers([one(0, 50), one(0, 50)]) == (keys[0],)
