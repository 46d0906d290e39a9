"""Who stands how in a team: changes by one node, each refusal by name; the decided state follows the same rules."""

from dataclasses import replace

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.errors import PeerError
from ioa_p2p.team.standing import Standing, changed, check_admission
from ioa_p2p.team.state import Refused, RosterMoved
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.step import Admit, Promote, Remove, RosterStep
from tests.team.people import ANN, BOB, COUNT, CY, DEE, EVE, MALLORY, NETWORK, TEAM, Log, admission, member

FOUR = frozenset(key.node for key in (ANN, BOB, CY, DEE))
FOUNDED = Standing(FOUR, frozenset({ANN.node, BOB.node}))
WITH_EVE = changed(FOUNDED, admission(EVE))


def refused(before: Standing, step: RosterStep) -> str:
    with pytest.raises(PeerError) as told:
        changed(before, step)
    return told.value.code


def test_a_newcomer_learns_first_then_votes_and_may_lead_if_it_said_so() -> None:
    assert replace(FOUNDED, learners=frozenset({EVE.node}), candidates=FOUNDED.candidates | {EVE.node}) == WITH_EVE
    voting = changed(WITH_EVE, Promote(EVE.node))
    assert (voting.voters, voting.learners) == (FOUR | {EVE.node}, frozenset())
    modest = changed(FOUNDED, admission(EVE, codec.replace(member(EVE, "eve", COUNT), may_coordinate=False)))
    assert modest.candidates == FOUNDED.candidates


def test_who_is_removed_is_gone_for_good() -> None:
    for before in (WITH_EVE, changed(WITH_EVE, Promote(EVE.node))):
        left = changed(before, Remove(EVE.node))
        assert left == replace(FOUNDED, gone=frozenset({EVE.node}))
        assert refused(left, admission(EVE)) == "was-removed"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (admission(EVE), "already-in"),
        (admission(BOB, member(BOB, "bob")), "already-in"),
        (Promote(BOB.node), "not-a-learner"),
        (Promote(MALLORY.node), "not-a-learner"),
        (Remove(MALLORY.node), "not-a-member"),
    ],
)
def test_a_change_that_changes_nothing_is_refused(step: RosterStep, code: str) -> None:
    assert refused(WITH_EVE, step) == code


def test_the_last_that_may_coordinate_stays_though_a_willing_learner_waits() -> None:
    alone = changed(WITH_EVE, Remove(BOB.node))
    assert refused(alone, Remove(ANN.node)) == "last-candidate"
    assert ANN.node not in changed(changed(alone, Promote(EVE.node)), Remove(ANN.node)).voters


def test_a_team_grows_to_sixteen_nodes() -> None:
    standing, number = FOUNDED, 0
    while len(standing.nodes) < limits.VOTERS_ADMITTED_MAX:
        number += 1
        key = NodeKey(bytes([100 + number]) * 32)
        standing = changed(standing, admission(key, member(key, "more")))
    assert refused(standing, admission(EVE)) == "too-many-voters"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (admission(EVE, signer=MALLORY), ""),
        (admission(EVE, team=bytes(16)), "wrong-admission"),
        (Admit(admission(EVE).terms, admission(EVE, member(EVE, "other")).invite), "wrong-admission"),
        (Admit(admission(EVE).terms, admission(EVE).invite[:-1] + b"\x00"), "bad-signature"),
        (Admit(admission(EVE).terms, b"junk"), "short-frame"),
    ],
)
def test_only_who_signed_for_this_team_is_let_in(step: Admit, code: str) -> None:
    if code:
        with pytest.raises(PeerError) as told:
            check_admission(step, NETWORK, TEAM)
        assert told.value.code == code
    else:
        check_admission(step, NETWORK, TEAM)
        assert refused(FOUNDED, step) == "wrong-admission"


def test_a_signature_of_another_mesh_lets_nobody_in() -> None:
    with pytest.raises(PeerError):
        check_admission(admission(EVE), network_id("other"), TEAM)


def test_the_decided_roster_gains_and_loses_the_nodes_agents() -> None:
    log, eve = Log(), member(EVE, "eve", COUNT)
    assert log.add(admission(EVE)) == [RosterMoved(admission(EVE), EVE.node, (eve,))]
    assert log.state.member(EVE.node, "eve") == eve
    assert log.state.standing == WITH_EVE.__class__(FOUR, FOUR | {EVE.node}, frozenset({EVE.node}))
    assert log.add(Promote(EVE.node)) == [RosterMoved(Promote(EVE.node), EVE.node, (eve,))]
    assert log.add(Remove(EVE.node, 7)) == [RosterMoved(Remove(EVE.node, 7), EVE.node, (eve,))]
    assert EVE.node not in log.state.roster.voters
    assert log.add(Promote(EVE.node)) == [Refused("not-a-learner")]
