"""Directed worlds in which who may vote changes, and the faults of that; rule I9. Each raises Violation or returns its
world."""

from collections.abc import Callable
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Propose
from ioa_p2p.team.intake import Intake, check_log
from ioa_p2p.team.role import Role
from ioa_p2p.wire.decision import DecisionMessage
from ioa_p2p.wire.step import Remove, encode_step
from tests.sim.election import Trial
from tests.sim.mutants import IgnoresLease, SkipsPreVote
from tests.sim.scenario import Mutant, Violation
from tests.sim.steering import elect, end, expect, settled, star, without
from tests.sim.teams import coordinator, members
from tests.sim.world import World

REST_S = 1.0


def _remove(trial: Trial, lead: bytes, node: bytes) -> None:
    """Asked of a coordinator, which may refuse."""
    try:
        trial.world.command(lead, Propose(encode_step(Remove(node)), b"remove" + node))
    except UsageError:
        return


def change_before_a_decision(part: Any) -> World:
    """Ongaro's correction of the thesis: one appends a change that it cannot decide; two, elected without it, is asked
    for another before it has decided anything."""
    trial = settled(part, 4)
    one, two, three, four = trial.nodes
    elect(trial, one, [two, three, four])
    trial.world.run(REST_S)
    star(trial, one, [])
    _remove(trial, one, two)
    elect(trial, two, [three, four])
    _remove(trial, two, one)
    return end(trial)


def two_changes_at_once(part: Any) -> World:
    """The second is asked for while nobody has heard of the first."""
    trial = settled(part)
    one, two, three, *_ = trial.nodes
    elect(trial, one, without(trial.nodes, one))
    trial.world.run(REST_S)
    star(trial, one, [])
    _remove(trial, one, two)
    _remove(trial, one, three)
    return end(trial)


def change_that_is_truncated(part: Any) -> World:
    """A coordinator that is cut off appends a change; the others elect another, and it gives the change up."""
    trial = settled(part)
    one, two, *others = trial.nodes
    elect(trial, one, without(trial.nodes, one))
    trial.world.run(REST_S)
    star(trial, one, [])
    _remove(trial, one, two)
    elect(trial, two, others)
    trial.world.mend()
    trial.world.run(3)
    return end(trial)


def removed_voter(part: Any) -> World:
    """Who missed its own removal comes back, and asks for votes: nobody's term rises, and the coordinator stays."""
    trial = settled(part)
    one, *others = trial.nodes
    elect(trial, one, others)
    trial.world.run(REST_S)
    gone = others[-1]
    trial.world.split([gone], without(trial.nodes, gone))
    _remove(trial, one, gone)
    trial.world.run(8)
    lead = coordinator(trial.world)
    expect(lead is not None and lead.role is Role.COORDINATOR, "a coordinator")
    fence = members(trial.world)[one].fence
    for other in others[:-1]:
        trial.world.mend(gone, other)
    trial.world.run(5)
    if members(trial.world)[one].fence != fence:
        raise Violation("I9", "a removed voter raised the term")
    return end(trial)


def alone_with_its_own_removal(part: Any) -> World:
    """Of two, one removes itself and nobody hears: two lacks its vote, and one's own log says that it is out. So one
    must stand once more, to have that decided."""
    trial = settled(part, 2)
    one, two = trial.nodes
    elect(trial, one, [two])
    trial.world.run(REST_S)
    star(trial, one, [])
    _remove(trial, one, one)
    trial.world.run(REST_S)
    world = end(trial)
    _expect_voters(trial, {two})
    return world


def removed_by_an_undecided_entry(part: Any) -> World:
    """One holds alone that three is out; then two removes itself and forgets all: one must hear three."""
    trial = settled(part, 3)
    one, two, three = trial.nodes
    elect(trial, one, [two, three])
    trial.world.run(REST_S)
    star(trial, one, [])
    _remove(trial, one, three)
    elect(trial, two, [three])
    trial.world.run(REST_S)
    _remove(trial, two, two)
    trial.world.run(REST_S)
    trial.crash(two, lose_disk=True)
    world = end(trial)
    _expect_voters(trial, {one, three})
    return world


def _expect_voters(trial: Trial, voters: set[bytes]) -> None:
    lead = coordinator(trial.world)
    expect(lead is not None and lead.electorate.voters == voters, "removal that is decided in the end")


SCHEDULES: dict[str, Callable[[Any], World]] = {
    "change-before-a-decision": change_before_a_decision,
    "two-changes-at-once": two_changes_at_once,
    "change-that-is-truncated": change_that_is_truncated,
    "removed-voter": removed_voter,
    "alone-with-its-own-removal": alone_with_its_own_removal,
    "removed-by-an-undecided-entry": removed_by_an_undecided_entry,
}


class ChangesAtOnce(Election):
    """Any change may be proposed at any time."""

    def _check_change(self, step: bytes) -> None:
        return


class ChangesEarly(Election):
    """One at a time, but also before anything is decided in the term."""

    def _check_change(self, step: bytes) -> None:
        if self._electorate.roster_index > self.commit_index:
            super()._check_change(step)


class KeepsElectorate(Election):
    """Who votes stays changed though the entry that said so was truncated."""

    def _take(self, intake: Intake) -> None:
        before = self._electorates
        super()._take(intake)
        if len(before.all) > len(self._electorates.all):
            self._electorates = before


class HeedsTheRemoved(IgnoresLease, SkipsPreVote):
    """Whoever asks for votes is heard."""

    def _is_ours(self, now: Any, peer: bytes, message: DecisionMessage) -> bool:
        check_log(self._electorate, self._me.node, peer, message)
        return message.incarnation == self.incarnation


class LeavesEarly(Election):
    """Whose removal is in its log does not stand any more, decided or not."""

    def _may_lead(self, node: bytes) -> bool:
        return self._electorate.may_lead(node)


class SilencesEarly(Election):
    """Whose removal is in our log is not heard any more, decided or not."""

    def _is_ours(self, now: Any, peer: bytes, message: DecisionMessage) -> bool:
        return peer not in self._electorate.gone and super()._is_ours(now, peer, message)


MUTANTS = (
    Mutant("leaves-before-it-is-decided", LeavesEarly, frozenset({"L1"})),
    Mutant("silenced-before-it-is-decided", SilencesEarly, frozenset({"L1"})),
    Mutant("two-changes", ChangesAtOnce, frozenset({"I9"})),
    Mutant("change-too-early", ChangesEarly, frozenset({"I9"})),
    Mutant("electorate-not-rolled-back", KeepsElectorate, frozenset({"I9"})),
    Mutant("removed-voter-heeded", HeedsTheRemoved, frozenset({"I9"})),
)
