"""An exact index of everything, scored by the very ranker that a node uses on its last ten: what a hub would answer.

    entries ── vectors, bags ──> Flat ── scores(question) ──> one number an entry, or best(question, 5) -> ids

Words are kept root by root, so that thousands of questions over thousands of entries take seconds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench._corpus import Entry, Query
from ioa_p2p.mind.cover import cover, needs
from ioa_p2p.mind.lexicon import bag, lexicon, root
from ioa_p2p.mind.meaning import Meaning
from ioa_p2p.mind.ranking import WORDS_WEIGHT, Ranker
from ioa_p2p.mind.texts import card_words

COVER_AMONG = 50  # the best for the whole question, of which the covering set is chosen


@dataclass(frozen=True, eq=False)
class Asked:
    """A question and its needs, encoded."""

    whole: "Encoded"
    needs: tuple["Encoded", ...]


@dataclass(frozen=True, eq=False)
class Encoded:
    roots: tuple[str, ...]
    vector: "np.ndarray | None"


def asked(meaning: Meaning | None, texts: Sequence[str]) -> list[Asked]:
    """One a text."""
    parts = [(text, *needs(text)) for text in texts]
    encoded = iter(_encode(meaning, [text for part in parts for text in part]))
    return [Asked(next(encoded), tuple(next(encoded) for _ in part[1:])) for part in parts]


def _encode(meaning: Meaning | None, texts: Sequence[str]) -> list[Encoded]:
    ranker = Ranker()
    roots = [tuple(dict.fromkeys(map(root, ranker.question(text).words))) for text in texts]
    vectors = [None] * len(texts) if meaning is None else meaning.encode(texts)
    return [Encoded(*each) for each in zip(roots, vectors, strict=True)]


class Flat:
    """meaning: None ranks by words alone."""

    def __init__(self, entries: Sequence[Entry], meaning: Meaning | None) -> None:
        self.entries = entries
        self._vectors = Ranker(meaning).vectors([entry.card for entry in entries])
        self._postings = _postings(entries)

    def check(self, meaning: Meaning | None, texts: Sequence[str]) -> None:
        """These numbers are those of the node's ranker."""
        ranker, cards = Ranker(meaning), [entry.card for entry in self.entries[:20]]
        for text, question in zip(texts, asked(meaning, texts), strict=True):
            theirs = [score.total for score in ranker.scores(ranker.question(text), cards)]
            ours = np.maximum(self.scores(question.whole)[: len(cards)], 0.0 if meaning is None else -1.0)
            assert np.allclose(ours, theirs, atol=1e-4), text

    def among(self, keep: Iterable[str]) -> "Part":
        """The same, of these ids only."""
        kept = set(keep)
        return Part(self, np.array([n for n, entry in enumerate(self.entries) if entry.id in kept]))

    def everything(self) -> "Part":
        return Part(self, np.arange(len(self.entries)))

    def scores(self, question: Encoded) -> np.ndarray:
        """One an entry. By words alone, entries without a word in common are at -1."""
        lexical = np.zeros(len(self.entries))
        for each in question.roots:
            numbers, gains = self._postings.get(each, (np.empty(0, int), np.empty(0)))
            lexical[numbers] += gains
        if self._vectors is None or question.vector is None:
            return np.where(lexical > 0, lexical, -1.0)
        return self._vectors @ question.vector + WORDS_WEIGHT * lexical


class Part:
    """Some entries of a Flat."""

    def __init__(self, flat: Flat, numbers: np.ndarray) -> None:
        self._flat = flat
        self._numbers = numbers

    def best(self, question: Asked, count: int) -> list[str]:
        """Ids of the best for the whole question. By words alone, of those that match at all."""
        scores = self._flat.scores(question.whole)[self._numbers]
        order = np.argsort(-scores, kind="stable")[:count]
        return [self._flat.entries[self._numbers[n]].id for n in order if scores[n] > -1]

    def covering(self, question: Asked, count: int) -> list[str]:
        """Ids of those that together cover the question's needs best."""
        whole = self._flat.scores(question.whole)[self._numbers]
        by_need = [self._flat.scores(need)[self._numbers] for need in question.needs]
        worth = whole + np.max(by_need, axis=0) if by_need else whole
        near = np.argsort(-worth, kind="stable")[:COVER_AMONG]
        chosen = cover(whole[near].tolist(), [need[near].tolist() for need in by_need], count)
        return [self._flat.entries[self._numbers[near[n]]].id for n in chosen]


def recall(found: Sequence[Sequence[str]], queries: Sequence[Query], count: int) -> float:
    """Mean share of each query's relevant entries among its first `count`."""
    shares = [
        len(query.relevant & set(ids[:count])) / len(query.relevant) for ids, query in zip(found, queries, strict=True)
    ]
    return sum(shares) / len(shares)


def _postings(entries: Sequence[Entry]) -> "dict[str, tuple[np.ndarray, np.ndarray]]":
    """Root -> (numbers of the entries that hold it, what it adds to the BM25 of each)."""
    known, found = lexicon(), dict[str, list[tuple[int, float]]]()
    for number, entry in enumerate(entries):
        held = bag(card_words(entry.card))
        for each in held.counts:
            found.setdefault(each, []).append((number, known.score([each], held)))
    return {
        each: (np.array([number for number, _ in gains]), np.array([gain for _, gain in gains]))
        for each, gains in found.items()
    }
