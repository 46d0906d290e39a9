"""How well agents answer a question: by meaning and words together, or by words alone.

    question ──┬── words ──> BM25 over the shipped lexicon ────────────┐
               └── vector ─> dot product with the card's (if there is) ┴──> dense + WORDS_WEIGHT x words

Each card is scored by itself: ten candidates get the numbers, so the order, that they would get among all agents
there are. docs/search.md, "Ranking", has what was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ioa_p2p.mind.lexicon import Bag, Lexicon, bag, lexicon, root
from ioa_p2p.mind.meaning import Meaning, card_text
from ioa_p2p.mind.texts import card_words
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.words import words

if TYPE_CHECKING:
    from ioa_p2p.mind.vectors import Vectors

WORDS_WEIGHT = 0.01  # tuned on half of the queries

By = Literal["meaning", "words"]


@dataclass(frozen=True, eq=False, slots=True)
class Question:
    """words: search words, each once. vector: (D,), or None when only words are used."""

    text: str
    words: tuple[str, ...]
    vector: "Vectors | None" = None


@dataclass(frozen=True, slots=True)
class Score:
    """total: what to order by, more is better. dense: cosine of the meanings, None by words alone. lexical: BM25."""

    total: float
    dense: float | None
    lexical: float


class Ranker:
    """meaning: None ranks by words alone, and so does an agent whose vector is not of this model."""

    def __init__(self, meaning: Meaning | None = None, known: Lexicon | None = None) -> None:
        self._meaning = meaning
        self._lexicon = known or lexicon()

    @property
    def by(self) -> By:
        """What the scores rest on; every answer says it."""
        return "meaning" if self._meaning else "words"

    def question(self, text: str) -> Question:
        """Encodes: call it off the event loop."""
        vector = self._meaning.encode([text])[0] if self._meaning else None
        return Question(text, tuple(dict.fromkeys(words(text))), vector)

    def vectors(self, cards: Sequence[Card]) -> "Vectors | None":
        """(len(cards), D), or None by words alone. Encodes: call it off the event loop."""
        return self._meaning.encode([card_text(card) for card in cards]) if self._meaning else None

    def scores(self, question: Question, cards: Sequence[Card], vectors: "Vectors | None" = None) -> list[Score]:
        """One a card, in their order. vectors: theirs, if known already; else they are encoded here."""
        rows = self.vectors(cards) if vectors is None and question.vector is not None else vectors
        return self.scores_of(question, [bag(card_words(card)) for card in cards], rows)

    def scores_of(self, question: Question, bags: Sequence[Bag], vectors: "Vectors | None") -> list[Score]:
        """The same for who keeps bags (`lexicon.bag` of `texts.card_words`) and vectors. By words alone: no vectors."""
        asked = tuple(dict.fromkeys(map(root, question.words)))
        lexical = [self._lexicon.score(asked, each) for each in bags]
        if question.vector is None or vectors is None:
            return [Score(each, None, each) for each in lexical]
        dense = [float(each) for each in vectors @ question.vector]
        return [Score(near + WORDS_WEIGHT * far, near, far) for near, far in zip(dense, lexical, strict=True)]


def best_first(scores: Sequence[Score]) -> list[int]:
    """Numbers of those that match at all, best first; between equals the given order stays."""
    matching = (number for number, score in enumerate(scores) if score.dense is not None or score.lexical > 0)
    return sorted(matching, key=lambda number: -scores[number].total)
