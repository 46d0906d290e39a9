"""Directed worlds of an election: what random dice make too rarely. Each raises Violation or returns its world."""

from collections.abc import Callable
from typing import Any

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.team.role import Role
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import Append, Vote
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from tests.sim.election import Trial
from tests.sim.scenario import Violation
from tests.sim.steering import elect, end, expect, leading, settled, star, without
from tests.sim.teams import NETWORK, TEAM, members
from tests.sim.world import World


def figure_8(part: Any) -> World:
    """Raft paper, Figure 8, with more old entries than one Append holds.

    One's old entries reach a majority in pieces, without its new term's first; then five, whose log ends in a
    higher term, is elected and replaces them. Who counted them as decided was wrong.
    """
    trial = settled(part)
    one, two, three, four, five = trial.nodes
    elect(trial, one, [two, three, four, five])
    trial.world.run(0.6)
    star(trial, one, [two])
    for _ in range(limits.APPEND_ENTRIES_MAX + 20):
        trial.propose(one)
    trial.world.run(0.1)
    trial.world.crash(one)
    elect(trial, five, [three, four])
    star(trial, five, [])
    trial.world.crash(five)
    trial.world.restart(one)
    elect(trial, one, [two, three])
    old = members(trial.world)[three].last_index
    expect(trial.world.run(2, until=lambda: members(trial.world)[three].last_index > old), "a first batch")
    trial.world.cut(one, two)
    trial.world.cut(one, three)
    trial.world.run(0.05)
    trial.world.crash(one)
    trial.world.restart(five)
    elect(trial, five, [three, four])
    return end(trial)


def shorter_log(part: Any) -> World:
    """Four and five lack what one, two and three decided; three is asked to vote for four."""
    trial = settled(part)
    one, two, three, four, five = trial.nodes
    elect(trial, one, [two, three])
    trial.propose(one)
    trial.world.run(0.5)
    trial.world.crash(one)
    star(trial, four, [three, five])
    trial.world.run(5, until=lambda: members(trial.world)[four].role is Role.COORDINATOR)
    return end(trial)


def member_returns(part: Any) -> World:
    """A member that was cut off for long comes back: the coordinator and its term stay."""
    return _undisturbed(part, lambda trial, lead, other: trial.world.split([other], without(trial.nodes, other)))


def one_link_broken(part: Any) -> World:
    """One member and the coordinator do not hear each other, all others do: the coordinator stays."""
    return _undisturbed(part, lambda trial, lead, other: trial.world.split([other], [lead]))


def coordinator_alone(part: Any) -> World:
    """A coordinator that hears nobody falls silent within its lease."""
    trial = settled(part)
    lead = leading(trial)
    for node in without(trial.nodes, lead):
        trial.world.cut(node, lead)
    trial.propose(lead)
    trial.world.run(5)
    return end(trial)


def lost_disk(part: Any) -> World:
    """Two votes for one, loses its disk, and is asked by three in the same term."""
    trial = settled(part, 3)
    one, two, three = trial.nodes
    star(trial, three, [])
    trial.world.run(2)
    elect(trial, one, [two])
    trial.crash(two, lose_disk=True)
    trial.world.restart(two)
    star(trial, three, [two])
    trial.world.run(5)
    trial.calm()
    trial.world.run(5)
    expect(members(trial.world)[two].commit_index == members(trial.world)[one].commit_index, "two is caught up")
    return end(trial)


def forged_certificate(part: Any) -> World:
    """A member claims a high term with its own votes, one of them repeated, and one of them of a stranger's name."""
    trial = settled(part)
    lead = leading(trial)
    mallory = trial.cast.keys[trial.nodes.index(without(trial.nodes, lead)[0])]
    term = members(trial.world)[lead].term + 5
    own = seal(mallory, NETWORK, Kind.VOTE, _vote(trial, mallory.node, mallory.node, term))
    stray = seal(mallory, NETWORK, Kind.VOTE, _vote(trial, mallory.node, lead, term))
    for certificate in ((own,), (own, own, own), (own, stray, own)):
        claim = Append(TEAM, 0, term, 0, 0, (), 0, 0, certificate)
        for node in without(trial.nodes, mallory.node):
            trial.world.deliver(mallory.node, node, claim)
            trial.world.run(0.001)
    return end(trial)


SCHEDULES: dict[str, Callable[[Any], World]] = {
    "figure-8": figure_8,
    "shorter-log": shorter_log,
    "member-returns": member_returns,
    "one-link-broken": one_link_broken,
    "coordinator-alone": coordinator_alone,
    "lost-disk": lost_disk,
    "forged-certificate": forged_certificate,
}


def _undisturbed(part: Any, disturb: Callable[[Trial, bytes, bytes], None]) -> World:
    trial = settled(part)
    lead = leading(trial)
    term = members(trial.world)[lead].term
    disturb(trial, lead, without(trial.nodes, lead)[0])
    trial.world.run(8)
    trial.world.mend()
    trial.world.run(4)
    member = members(trial.world)[lead]
    if (member.role, member.term) != (Role.COORDINATOR, term):
        raise Violation("undisturbed", f"term {term} became {member.term} though its coordinator was well")
    return end(trial)


def _vote(trial: Trial, voter: bytes, candidate: bytes, term: int) -> Vote:
    return Vote(voter, TEAM, 0, term, candidate, 0, blake(trial.cast.founding), 0, 0)
