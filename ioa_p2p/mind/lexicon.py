"""How much a word tells, known before anything is found: so ten candidates rank as they would among all.

    ioa_p2p/mind/data/words.txt ── in how many of N public descriptions a word stands ──> weight (idf)

BM25 as of Robertson and Zaragoza (2009), section 3, over a fixed collection. Made by bench/_codebook.py.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_K1, _B = 1.2, 0.75


@dataclass(frozen=True, eq=False, slots=True)
class Lexicon:
    """texts: how many there were; text_words: mean words of one; holding: texts a word stands in, common words only."""

    texts: int
    text_words: float
    holding: Mapping[str, int]
    least: int

    def weight(self, word: str) -> float:
        """idf; a word not listed counts as the rarest listed."""
        holding = self.holding.get(word, self.least)
        return math.log(1 + (self.texts - holding + 0.5) / (holding + 0.5))

    def score(self, query: Iterable[str], text: Sequence[str]) -> float:
        """BM25 of the words of one text; 0 = nothing in common."""
        counts, longer = Counter(text), 1 - _B + _B * len(text) / self.text_words
        return sum(self.weight(word) * _saturated(counts[word], longer) for word in dict.fromkeys(query))


def _saturated(count: int, longer: float) -> float:
    return count * (_K1 + 1) / (count + _K1 * longer)


@cache
def lexicon() -> Lexicon:
    """The one shipped with the package."""
    head, *lines = (files("ioa_p2p.mind") / "data" / "words.txt").read_text(encoding="utf-8").splitlines()
    texts, text_words = head.split()
    holding = {word: int(count) for count, word in map(str.split, lines)}
    return Lexicon(int(texts), float(text_words), holding, min(holding.values()))
