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


SCHEDULES: dict[str, Callable[[Any], World]] = {
    "change-before-a-decision": change_before_a_decision,
    "two-changes-at-once": two_changes_at_once,
    "change-that-is-truncated": change_that_is_truncated,
    "removed-voter": removed_voter,
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


MUTANTS = (
    Mutant("two-changes", ChangesAtOnce, frozenset({"I9"})),
    Mutant("change-too-early", ChangesEarly, frozenset({"I9"})),
    Mutant("electorate-not-rolled-back", KeepsElectorate, frozenset({"I9"})),
    Mutant("removed-voter-heeded", HeedsTheRemoved, frozenset({"I9"})),
)
