"""A witness: called as one, in the roster as one, and no more than that."""

import pytest

from ioa_p2p.effects import Send
from ioa_p2p.steps import Candidate
from ioa_p2p.team.commands import Offer, Policy
from ioa_p2p.team.events import Concluded
from ioa_p2p.team.formation import keepers
from ioa_p2p.team.guest import Guest
from ioa_p2p.team.plan import view_of
from ioa_p2p.team.state import TeamState
from ioa_p2p.team.witness import WITNESS, with_witness, witness
from ioa_p2p.wire import codec, frames
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.team import Bid, BidFrame, Call, Decline
from tests.mind.market import DEVICE
from tests.sim.jobs import Jobs
from tests.team.people import ANN, BOB, DEE, MEMBERS, NETWORK, NOW, ROSTER, TEAM, WALL, no_rows

A, B, C, D = MEMBERS
PHONE = witness(DEE.node, ("/memory/phone",))


def bid_of(member: Member) -> Bid:
    return Bid(member.node, TEAM, member, WALL, 0, WALL, WALL + 60)


def test_a_node_without_agents_is_a_witness_to_whom_it_works_for() -> None:
    guest = Guest(DEE, NETWORK, no_rows, lambda: frozenset({ANN.node}))
    guest.offer(Offer((), addresses=("/memory/phone",)))
    (send,) = guest.on_call(NOW, ANN.node, Call(TEAM, WITNESS, (), "count", WALL + 60), True)
    assert isinstance(send, Send)
    assert isinstance(send.message, BidFrame)
    assert codec.decode(frames.parse(send.message.frame).body, Bid).member == PHONE
    (refusal,) = guest.on_call(NOW, BOB.node, Call(TEAM, WITNESS, (), "count", WALL + 60), True)
    assert refusal == Send(BOB.node, Decline(TEAM, WITNESS, "not-allowed"))


@pytest.mark.parametrize(
    ("members", "always", "comes"),
    [((A, B), False, True), ((A, B, C), False, False), ((A, B, C), True, True), ((A,), False, False)],
)
def test_a_witness_comes_into_a_team_of_two_or_where_it_was_asked_for(
    members: tuple[Member, ...], always: bool, comes: bool
) -> None:
    assert with_witness(members, [bid_of(PHONE)], always=always) == (*members, *([PHONE] if comes else []))


def test_who_is_in_the_team_anyway_is_no_witness_of_it() -> None:
    own = witness(BOB.node, ())
    assert with_witness((A, B), [bid_of(own)], always=True) == (A, B)


def test_a_witness_votes_and_neither_leads_nor_works_nor_keeps_files() -> None:
    roster: Roster = codec.replace(ROSTER, members=(A, B, PHONE))
    assert roster.voters == {ANN.node, BOB.node, DEE.node}
    assert DEE.node not in roster.candidates
    assert DEE.node not in keepers(roster.members)
    view = view_of(TeamState(roster), (ANN.node, "ann"), NOW, lambda node: True, {}, "")
    assert [member.agent for member in view.members] == ["ann", "bob"]


def test_with_a_witness_two_go_on_while_the_launcher_is_away() -> None:
    agents = {"asker": (), "device-1": (DEVICE,), "phone": ()}
    jobs = Jobs(4, agents, goal="How are my devices doing?", policy=Policy(goal_s=120))
    jobs.policy = with_phone(jobs)
    jobs.start()
    jobs.launch()
    assert jobs.world.run(20, until=lambda: len(jobs.teams()) == 3)
    assert {member.agent for member in jobs.teams()[jobs.asker].state.roster.members if member.witness} == {WITNESS}
    assert jobs.world.run(20, until=lambda: bool(jobs.runs))
    jobs.crash(jobs.asker)
    assert jobs.world.run(60, until=lambda: bool(jobs.told(Concluded, jobs.node("device-1"))))


def with_phone(jobs: Jobs) -> Policy:
    phone = Candidate(jobs.node("phone"), WITNESS)
    return Policy(goal_s=120, leaders=frozenset(jobs.names), witnesses=(phone,))
