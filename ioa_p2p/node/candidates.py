"""Agents that pointers name, before anything is fetched of them: who is worth a record and a card.

    pointers of many index keys ── add ──> one candidate an agent ── best ──> by sketch and by words

A pointer holds no text but the agent's name. What is known is how near its sketch is to the query's, and which of the
query's words it was found under or is named by: a rare word tells more than a common one. Weights:
docs/search-mesh.md. Holders may leave agents out, but make none up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ioa_p2p.mind.lexicon import lexicon, root
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Pointer
from ioa_p2p.wire.sketch import likeness
from ioa_p2p.wire.words import words

Agent = tuple[bytes, str]

WORDS_WEIGHT = 0.015  # of a word's idf against a cosine of 1; tuned on half of the queries, as the next two
UNSKETCHED = 0.1  # cosine of an agent found under words alone
NAME_WORDS_WEIGHT = 0.75  # what a word of the name counts more, where there are no sketches
FILTER_WEIGHT = 10.0  # an agent under a filter's key comes before all others


@dataclass(slots=True, eq=False)
class Candidate:
    """endpoint: packed, of its node's DHT. keys: index keys it was found under. near: cosine of query and sketch, None
    without a sketch."""

    node: bytes
    agent: str
    seq: int
    endpoint: bytes
    near: float | None = None
    keys: set[str] = field(default_factory=set[str])

    @property
    def name(self) -> str:
        """As words."""
        return self.agent.replace("-", " ")


class Candidates:
    """numbers: what the query's sketch rounds, or none. asked: its words. filters: index keys that every hit should be
    under."""

    def __init__(self, numbers: Sequence[float] = (), asked: Iterable[str] = (), filters: Iterable[str] = ()) -> None:
        self._numbers = numbers
        self._asked = frozenset(asked)
        self._filters = frozenset(filters)
        self._found: dict[Agent, Candidate] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, key: str, pointers: Iterable[Pointer]) -> None:
        """What a search of one index key brought."""
        for pointer in pointers:
            agent = pointer.node, pointer.agent
            known = self._found.get(agent) or self._new(agent, pointer)
            if known is not None:
                known.keys.add(key)
                self._refresh(known, pointer)

    def best(self) -> list[Candidate]:
        """All, the most promising first."""
        scores = {agent: self._score(candidate) for agent, candidate in self._found.items()}
        return [self._found[agent] for agent in sorted(scores, key=lambda agent: (-scores[agent], agent))]

    def _new(self, agent: Agent, pointer: Pointer) -> Candidate | None:
        if len(self._found) >= limits.FIND_CANDIDATES_MAX:
            return None
        return self._found.setdefault(agent, Candidate(*agent, pointer.seq, pointer.endpoint))

    def _refresh(self, known: Candidate, pointer: Pointer) -> None:
        """The newest pointer knows best where its node is, and, if it has a sketch, what the agent is about."""
        if self._numbers and pointer.sketch and (known.near is None or pointer.seq > known.seq):
            known.near = likeness(self._numbers, pointer.sketch)
        if pointer.seq > known.seq:
            known.seq, known.endpoint = pointer.seq, pointer.endpoint

    def _score(self, candidate: Candidate) -> float:
        filters = len(candidate.keys & self._filters)
        telling = _idf(self._words_of(candidate))
        if not self._numbers:
            telling += NAME_WORDS_WEIGHT * _idf(self._asked.intersection(words(candidate.name)))
        near = candidate.near if candidate.near is not None else UNSKETCHED
        return near + WORDS_WEIGHT * telling + FILTER_WEIGHT * filters

    def _words_of(self, candidate: Candidate) -> set[str]:
        """The query's words that it is found under or named by."""
        under = {key.removeprefix("word:") for key in candidate.keys if key.startswith("word:")}
        return {word for word in [*under, *words(candidate.name)] if word in self._asked}


def _idf(some: Iterable[str]) -> float:
    return sum(lexicon().weight(root(word)) for word in some)
