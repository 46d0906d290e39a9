"""How much a word tells, known before anything is found: so ten candidates rank as they would among all.

    mind/data/words.txt ── in how many of N public descriptions a root stands ──> weight (idf)
    text ── words ── roots ──> Bag ──> BM25 of a question

BM25 as of Robertson and Zaragoza (2009), section 3, over a fixed collection. Made by bench/_codebook.py.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

_K1, _B = 1.6, 0.6  # tuned on half of the queries, docs/search.md
_ENDINGS = ("ing", "ed", "er", "e")  # besides the plurals that wire.words folds
_ROOT_CHARS_MIN = 3


@dataclass(frozen=True, slots=True)
class Bag:
    """The roots of one text with their counts, and how many there are."""

    counts: Mapping[str, int]
    size: int

    @classmethod
    def of(cls, roots: Iterable[str]) -> "Bag":
        counts = Counter(roots)
        return cls(counts, counts.total())


def bag(words: Iterable[str]) -> Bag:
    """words: as `wire.words.words` gives them."""
    return Bag.of(map(root, words))


def root(word: str) -> str:
    """ "renting", "rented", "renter" -> "rent". Ranking alone uses it: index keys are words as they are on the wire."""
    if word.isascii() and len(word) > _ROOT_CHARS_MIN + 1:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _ROOT_CHARS_MIN:
                return _single(word[: -len(ending)])
    return word


def _single(stem: str) -> str:
    """ "planning" is "plan", but "selling" is "sell", as is "class"."""
    return stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "aeiousl" and len(stem) > _ROOT_CHARS_MIN else stem


@dataclass(frozen=True, eq=False, slots=True)
class Lexicon:
    """texts: how many there were. text_size: mean words of one. holding: root -> texts it stands in, common ones only.

    least: what a root that is not listed counts as: the rarest listed.
    """

    texts: int
    text_size: float
    holding: Mapping[str, int]
    least: int

    def weight(self, word: str) -> float:
        """How much a word tells: rare ones more."""
        return self.idf(root(word))

    def score(self, question: Iterable[str], text: Bag) -> float:
        """BM25 of one text for the roots of a question, each once; 0 = nothing in common."""
        longer = _K1 * (1 - _B + _B * text.size / self.text_size)
        counts = ((root, text.counts[root]) for root in question if root in text.counts)
        return sum(self.idf(root) * count * (_K1 + 1) / (count + longer) for root, count in counts)

    def idf(self, root: str) -> float:
        """The same, of a root."""
        holding = self.holding.get(root, self.least)
        return math.log(1 + (self.texts - holding + 0.5) / (holding + 0.5))


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The one shipped with the package."""
    head, *lines = (files("ioa_p2p.mind") / "data" / "words.txt").read_text(encoding="utf-8").splitlines()
    texts, text_size = head.split()
    holding = {root: int(count) for count, root in map(str.split, lines)}
    return Lexicon(int(texts), float(text_size), holding, min(holding.values()))
