"""How well texts match a query: BM25 (Robertson and Zaragoza 2009, section 3) over the shared words.

texts ── words ──> Matcher ── score(query) ──> one number a text, 0 = nothing in common
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.roster import SkillBrief
from ioa_p2p.wire.words import words

_K1, _B = 1.2, 0.75


def skill_words(skill: Skill | SkillBrief, agent: str) -> list[str]:
    """All words a skill can be found by. agent: its agent's name and description."""
    more = (*skill.tags, *skill.examples) if isinstance(skill, Skill) else ()
    return words(" ".join((skill.name, skill.description, agent, *more)))


def card_words(card: Card) -> list[str]:
    """All words an agent can be found by."""
    return words(f"{card.name} {card.description}") + [w for skill in card.skills for w in skill_words(skill, "")]


class Matcher:
    """A fixed set of texts, each a list of words."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._counts = [Counter(text) for text in texts]
        self._sizes = [len(text) for text in texts]
        self._mean = sum(self._sizes) / max(1, len(self._sizes)) or 1.0
        self._holding = Counter(word for counts in self._counts for word in counts)

    def weight(self, word: str) -> float:
        """How much a word tells: rare ones more (idf). 0 for a word that no text holds."""
        holding = self._holding[word]
        if not holding:
            return 0.0
        return math.log(1 + (len(self._counts) - holding + 0.5) / (holding + 0.5))

    def score(self, query: Iterable[str], text: int) -> float:
        """BM25 of text number `text`."""
        return sum(self.weight(word) * self._saturated(word, text) for word in dict.fromkeys(query))

    def cover(self, query: Iterable[str], texts: Iterable[int]) -> float:
        """The weight of the query's words that these texts hold together."""
        held = {word for text in texts for word in self._counts[text]}
        return sum(self.weight(word) for word in dict.fromkeys(query) if word in held)

    def _saturated(self, word: str, text: int) -> float:
        count = self._counts[text][word]
        length = 1 - _B + _B * self._sizes[text] / self._mean
        return count * (_K1 + 1) / (count + _K1 * length)


def ranked(query: str, cards: Sequence[Card]) -> list[int]:
    """Numbers of the cards that match at all, best first; between equals the given order stays."""
    matcher, asked = Matcher([card_words(card) for card in cards]), words(query)
    scores = [matcher.score(asked, number) for number in range(len(cards))]
    return sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: -scores[n])
