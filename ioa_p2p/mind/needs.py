"""What a goal asks for, one need at a time, and the ways to meet each.

    goal ── clauses ──> needs ── fit in the market? by roots, or by families of words ──> ways | nobody offers it

A goal whose clauses nobody serves one by one is one need: what is asked in vague words is served as well as it can be.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ioa_p2p.mind import cover
from ioa_p2p.mind.chain import Chain, Fit, Market, Part
from ioa_p2p.mind.kin import family

SHARE_MIN = 1 / 3  # of a clause's meaning that a chain must say, or it serves the clause by chance
_ASIDE = frozenset(  # a clause that begins so says how or of what, and asks for nothing by itself
    "in on at for from of about by before after during since until if when while because so using including especially "
    "with without as like within over than that which and or but to "
    "i we you he she they it my our your his her their its".split()
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Need:
    """One thing a goal asks for. fit: what of the market fits it. lenient: whatever has a word in common will do."""

    text: str
    fit: Fit
    lenient: bool = False

    @cached_property
    def first(self) -> Chain | None:
        """The best way to meet it; None when nobody offers it."""
        way = self.fit.best()
        return way if way and (self.lenient or self.fit.share(way.parts) >= SHARE_MIN) else None

    @property
    def share(self) -> float:
        """How much of what it says is offered."""
        return self.fit.share(self.first.parts) if self.first else 0.0

    def way(self, without: frozenset[Part]) -> Chain | None:
        """The best way that does without these parts: to the same outputs, or it would meet another need."""
        if self.first is None or without.isdisjoint(self.first.parts):
            return self.first
        gives = self.first.last.outputs
        return self.fit.best(without, gives) if gives else None


class Needs:
    """Those of one goal in one market, in the order of the goal; at least one."""

    def __init__(self, goal: str, market: Market) -> None:
        self.goal = goal
        self.market = market
        clauses = [_need(clause, market) for clause in cover.needs(goal)]
        if any(need.first for need in clauses):
            self.all = tuple(need for need in clauses if need.first or not _is_aside(need.text))
        else:
            self.all = (_need(goal, market, lenient=True),)
        self._asides = [need.text for need in clauses if need not in self.all and len(self.all) > 1]

    @property
    def unserved(self) -> tuple[Need, ...]:
        """Those that nobody in the market meets."""
        return tuple(need for need in self.all if need.first is None)

    @property
    def outer(self) -> tuple[Need, ...]:
        """Those whose answer feeds no other's: what feeds another is told with it."""
        return tuple(need for need in self.all if not any(self.holders(need)))

    def holders(self, need: Need) -> Iterator[Need]:
        """Those to whose answer this one's is a part of the way; of two with one answer the first holds the other."""
        for other in self.all:
            if other is not need and need.first and other.first and need.first.last in other.first.parts:
                same, later = need.first.last is other.first.last, self.all.index(other) > self.all.index(need)
                if not (same and later):
                    yield other

    def told(self, need: Need) -> str:
        """What is told to who works for one need alone: its own clause with those that it holds, and asides."""
        if len(self.outer) < 2:
            return self.goal
        held = (each.text for each in self.all if each is need or need in self.holders(each))
        return ". ".join([*self._asides, *held])


def _need(text: str, market: Market, *, lenient: bool = False) -> Need:
    """By roots, unless families of words say more of it."""
    plain, wide = Need(text, Fit(market, text), lenient), Need(text, Fit(market, text, family), lenient)
    return wide if wide.share > plain.share else plain


def _is_aside(clause: str) -> bool:
    """ "in the last three weeks" says how, not what."""
    first = _WORD.search(clause.lower())
    return first is not None and first.group() in _ASIDE
