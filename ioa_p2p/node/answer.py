"""The answer to a search: its hits in order, by which ranker, and which of them together cover the query's needs.

hits that answered ── ranker (meaning, else words) ──> matches ── trust first ──> placed
                                                                 └── needs ──> a set that covers them
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.mind.match import Matcher, card_words
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import Hit, Placed, in_order
from ioa_p2p.wire.words import words


@dataclass(frozen=True, slots=True)
class Answer:
    """ranking: 'meaning' or 'words'. needs: each need of the query with the hits that cover it, best first."""

    placed: list[Placed]
    ranking: str
    needs: list[tuple[str, list[Hit]]]


def answer_of(search: Search) -> Answer:
    """Blocks for some ms where there is a model."""
    hits = search.offered
    matches = _matches(search.query.text, hits)
    wanted = [(hit, match) for hit, match in zip(hits, matches, strict=True) if match > 0 or not search.query.words]
    return Answer(in_order([hit for hit, _ in wanted], [match for _, match in wanted]), "words", [])


def _matches(text: str, hits: Sequence[Hit]) -> list[float]:
    matcher, asked = Matcher([card_words(hit.card) for hit in hits]), words(text)
    return [matcher.score(asked, number) for number in range(len(hits))]
