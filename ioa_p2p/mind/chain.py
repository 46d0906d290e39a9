"""Backward chaining over types: which skills, fed by which others, serve a text best.

    skills without inputs ──> those fed by them ──> ... ──> the skill that says most of what the text says

A skill is one Part whoever offers it; a chain is a part with everything below it. An input type ending in `*`
takes all agents that offer the part; any other takes one.

Chains are built from below, one layer of inputs a round: so cards of strangers, however they name each other's types,
cost no more than layers x skills.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ioa_p2p.mind.lexicon import Bag, lexicon, root
from ioa_p2p.mind.texts import skill_words
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.roster import SkillBrief
from ioa_p2p.wire.words import words

_PART_COST = 0.75  # a part must tell more of the text than this to be worth its place, as a share of a mean word
_LAYERS_MAX = 8
_SCORE_STEP = 1e-6  # nearer scores are equal: sums of the same words in another order

Agent = tuple[bytes, str]
"""(node, agent)."""
Form = Callable[[str], str]
"""What of a word counts."""


@dataclass(frozen=True, slots=True)
class Offered:
    """One skill of one agent. agent_text: what its agent says of itself. cost: as bid. here: its node is linked."""

    node: bytes
    agent: str
    skill: Skill | SkillBrief
    agent_text: str = ""
    cost: int = 0
    here: bool = True

    @property
    def by(self) -> Agent:
        return self.node, self.agent


@dataclass(eq=False, slots=True)
class Part:
    """A skill as all its providers offer it: same name, inputs and outputs."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    effect: str
    words: list[str]
    providers: list[Offered] = field(default_factory=list[Offered])

    @property
    def price(self) -> tuple[bool, int]:
        """What its best provider asks: less is better, and one that is linked is better than any that is not."""
        return min((not each.here, each.cost) for each in self.providers)

    @property
    def key(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        return self.name, self.inputs, self.outputs


@dataclass(frozen=True, slots=True)
class Chain:
    """parts: every part once, inputs before those who read them; the last is the text's. score: how well it fits."""

    parts: tuple[Part, ...]
    score: float

    @property
    def last(self) -> Part:
        return self.parts[-1]

    @property
    def all_of(self) -> frozenset[Part]:
        """The parts of which every provider is wanted."""
        taken = {_plain(each) for part in self.parts for each in part.inputs if each.endswith("*")}
        return frozenset(part for part in self.parts if taken.intersection(part.outputs))


class Market:
    """What is on offer."""

    def __init__(self, offers: Iterable[Offered]) -> None:
        found: dict[tuple[object, ...], Part] = {}
        for offer in offers:
            skill = offer.skill
            key = (skill.name, skill.inputs, skill.outputs)
            if key not in found:
                said = skill_words(skill, offer.agent_text)
                found[key] = Part(skill.name, skill.inputs, skill.outputs, skill.effect, said)
            found[key].providers.append(offer)
        self.parts = list(found.values())
        self._bags: dict[Form, dict[Part, Bag]] = {}

    def givers(self, type_name: str) -> list[Part]:
        return [part for part in self.parts if _plain(type_name) in part.outputs]

    def bags(self, form: Form) -> dict[Part, Bag]:
        """The words of each part, as far as they count."""
        if form not in self._bags:
            self._bags[form] = {part: Bag.of(map(form, part.words)) for part in self.parts}
        return self._bags[form]


class Fit:
    """How the parts of a market fit one text. form: what of a word counts, so that others of its kind match too."""

    def __init__(self, market: Market, text: str, form: Form = root) -> None:
        self._market = market
        self._asked = tuple(dict.fromkeys(map(form, words(text))))
        self._bags = market.bags(form)
        self._relevance = {part: lexicon().score(self._asked, bag) for part, bag in self._bags.items()}
        self._full = self._weight(self._asked)
        self._mean = self._full / max(1, len(self._asked))

    def relevance(self, part: Part) -> float:
        """0: it has no word in common with the text."""
        return self._relevance[part]

    def share(self, parts: Sequence[Part]) -> float:
        """How much of what the text says these say too: 0 to 1, rare words more."""
        return self._cover(parts) / self._full if self._full else 0.0

    def best(self, without: frozenset[Part] = frozenset(), gives: Sequence[str] = ()) -> Chain | None:
        """The chain that says most of what the text says and makes every type of `gives`; None when none closes."""
        closed = self._closed(without)
        fit = [way for part, way in closed.items() if self.relevance(part) > 0 and set(gives) <= set(part.outputs)]
        return min(fit, key=self._place, default=None)

    def wanted_types(self) -> list[str]:
        """Input types of everything relevant, and of what feeds it: where the search goes next."""
        types: dict[str, None] = {}
        queue = [part for part in self._market.parts if self.relevance(part) > 0]
        while queue:
            for each in queue.pop().inputs:
                if _plain(each) not in types:
                    types[_plain(each)] = None
                    queue += self._market.givers(each)
        return list(types)

    def missing_types(self) -> list[str]:
        """Of those, what nobody gives."""
        return [each for each in self.wanted_types() if not self._market.givers(each)]

    def missing(self, part: Part) -> list[str]:
        """Its input types that nobody gives."""
        return [_plain(each) for each in part.inputs if not self._market.givers(each)]

    @property
    def nearest(self) -> Part | None:
        """The part that says most of the text by itself, whether or not it can be had; None: none says anything."""
        relevant = [part for part in self._market.parts if self.relevance(part) > 0]
        return min(relevant, key=lambda part: (-self.relevance(part), part.key), default=None)

    # -- chains from below

    def _closed(self, without: frozenset[Part]) -> dict[Part, Chain]:
        """Every part that can be had, with the best way to it."""
        closed: dict[Part, Chain] = {}
        for _ in range(_LAYERS_MAX):
            ways = _by_type(sorted(closed.values(), key=self._place))
            parts = (part for part in self._market.parts if part not in without)
            layer = {part: way for part in parts if (way := self._way(part, ways)) is not None}
            if {part: way.parts for part, way in layer.items()} == {part: way.parts for part, way in closed.items()}:
                break
            closed = layer
        return closed

    def _way(self, part: Part, ways: dict[str, list[Chain]]) -> Chain | None:
        """`part` after the best of what it needs, or None while an input cannot be had without the part itself."""
        below: list[Part] = []
        for each in part.inputs:
            givers = (way for way in ways.get(_plain(each), ()) if part not in way.parts)
            if (way := next(givers, None)) is None:
                return None
            below += way.parts
        parts = tuple(dict.fromkeys((*below, part)))
        return Chain(parts, self._score(parts))

    def _place(self, way: Chain) -> tuple[object, ...]:
        """Sorts the best first: what fits best; between equals whoever is linked and asks least."""
        away = sum(part.price[0] for part in way.parts)
        cost = sum(part.price[1] for part in way.parts)
        return -round(way.score / _SCORE_STEP), away, cost, [part.key for part in reversed(way.parts)]

    def _score(self, parts: Sequence[Part]) -> float:
        """What the whole says of the text, and again what its last part says, less a price a part."""
        return self._cover(parts) + self.relevance(parts[-1]) - _PART_COST * self._mean * len(parts)

    def _cover(self, parts: Sequence[Part]) -> float:
        """The weight of the text's words that these parts hold together."""
        return self._weight(word for word in self._asked if any(word in self._bags[part].counts for part in parts))

    def _weight(self, asked: Iterable[str]) -> float:
        return sum(map(lexicon().idf, asked))


def sources(chain: Chain, part: Part) -> Iterator[tuple[str, list[Part]]]:
    """Each input type of `part`, as it names it, with the parts of the chain that give it."""
    before = chain.parts[: chain.parts.index(part)]
    for each in part.inputs:
        yield each, [giver for giver in before if _plain(each) in giver.outputs]


def _by_type(ways: Iterable[Chain]) -> dict[str, list[Chain]]:
    found: dict[str, list[Chain]] = {}
    for way in ways:
        for each in way.last.outputs:
            found.setdefault(each, []).append(way)
    return found


def _plain(type_name: str) -> str:
    return type_name.rstrip("*")
