"""Agents that pointers name, before anything is fetched of them: who is worth a record and a card.

    pointers of many index keys ── add ──> one candidate an agent ── best ──> by sketch, by words, by its name's meaning

A pointer holds no text but the agent's name. What is known is how near its sketch is to the query's, which of the
query's words it was found under or is named by (a rare word tells more than a common one), and, where there is a model,
how near its name is. Weights: docs/search-mesh.md. Holders may leave agents out, but make none up.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ioa_p2p.mind.lexicon import lexicon, root
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Pointer
from ioa_p2p.wire.sketch import cosine
from ioa_p2p.wire.words import words

Agent = tuple[bytes, str]

WORDS_WEIGHT = 0.03  # of a word's idf against a cosine of 1; tuned on half of the queries, as the next one
NAME_WEIGHT = 0.5  # of the name's cosine against the sketch's
FILTER_WEIGHT = 10.0  # an agent under a filter's key comes before all others


@dataclass(slots=True, eq=False)
class Candidate:
    """endpoint: packed, of its node's DHT. keys: index keys it was found under. near: cosine of the sketches, or 0;
    named: of its name and the query, or 0."""

    node: bytes
    agent: str
    seq: int
    endpoint: bytes
    near: float
    named: float = 0.0
    keys: set[str] = field(default_factory=set[str])

    @property
    def name(self) -> str:
        """As words."""
        return self.agent.replace("-", " ")


class Candidates:
    """sketch: the query's, or empty. asked: its words. filters: index keys that every hit should be under."""

    def __init__(self, sketch: bytes = b"", asked: Iterable[str] = (), filters: Iterable[str] = ()) -> None:
        self._sketch = sketch
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
        near = cosine(self._sketch, pointer.sketch)
        return self._found.setdefault(agent, Candidate(*agent, pointer.seq, pointer.endpoint, near))

    def _refresh(self, known: Candidate, pointer: Pointer) -> None:
        """The newest pointer knows best where its node is, and what the agent is about."""
        if pointer.seq > known.seq:
            known.seq, known.endpoint = pointer.seq, pointer.endpoint
            known.near = cosine(self._sketch, pointer.sketch)

    def _score(self, candidate: Candidate) -> float:
        filters = len(candidate.keys & self._filters)
        telling = sum(lexicon().weight(root(word)) for word in self._words_of(candidate))
        return candidate.near + NAME_WEIGHT * candidate.named + WORDS_WEIGHT * telling + FILTER_WEIGHT * filters

    def _words_of(self, candidate: Candidate) -> set[str]:
        """The query's words that it is found under or named by."""
        under = {key.removeprefix("word:") for key in candidate.keys if key.startswith("word:")}
        return {word for word in [*under, *words(candidate.name)] if word in self._asked}
