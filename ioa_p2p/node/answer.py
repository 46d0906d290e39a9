"""The answer to a search: its hits in order, by which ranker, and which of them together cover the query's needs.

hits that answered ── Ranker (meaning, else words) ── hits.in_order ──> those that fit, the nearest of the others
                                                          └── needs ──> a set that covers them

What a hit must have was measured: docs/search-mesh.md, "Order".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ioa_p2p.mind.cover import cover, needs
from ioa_p2p.mind.lexicon import lexicon
from ioa_p2p.mind.meaning import Meaning
from ioa_p2p.mind.ranking import WORDS_WEIGHT, Question, Ranker, Score
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import WELL, Hit, Placed, in_order

SET_MAX = 5  # agents that together cover a query with several needs
# Cosines from which an agent that shares no word with the query fits, or serves a need if the set has it already.
# 99 and 91 % of unrelated texts are below, but also 38 and 16 % of right answers: so they are marked, not dropped.
DENSE_SURE, DENSE_MIN = 0.25, 0.15
DENSE_FULL = 0.6  # cosine that 95 % of right answers do not exceed: who is nearer gains no more over others by it
FIRST = 10  # so many are shown where some fit, even if others of them may not
NEAREST = 3  # so many where none fits

Needs = list[tuple[str, list[Hit]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """ranking: 'meaning' or 'words'; 'trust' where there were no words to match. together: of a query with several
    needs, hits that cover them, the most useful first. needs: each need with those of them that serve it, best first.
    """

    placed: list[Placed]
    ranking: str
    together: list[Hit]
    needs: Needs


def answer_of(search: Search, meaning: Meaning | None) -> Answer:
    """Encodes the cards where there is a model: call it off the event loop."""
    ranker, hits = _ranker(search, meaning), search.offered
    if not search.query.words:
        return Answer(in_order(Placed(hit, 0.0) for hit in hits), "trust", [], [])
    question = _question(search)
    scores = ranker.scores(question, [hit.card for hit in hits])
    best = min(max((score.total for score in scores), default=0.0), _full(question))
    ordered = in_order(_placed(hit, score, best) for hit, score in zip(hits, scores, strict=True) if score.total > 0)
    together, by_need = _grouped(ranker, search.query.text, ordered)
    return Answer(_shown(_serving_marked(ordered, by_need)), ranker.by, together, by_need)


def is_match(search: Search, meaning: Meaning | None, hit: Hit) -> bool:
    """Whether one hit fits the query, whatever else is found. Encodes its card, as `answer_of`."""
    if not search.query.words:
        return True
    (score,) = _ranker(search, meaning).scores(_question(search), [hit.card])
    return _fits(score)


def _ranker(search: Search, meaning: Meaning | None) -> Ranker:
    return Ranker(meaning if search.aspect else None)


def _question(search: Search) -> Question:
    query, aspect = search.query, search.aspect
    return Question(query.text, tuple(query.words), aspect.vector if aspect else None)


def _full(question: Question) -> float:
    """What a text of usual length scores that answers fully and has each word once. More comes of repeating words."""
    lexical = sum(map(lexicon().weight, question.words))
    return lexical if question.vector is None else DENSE_FULL + WORDS_WEIGHT * lexical


def _placed(hit: Hit, score: Score, best: float) -> Placed:
    share = min(1.0, score.total / best)
    return Placed(hit, score.total, share, weak=share < WELL or not _fits(score))


def _shown(ordered: Sequence[Placed]) -> list[Placed]:
    """Those that fit, and the first in any case: right texts and others are too alike to drop what may not fit."""
    nearest = NEAREST if all(one.weak for one in ordered) else FIRST
    return [one for number, one in enumerate(ordered) if number < nearest or not one.weak]


def _serving_marked(placed: Iterable[Placed], by_need: Needs) -> list[Placed]:
    """Who serves one of several needs fits, little as it may match the whole."""
    serving = {hit.agent for _, hits in by_need for hit in hits}
    return [replace(one, weak=one.weak and one.hit.agent not in serving) for one in placed]


def _grouped(ranker: Ranker, text: str, placed: Sequence[Placed]) -> tuple[list[Hit], Needs]:
    """The set that covers the needs, and who in it serves which. Empty where there is one need."""
    clauses, cards = needs(text), [one.hit.card for one in placed]
    if not clauses or not cards:
        return [], []
    vectors = ranker.vectors(cards)
    by_need = [ranker.scores(ranker.question(clause), cards, vectors) for clause in clauses]
    totals = [[score.total for score in scores] for scores in by_need]
    chosen = cover([one.match for one in placed], totals, SET_MAX)
    served = zip(clauses, by_need, strict=True)
    groups = [(clause, [placed[number].hit for number in _serving(scores, chosen)]) for clause, scores in served]
    return [placed[number].hit for number in chosen], groups


def _serving(scores: Sequence[Score], chosen: Sequence[int]) -> list[int]:
    """Those chosen that match this need, best first."""
    return sorted((one for one in chosen if _matches(scores[one])), key=lambda one: -scores[one].total)


def _matches(score: Score) -> bool:
    """Whether it may have to do with the question."""
    return score.lexical > 0 or (score.dense or 0.0) >= DENSE_MIN


def _fits(score: Score) -> bool:
    return score.lexical > 0 or (score.dense or 0.0) >= DENSE_SURE
