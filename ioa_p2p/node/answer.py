"""The answer to a search: its hits in order, by which ranker, and which of them together cover the query's needs.

hits that answered ── Ranker (meaning, else words) ──> matches ── trust first ──> placed
                                                                └── needs ──> a set that covers them
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.mind.cover import cover, needs
from ioa_p2p.mind.meaning import Meaning
from ioa_p2p.mind.ranking import Question, Ranker, Score
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import Hit, Placed, in_order

SET_MAX = 5  # agents that together cover a query with several needs
DENSE_MIN = 0.15  # cosine below which an agent that shares no word does not match at all; see docs/search.md


@dataclass(frozen=True, slots=True)
class Answer:
    """ranking: 'meaning' or 'words'. together: of a query with several needs, hits that cover them, the most useful
    first. needs: each need with those of them that serve it, best first.
    """

    placed: list[Placed]
    ranking: str
    together: list[Hit]
    needs: list[tuple[str, list[Hit]]]


def answer_of(search: Search, meaning: Meaning | None) -> Answer:
    """Encodes the cards where there is a model: call it off the event loop."""
    ranker, hits = Ranker(meaning if search.aspect else None), search.offered
    query = search.query
    if not query.words:
        return Answer(in_order(hits, [0.0] * len(hits)), ranker.by, [], [])
    question = Question(query.text, tuple(query.words), search.aspect.vector if search.aspect else None)
    scores = ranker.scores(question, [hit.card for hit in hits])
    matching = [(hit, score.total) for hit, score in zip(hits, scores, strict=True) if _matches(score)]
    placed = in_order([hit for hit, _ in matching], [match for _, match in matching])
    return Answer(placed, ranker.by, *_grouped(ranker, query.text, placed))


def _grouped(ranker: Ranker, text: str, placed: Sequence[Placed]) -> tuple[list[Hit], list[tuple[str, list[Hit]]]]:
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
    """Whether it has anything to do with the query: the trusted come first only among those."""
    return score.lexical > 0 or (score.dense or 0.0) >= DENSE_MIN
