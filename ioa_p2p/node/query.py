"""What is looked for: words, and filters that a hit must pass.

Query ── keys ──> index keys, the most telling first        Query ── fits(card) ──> passes the filters
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ioa_p2p.errors import UsageError
from ioa_p2p.mind.lexicon import lexicon, root
from ioa_p2p.node.trust import Level
from ioa_p2p.wire import limits
from ioa_p2p.wire.parts import is_part, single_parts
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.words import words


@dataclass(frozen=True, slots=True)
class Query:
    """text: what is needed, in anybody's words. skill, input, output, tag: empty, or what one skill of a hit must have;
    of a skill or type its full name or any whole part of it will do ("greet" of "text.greet").

    trust: the least level that a hit's node and agent must have.
    """

    text: str = ""
    skill: str = ""
    input: str = ""
    output: str = ""
    tag: str = ""
    trust: Level = Level.STRANGER

    @property
    def words(self) -> list[str]:
        """Each once, in order."""
        return list(dict.fromkeys(words(self.text)))

    @property
    def telling_words(self) -> list[str]:
        """The same, rare ones first: they tell most, and fewest agents are found under them."""
        weight = lexicon().weight
        return sorted(self.words, key=lambda word: -weight(root(word)))

    @property
    def facts(self) -> list[str]:
        """What every hit has, as the local directory knows it by."""
        named = [("skill", self.skill), ("out", self.output), ("in", self.input)]
        return [f"{kind}:{name}" for kind, name in named if name] + [f"word:{word}" for word in words(self.tag)]

    @property
    def filter_keys(self) -> list[str]:
        """Index keys that hits are published under, unless they were cut: a skill under its name, its first prefix and
        its words, a type under its name and its single parts."""
        return list(dict.fromkeys([*self.facts, *self._part_keys()]))

    def _part_keys(self) -> Iterator[str]:
        """Where those are that have the filter as a part of a longer name: one key a filter."""
        telling = sorted(words(self.skill), key=lambda word: -lexicon().weight(root(word)))
        yield from (f"word:{word}" for word in telling[:1])
        for kind, name in (("out", self.output), ("in", self.input)):
            yield from (f"{kind}:{part}" for part in single_parts(name)[-1:])

    def keys(self, cells: Sequence[str] = ()) -> list[str]:
        """Index keys to search, the most telling first. cells: key texts of the text's nearest cells.

        Raises UsageError('empty-query'); also for a tag without a word, a filter that would hold nobody back.
        """
        if self.tag and not words(self.tag):
            raise UsageError("empty-query", f"no word to search by in the tag {self.tag[:40]!r}", "name another tag")
        most = limits.FIND_WORDS_BESIDE_CELLS if cells else limits.FIND_WORDS_MAX
        by_word = [f"word:{word}" for word in self.telling_words[:most]]
        keys = list(dict.fromkeys([*self.filter_keys, *_in_turn(cells, by_word)]))
        if not keys:
            raise UsageError("empty-query", "nothing to search for", "give a word, --skill, --in, --out or --tag")
        return keys

    def fits(self, card: Card) -> bool:
        """Whether one skill passes every filter, and the card its tag."""
        return any(self._takes(skill) for skill in card.skills) if self.filter_keys else True

    def _takes(self, skill: Skill) -> bool:
        return (
            (not self.skill or is_part(self.skill, skill.name))
            and (not self.input or _has(skill.inputs, self.input))
            and (not self.output or _has(skill.outputs, self.output))
            and (not self.tag or set(words(self.tag)) <= set(words(" ".join(skill.tags))))
        )


def _in_turn(*lists: Sequence[str]) -> Iterator[str]:
    """The first of each, then the second of each."""
    for group in zip_longest(*lists):
        yield from (item for item in group if item is not None)


def _has(types: Sequence[str], asked: str) -> bool:
    """Types are compared without their mark for "all there are"."""
    return any(is_part(asked, each.removesuffix("*")) for each in types)
