"""Backward chaining over types: which skills, fed by which others, serve a goal best.

    goal words ── best last skill ──> its inputs ──> skills that give them ──> ... ──> skills without inputs

A skill is one Part whoever offers it; a chain is a part with everything below it. An input type ending in `*`
takes all agents that offer the part; any other takes one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ioa_p2p.mind.match import Matcher, skill_words
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.roster import SkillBrief
from ioa_p2p.wire.words import words

_PART_COST = 0.75  # a part must tell more about the goal than this to be worth its place, as a share of a mean word
_DEPTH_MAX = 8


@dataclass(frozen=True, slots=True)
class Offered:
    """One skill of one agent. agent_text: what its agent says of itself."""

    node: bytes
    agent: str
    skill: Skill | SkillBrief
    agent_text: str = ""


@dataclass(eq=False, slots=True)
class Part:
    """A skill as all its providers offer it: same name, inputs and outputs. number: its text in the matcher."""

    number: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    effect: str
    providers: list[Offered] = field(default_factory=list[Offered])


@dataclass(frozen=True, slots=True)
class Chain:
    """parts: every part once, inputs before those who read them; the last is the goal's. all_of: the parts
    of which every provider is wanted."""

    parts: tuple[Part, ...]
    all_of: frozenset[str]
    score: float


class Market:
    """What is on offer, matched against one goal."""

    def __init__(self, goal: str, offers: Sequence[Offered]) -> None:
        self._goal = list(dict.fromkeys(words(goal)))
        self._parts = _parts(offers)
        self._matcher = Matcher([skill_words(part.providers[0].skill, _text(part)) for part in self._parts])
        self._mean = sum(map(self._matcher.weight, self._goal)) / max(1, len(self._goal))

    @property
    def goal_words(self) -> list[str]:
        return self._goal

    def relevance(self, part: Part) -> float:
        return self._matcher.score(self._goal, part.number)

    def best(self) -> Chain | None:
        """The chain that says most of what the goal says, or None when none closes."""
        chains = [chain for part in self._parts if (chain := self._chain(part)) is not None]
        return max(chains, key=lambda chain: (chain.score, chain.parts[-1].name), default=None)

    def wanted_types(self) -> list[str]:
        """Input types of everything relevant, and of what feeds it: where the search goes next."""
        types: dict[str, None] = {}
        queue = [part for part in self._parts if self.relevance(part) > 0]
        while queue:
            for each in queue.pop().inputs:
                if _plain(each) not in types:
                    types[_plain(each)] = None
                    queue += self._givers(each)
        return list(types)

    def missing_types(self) -> list[str]:
        return [each for each in self.wanted_types() if not self._givers(each)]

    def _chain(self, last: Part) -> Chain | None:
        below = self._below(last, ())
        if below is None or self.relevance(last) <= 0:
            return None
        parts = tuple(dict.fromkeys(below))
        all_of = frozenset(
            part.name for part in parts for reader in parts for each in reader.inputs
            if each.endswith("*") and _plain(each) in part.outputs
        )  # fmt: skip
        return Chain(parts, all_of, self._score(parts))

    def _below(self, part: Part, above: tuple[Part, ...]) -> list[Part] | None:
        """`part` after everything it needs, or None when an input cannot be had (or needs itself)."""
        if part in above or len(above) >= _DEPTH_MAX:
            return None
        found: list[Part] = []
        for each in part.inputs:
            ways = [way for giver in self._givers(each) if (way := self._below(giver, (*above, part))) is not None]
            if not ways:
                return None
            found += max(ways, key=lambda way: (self._score(tuple(way)), way[-1].name))
        return [*found, part]

    def _score(self, parts: tuple[Part, ...]) -> float:
        """What the whole says of the goal, and again what its last part does, less a price a part."""
        whole = self._matcher.cover(self._goal, [part.number for part in parts])
        last = self._matcher.cover(self._goal, [parts[-1].number])
        return whole + last - _PART_COST * self._mean * len(set(parts))

    def _givers(self, type_name: str) -> list[Part]:
        return [part for part in self._parts if _plain(type_name) in part.outputs]


def sources(chain: Chain, part: Part) -> Iterator[tuple[str, list[Part]]]:
    """Each input type of `part` (without `*`) with the parts of the chain that give it."""
    for each in part.inputs:
        yield _plain(each), [giver for giver in chain.parts if _plain(each) in giver.outputs]


def _parts(offers: Sequence[Offered]) -> list[Part]:
    parts: dict[tuple[object, ...], Part] = {}
    for offer in offers:
        skill = offer.skill
        key = (skill.name, skill.inputs, skill.outputs)
        if key not in parts:
            parts[key] = Part(len(parts), skill.name, skill.inputs, skill.outputs, skill.effect)
        parts[key].providers.append(offer)
    return list(parts.values())


def _text(part: Part) -> str:
    return part.providers[0].agent_text


def _plain(type_name: str) -> str:
    return type_name.rstrip("*")
