"""Agents that pointers name, before anything is fetched of them: who is worth a record and a card.

    pointers of many index keys ── add ──> one candidate an agent ── best ──> by sketch, and by the keys it was under

A pointer holds no text. What is known is how near its sketch is to the query's, and which of the query's keys it was
found under; a rare word tells more than a common one. Holders may leave agents out, but cannot make any up.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ioa_p2p.mind.lexicon import lexicon
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Pointer
from ioa_p2p.wire.sketch import cosine

Agent = tuple[bytes, str]

WORDS_WEIGHT = 0.5  # all words against a cosine of 1; tuned in bench/search.py
FILTER_WEIGHT = 10.0  # an agent under a filter's key comes before all others


@dataclass(slots=True, eq=False)
class Candidate:
    """endpoint: packed, of its node's DHT. keys: index keys it was found under. near: cosine of the sketches, or 0."""

    node: bytes
    agent: str
    seq: int
    endpoint: bytes
    near: float
    keys: set[str] = field(default_factory=set[str])


class Candidates:
    """sketch: the query's, or empty. filters: index keys that every hit should be under."""

    def __init__(self, sketch: bytes = b"", filters: Iterable[str] = ()) -> None:
        self._sketch = sketch
        self._filters = frozenset(filters)
        self._found: dict[Agent, Candidate] = {}
        self._searched: set[str] = set()

    def __len__(self) -> int:
        return len(self._found)

    def add(self, key: str, pointers: Iterable[Pointer]) -> None:
        """What a search of one index key brought."""
        self._searched.add(key)
        for pointer in pointers:
            agent = pointer.node, pointer.agent
            known = self._found.get(agent) or self._new(agent, pointer)
            if known is not None:
                known.keys.add(key)
                self._refresh(known, pointer)

    def best(self) -> list[Candidate]:
        """All, the most promising first."""
        total = sum(map(self._weight, self._searched)) or 1.0
        scores = {agent: self._score(candidate, total) for agent, candidate in self._found.items()}
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

    def _score(self, candidate: Candidate, total: float) -> float:
        words = sum(map(self._weight, candidate.keys)) / total
        filters = len(candidate.keys & self._filters)
        return candidate.near + WORDS_WEIGHT * words + FILTER_WEIGHT * filters

    def _weight(self, key: str) -> float:
        """How much it tells to be found under this key; of a cell the sketch tells it better."""
        kind, _, word = key.partition(":")
        return lexicon().weight(word) if kind == "word" else 0.0
