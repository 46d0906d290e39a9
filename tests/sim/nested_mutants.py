"""Planted faults of teams within teams: each is one plausible mistake, and must be caught by the rules beside it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ioa_p2p.effects import Effect, Now, Save
from ioa_p2p.team.commands import Launch
from ioa_p2p.team.coordinator import Coordinator
from ioa_p2p.team.events import StartTask
from ioa_p2p.team.leases import Leases
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.nesting import SPACE, Link, Nesting
from ioa_p2p.team.state import TaskRow
from ioa_p2p.team.supervision import Supervision
from ioa_p2p.team.worker import Deed, Worker
from ioa_p2p.wire import codec
from ioa_p2p.wire.spending import Allowance
from ioa_p2p.wire.step import Step, TaskSpec
from tests.sim.scenario import Mutant
from tests.sim.team_mutants import with_coordinator, with_worker


def _with_nesting(nesting: type[Nesting]) -> type[Teams]:
    class Planted(Teams):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._nesting.__class__ = nesting

    return Planted


class _LooksAway(Nesting):
    """Nobody is asked whether it would wait for itself."""

    def waiting(self, path: Collection[bytes]) -> frozenset[str]:
        return frozenset()


class _TakesAllTheTime(Nesting):
    """The child may take as long as its task."""

    def _begin(self, now: Now, start: StartTask) -> list[Effect]:
        return super()._begin(now, replace(start, seconds_left=start.seconds_left / 0.9))


class _SpendsFreely(Nesting):
    """The child's budget is whatever the node asks for."""

    def on_terms(self, now: Now, launch: Launch) -> Launch:
        held = super().on_terms(now, launch)
        caps = codec.replace(held.policy.caps, budget=launch.policy.caps.budget)
        return replace(held, policy=replace(held.policy, caps=caps))


class _SkipsEscrow(Nesting):
    """A child gets agents, though its task has none."""

    def _refusal(self, link: Link) -> str:
        return super()._refusal(codec.replace(link, budget=Allowance(agents=1)))

    def on_terms(self, now: Now, launch: Launch) -> Launch:
        held = super().on_terms(now, launch)
        budget = codec.replace(held.policy.caps.budget, agents=max(2, held.policy.caps.budget.agents))
        return replace(held, policy=replace(held.policy, caps=codec.replace(held.policy.caps, budget=budget)))


class _ForgetsLink(Nesting):
    """What ties a child to its task is not saved."""

    def _save(self, child: bytes, link: Link) -> Save:
        super()._save(child, link)
        return Save(SPACE, child, None)


class _KeepsChildren(Nesting):
    """A cancel stops at the task."""

    def _cancel(self, now: Now, child: bytes) -> list[Effect]:
        return []


class _DigsOn(Nesting):
    """No path is too long."""

    def _refusal(self, link: Link) -> str:
        return super()._refusal(codec.replace(link, ancestors=link.ancestors[:3]))

    def on_terms(self, now: Now, launch: Launch) -> Launch:
        held = super().on_terms(now, launch)
        return replace(held, ancestors=held.ancestors[-3:])


class _NeverOrphaned(Supervision):
    """The child goes on without its launcher."""

    def is_orphaned(self, now: Now) -> bool:
        return False

    @property
    def may_start(self) -> bool:
        return True


class _GoesOn(Coordinator):
    def _ends(self, now: Now) -> bool:
        self._supervision.__class__ = _NeverOrphaned
        return super()._ends(now)


class _MovesAtOnce(Leases):
    """A task is another's as soon as its worker's links are lost, while its team still works."""

    def due(self, now: Now, row: TaskRow) -> Step | None:
        stand_in = self._stand_in(row) if self._is_lost(row.spec.node) else None
        return self._move(row, self._of(now, row), stand_in) if stand_in is not None else super().due(now, row)


class _GivesUpOnce(Worker):
    """After a restart nobody knows what became of a task that may run once, though its team is known."""

    def _resume(self, now: Now, state: Any, spec: TaskSpec, job: Any) -> list[Deed]:
        if spec.effect == "once":
            return self._finish(spec, self._report(spec, "unknown", "the worker's node ended while it ran"))
        return super()._resume(now, state, spec, job)


MUTANTS = (
    Mutant("cycle-unchecked", _with_nesting(_LooksAway), frozenset({"N2"})),
    Mutant("deadline-not-shortened", _with_nesting(_TakesAllTheTime), frozenset({"N1"})),
    Mutant("budget-of-the-child-its-own", _with_nesting(_SpendsFreely), frozenset({"N1", "N5"})),
    Mutant("escrow-of-agents-ignored", _with_nesting(_SkipsEscrow), frozenset({"N1", "N5"})),
    Mutant("link-not-saved", _with_nesting(_ForgetsLink), frozenset({"N3", "cascade", "L2"})),
    Mutant("cancel-not-passed-on", _with_nesting(_KeepsChildren), frozenset({"cascade"})),
    Mutant("depth-unchecked", _with_nesting(_DigsOn), frozenset({"N1"})),
    Mutant("orphan-goes-on", with_coordinator(_GoesOn), frozenset({"N4"})),
    Mutant("moved-while-its-team-works", with_coordinator(Coordinator, _MovesAtOnce), frozenset({"N4"})),
    Mutant("once-given-up", with_worker(_GivesUpOnce), frozenset({"outcome"})),
)
