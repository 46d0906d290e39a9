"""What a team may spend, and where it went: exact sums that every member folds from the same log.

    limit = free + held (given to open tasks) + spent (told) + lost (given to runs whose end nobody told)
    reserve(task) ──> held ── settle ──> spent, the rest is free again
                       │ └─── release ──> free          (never begun)
                       └───── write_off ──> lost        (its worker vanished: it may have spent all)

A task's part is the whole budget of what runs below it, so no sum at any level exceeds the level above (I12).
Agents are held while they work and come back. Immutable: every method gives a new Budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.roster import Roster
from ioa_p2p.wire.spending import NOTHING, Allowance, Spent

KINDS = ("tokens", "money", "calls")
"""What can be spent."""

_TEAM = b""


@dataclass(frozen=True, slots=True)
class Budget:
    """held: by task id; the team's own agents under an empty one. over: told beyond what was given, so not in
    `spent`."""

    limit: Allowance
    held: Mapping[bytes, Allowance] = field(default_factory=dict[bytes, Allowance])
    spent: Spent = NOTHING
    lost: Spent = NOTHING
    over: Spent = NOTHING

    @classmethod
    def of(cls, roster: Roster) -> "Budget":
        """A new team's. Its launcher is above the team, not below."""
        return cls(roster.caps.budget, {_TEAM: Allowance(agents=len(roster.members) - 1)})

    def seat(self, members: int) -> "Budget":
        """The team itself has so many members now."""
        return replace(self, held={**self.held, _TEAM: Allowance(agents=members - 1)})

    @property
    def free(self) -> Allowance:
        """What may still be given out."""
        tokens, money, calls = (self._free(kind) for kind in KINDS)
        agents = self.limit.agents - sum(part.agents for part in self.held.values())
        return Allowance(tokens, money, calls, max(0, agents))

    @property
    def exhausted(self) -> str:
        """The first kind of which all is spent or lost, so that nothing can come back; or an empty text. Who was
        given none from the start has not used it up."""
        return next((kind for kind in KINDS if self._left(kind) == 0 and getattr(self.limit, kind)), "")

    def shortage(self, part: Allowance) -> str:
        """Why `part` cannot be given, for people; or an empty text."""
        free = self.free
        for kind in KINDS:
            wanted, there = getattr(part, kind), getattr(free, kind)
            if there is not None and (wanted is None or wanted > there):
                return f"{'all' if wanted is None else wanted} {kind} wanted, {there} left"
        if part.agents > free.agents:
            return f"{part.agents} agents wanted, {free.agents} left"
        return "no call allowed" if part.calls == 0 else ""

    def share(self, parts: int, *, agents: bool = False) -> Allowance:
        """What each of `parts` tasks is given if nobody says more: one share stays for what comes after. agents: it
        forms a team, which needs some."""
        free = self.free
        tokens, money, calls = (_shared(getattr(free, kind), parts) for kind in KINDS)
        below = free.agents // (parts + 1) if agents else 0
        return Allowance(tokens, money, max(1, calls) if calls is not None else None, below)

    def fitting(self, part: Allowance) -> Allowance:
        """`part`, cut to what is free. Raises PeerError('over-budget') where nothing is left of something."""
        if lacking := self.cannot_fit(part):
            raise PeerError("over-budget", f"no {lacking} left")
        free = self.free
        tokens, money, calls = (_least(getattr(part, kind), getattr(free, kind)) for kind in KINDS)
        return Allowance(tokens, money, calls, part.agents)

    def cannot_fit(self, part: Allowance) -> str:
        """The first kind that `part` needs and of which nothing is free, or an empty text."""
        free = self.free
        return next((kind for kind in KINDS if getattr(free, kind) == 0 and getattr(part, kind) != 0), "")

    @property
    def gone(self) -> Spent:
        """All that may be spent by now: told, lost, and given to what still runs."""
        given = Spent(*(sum(getattr(part, kind) or 0 for part in self.held.values()) for kind in KINDS))
        return plus(plus(self.spent, self.lost), given)

    # -- what becomes of a part

    def reserve(self, task: bytes, part: Allowance) -> "Budget":
        """Raises PeerError('over-budget')."""
        assert task not in self.held, "a task has one part"
        if short := self.shortage(part):
            raise PeerError("over-budget", short)
        return replace(self, held={**self.held, task: part})

    def settle(self, task: bytes, told: Spent) -> "Budget":
        """Count what the worker says it spent, at most what it was given. A run is one call at least."""
        told = Spent(told.tokens, told.money, max(1, told.calls))
        return self.release(task)._count(told, self.held[task])

    def write_off(self, task: bytes) -> "Budget":
        """Nobody told: all that was given may be spent."""
        part = self.held[task]
        gone = Spent(part.tokens or 0, part.money or 0, part.calls or 1)
        return replace(self.release(task), lost=plus(self.lost, gone))

    def release(self, task: bytes) -> "Budget":
        """It never began."""
        return replace(self, held={key: part for key, part in self.held.items() if key != task})

    def spend(self, told: Spent) -> "Budget":
        """What the team itself used: its planner."""
        return self._count(told, self.free)

    # -- small parts

    def _count(self, told: Spent, most: Allowance) -> "Budget":
        counted = _within(told, most)
        return replace(self, spent=plus(self.spent, counted), over=plus(self.over, _minus(told, counted)))

    def _left(self, kind: str) -> int | None:
        """Neither spent nor lost; None: not limited."""
        limit: int | None = getattr(self.limit, kind)
        return None if limit is None else limit - getattr(self.spent, kind) - getattr(self.lost, kind)

    def _free(self, kind: str) -> int | None:
        left = self._left(kind)
        return None if left is None else left - sum(getattr(part, kind) or 0 for part in self.held.values())


def plus(one: Spent, other: Spent) -> Spent:
    """The sum. What no number of ours can hold counts as the most there is."""
    return Spent(*(min(limits.AMOUNT_MAX, getattr(one, kind) + getattr(other, kind)) for kind in KINDS))


def rest(part: Allowance, spent: Spent) -> Allowance:
    """What of a part is left after so much."""
    tokens, money, calls = (
        None if (given := getattr(part, kind)) is None else max(0, given - getattr(spent, kind)) for kind in KINDS
    )
    return Allowance(tokens, money, calls, part.agents)


def exceeds(spent: Spent, part: Allowance) -> str:
    """The first kind of which more was spent than given, or an empty text."""
    over = _minus(spent, _within(spent, part))
    return next((kind for kind in KINDS if getattr(over, kind)), "")


def _within(spent: Spent, most: Allowance) -> Spent:
    return Spent(*(_least(getattr(spent, kind), getattr(most, kind)) or 0 for kind in KINDS))


def _minus(one: Spent, other: Spent) -> Spent:
    return Spent(*(getattr(one, kind) - getattr(other, kind) for kind in KINDS))


def _shared(free: int | None, parts: int) -> int | None:
    return None if free is None else free // (parts + 1)


def _least(one: int | None, other: int | None) -> int | None:
    """The smaller; None is not limited."""
    return min((each for each in (one, other) if each is not None), default=None)
