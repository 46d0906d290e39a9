"""Entry 0 proves the team: sender, receiver and mallory."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import founding_frame, open_founding
from ioa_p2p.team.roster import Terms, check_signature, check_terms, open_found, sign
from ioa_p2p.wire import codec
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.step import Elect, Found, encode_step
from ioa_p2p.wire.team import Invite
from tests.team.people import ANN, BOB, COUNT, CY, DEE, MALLORY, MEMBERS, NETWORK, NOW, ROSTER, TEAM, WALL, founding

BYTES = codec.encode(ROSTER)
TERMS = Terms(BOB.node, (MEMBERS[1],), frozenset({ANN.node}))


def opened(frame: bytes) -> Roster:
    entry = open_founding(frame, NETWORK, TEAM, 0)
    return open_found(entry.step, entry.node, TEAM, NETWORK)


def founded_with(*invites: bytes, roster: bytes = BYTES, by: NodeKey = ANN) -> bytes:
    return founding_frame(by, NETWORK, TEAM, 0, WALL, encode_step(Found(roster, invites)))


def own(key: NodeKey) -> bytes:
    return sign(key, NETWORK, BYTES, NOW)


def test_a_roster_that_every_voter_signed_founds_the_team() -> None:
    assert opened(founding()) == ROSTER


def test_a_signature_names_the_roster_and_its_voter() -> None:
    assert check_signature(own(BOB), NETWORK, BYTES, TEAM) == BOB.node


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (founded_with(own(ANN), own(BOB), own(CY)), "signature-missing"),
        (founded_with(own(ANN), own(BOB), own(CY), own(CY)), "signature-missing"),
        (founded_with(own(ANN), own(BOB), own(CY), own(MALLORY)), "signature-missing"),
        (founded_with(own(ANN), own(BOB), own(CY), own(DEE), own(MALLORY)), "signature-missing"),
        (founded_with(own(ANN), own(BOB), own(CY), own(DEE), by=MALLORY), "wrong-founding"),
        (founding(codec.replace(ROSTER, launcher=BOB.node)), "wrong-founding"),
        (founding(codec.replace(ROSTER, members=(*MEMBERS, MEMBERS[1]))), "wrong-founding"),
        (founding(codec.replace(ROSTER, members=MEMBERS[1:]), (BOB, CY, DEE)), "wrong-founding"),
        (founding_frame(ANN, NETWORK, TEAM, 0, WALL, encode_step(Elect())), "wrong-founding"),
        (founding_frame(ANN, NETWORK, TEAM, 0, WALL, b"junk"), "undecodable"),
    ],
)
def test_an_entry_that_does_not_prove_the_team_is_refused(frame: bytes, code: str) -> None:
    with pytest.raises(PeerError) as refused:
        opened(frame)
    assert refused.value.code == code


def mallory_signs_as_dee() -> bytes:
    body = Invite(DEE.node, TEAM, blake(BYTES), WALL, WALL + 600)
    honest = seal(DEE, NETWORK, Kind.INVITE, body)
    return honest[:-64] + seal(MALLORY, NETWORK, Kind.INVITE, codec.replace(body, node=MALLORY.node))[-64:]


def dees_signature_for_another_roster() -> bytes:
    return sign(DEE, NETWORK, codec.encode(codec.replace(ROSTER, goal="something else")), NOW)


def dees_signature_of_another_mesh() -> bytes:
    return sign(DEE, b"other mesh 16 B.", BYTES, NOW)


@pytest.mark.parametrize(
    ("forge", "code"),
    [
        (mallory_signs_as_dee, "bad-signature"),
        (dees_signature_for_another_roster, "wrong-invite"),
        (dees_signature_of_another_mesh, "bad-signature"),
        (lambda: own(DEE)[:-1], "short-frame"),
        (lambda: seal(DEE, NETWORK, Kind.BID, Invite(DEE.node, TEAM, blake(BYTES), 0, 0)), "wrong-kind"),
    ],
)
def test_mallory_cannot_sign_for_dee(forge: Callable[[], bytes], code: str) -> None:
    with pytest.raises(PeerError) as refused:
        opened(founded_with(own(ANN), own(BOB), own(CY), forge()))
    assert refused.value.code == code


def test_a_changed_roster_under_true_signatures_is_refused() -> None:
    richer = codec.encode(codec.replace(ROSTER, deadline=WALL + 9_999))
    with pytest.raises(PeerError, match="another roster"):
        opened(founded_with(own(ANN), own(BOB), own(CY), own(DEE), roster=richer))


def test_a_member_signs_what_it_offered() -> None:
    check_terms(ROSTER, ANN.node, TERMS, NOW)


def with_bob(bob: Member) -> Roster:
    return codec.replace(ROSTER, members=(MEMBERS[0], bob, *MEMBERS[2:]))


@pytest.mark.parametrize(
    "bob",
    [
        codec.replace(MEMBERS[1], may_coordinate=False),
        codec.replace(MEMBERS[1], addresses=("/memory/new",)),
        codec.replace(MEMBERS[1], skills=(COUNT,)),
    ],
    ids=["may-not-lead", "moved", "fewer-skills"],
)
def test_the_launcher_may_ask_for_less(bob: Member) -> None:
    check_terms(with_bob(bob), ANN.node, TERMS, NOW)


@pytest.mark.parametrize(
    ("roster", "launcher", "code"),
    [
        (ROSTER, MALLORY.node, "not-allowed"),
        (codec.replace(ROSTER, launcher=CY.node), ANN.node, "wrong-launcher"),
        (codec.replace(ROSTER, members=MEMBERS[1:]), ANN.node, "wrong-launcher"),
        (codec.replace(ROSTER, created=WALL - 601), ANN.node, "clock"),
        (codec.replace(ROSTER, created=WALL + 601, deadline=WALL + 900), ANN.node, "clock"),
        (codec.replace(ROSTER, deadline=WALL), ANN.node, "deadline"),
        (codec.replace(ROSTER, members=(*MEMBERS, *(MEMBERS[2],) * 13)), ANN.node, "too-large"),
        (codec.replace(ROSTER, ancestors=(TEAM,)), ANN.node, "cycle"),
        (codec.replace(ROSTER, members=(MEMBERS[0], MEMBERS[2])), ANN.node, "not-as-bid"),
        (with_bob(codec.replace(MEMBERS[1], rank=255)), ANN.node, "not-as-bid"),
        (with_bob(codec.replace(MEMBERS[1], cost=1)), ANN.node, "not-as-bid"),
        (with_bob(codec.replace(MEMBERS[1], agent="other")), ANN.node, "not-as-bid"),
        (with_bob(codec.replace(MEMBERS[1], skills=(codec.replace(COUNT, effect="once"),))), ANN.node, "not-as-bid"),
    ],
)
def test_a_member_does_not_sign_anything_else(roster: Roster, launcher: bytes, code: str) -> None:
    with pytest.raises(PeerError) as refused:
        check_terms(roster, launcher, TERMS, NOW)
    assert refused.value.code == code


def test_an_agent_that_waits_for_a_team_above_does_not_sign_and_its_neighbour_does() -> None:
    for waiting, refused in (({"bob"}, True), ({"bobs-neighbour"}, False)):
        terms = Terms(TERMS.node, TERMS.members, TERMS.allowed, waiting=frozenset(waiting))
        with pytest.raises(PeerError, match="wait for itself") if refused else nullcontext():
            check_terms(ROSTER, ANN.node, terms, NOW)


def test_a_member_that_may_not_lead_is_not_made_to() -> None:
    modest = Terms(BOB.node, (codec.replace(MEMBERS[1], may_coordinate=False),), frozenset({ANN.node}))
    with pytest.raises(PeerError, match="not-as-bid"):
        check_terms(ROSTER, ANN.node, modest, Now(float(WALL), 0.0))
