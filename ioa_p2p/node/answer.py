"""The answer to a search: its hits in order, by which ranker, and which of them together cover the query's needs.

hits that answered ── Ranker (meaning, else words) ──> matches ── trust first ──> placed
                                                                └── needs ──> a set that covers them
"""

from dataclasses import dataclass

from ioa_p2p.mind.meaning import Meaning
from ioa_p2p.mind.ranking import Question, Ranker, Score
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import Hit, Placed, in_order

DENSE_MIN = 0.15  # cosine below which an agent that shares no word does not match at all; see docs/search.md


@dataclass(frozen=True, slots=True)
class Answer:
    """ranking: 'meaning' or 'words'. needs: each need of the query with the hits that cover it, best first."""

    placed: list[Placed]
    ranking: str
    needs: list[tuple[str, list[Hit]]]


def answer_of(search: Search, meaning: Meaning | None) -> Answer:
    """Encodes the cards where there is a model: call it off the event loop."""
    ranker, hits = Ranker(meaning if search.aspect else None), search.offered
    query = search.query
    if not query.words:
        return Answer(in_order(hits, [0.0] * len(hits)), ranker.by, [])
    question = Question(query.text, tuple(query.words), search.aspect.vector if search.aspect else None)
    scores = ranker.scores(question, [hit.card for hit in hits])
    matching = [(hit, score.total) for hit, score in zip(hits, scores, strict=True) if _matches(score)]
    placed = in_order([hit for hit, _ in matching], [match for _, match in matching])
    return Answer(placed, ranker.by, [])


def _matches(score: Score) -> bool:
    """Whether it has anything to do with the query: the trusted come first only among those."""
    return score.lexical > 0 or (score.dense or 0.0) >= DENSE_MIN
