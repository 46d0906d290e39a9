"""What a search found, and in which order it is shown: by match; trust decides between those that match well.

    Hit ── match, from a ranker ──> share of the best match ──┬── well, and mine or granted ──> first
                                                              └── the others ──> by steps of ALIKE
                                   within a step: trust, match, freshness, load

No text of a card lifts a stranger over an agent of ours or of the allow-list that matches well: the best match counts
as no more than a full answer makes (node/answer.py). docs/search-mesh.md, "Order".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ioa_p2p.node.trust import Level, Standing
from ioa_p2p.steps import FoundAgent
from ioa_p2p.wire.ids import NodeId
from ioa_p2p.wire.records import AgentRecord, Card

WELL = 0.4  # share of the best match from which an agent matches well; below, it may not fit
ALIKE = 0.1  # shares within one such step below the best count as alike: then the more trusted is first
STEP = 0.001  # matches nearer to each other than this count as equal: then the fresher and less busy one is first
AGE_STEP_S = 600  # likewise for ages


class Source(StrEnum):
    """Where a hit is known from."""

    OWN = "own"
    DIRECTORY = "directory"
    MESH = "mesh"


@dataclass(frozen=True, slots=True)
class Hit:
    """One agent found. age_s: since its record was issued. answered: its node answered us in this search, or is ours.

    keys: index keys it was found under. load: 0 to 1 as its node last told us, None if never.
    """

    record: AgentRecord
    card: Card
    age_s: float
    standing: Standing
    source: Source
    answered: bool
    keys: tuple[str, ...] = ()
    load: float | None = None

    @property
    def agent(self) -> tuple[NodeId, str]:
        return self.record.node, self.record.agent

    @property
    def found(self) -> FoundAgent:
        return FoundAgent(self.record.node, self.card, self.record.addresses)


@dataclass(frozen=True, slots=True)
class Placed:
    """match: as the ranker measures it; only differences count. share: of the best match, 1 at most. weak: it may not
    fit; it is among the nearest that there are.
    """

    hit: Hit
    match: float
    share: float = 1.0
    weak: bool = False

    @property
    def place(self) -> tuple[Any, ...]:
        """Sorts the best first."""
        hit, level = self.hit, self.hit.standing.level
        ahead = level <= Level.GRANTED and not self.weak
        steps = int((1.0 - self.share) / ALIKE)
        near = round(self.match / STEP)
        return not ahead, steps, level, -near, int(hit.age_s // AGE_STEP_S), hit.load or 0.0, hit.agent

    @property
    def why(self) -> list[str]:
        """One clause a reason, in the order in which they count."""
        hit = self.hit
        under = f"found under {' '.join(hit.keys)}" if hit.keys else f"known from {_PLACES[hit.source]}"
        load = [] if hit.load is None else [f"busy to {hit.load:.0%}"]
        answer = "its node answered just now" if hit.answered else "its node has not answered"
        match = f"match {self.match:.2f}{', so it may not fit' if self.weak else ''}"
        return [hit.standing.why, match, under, f"record {ago(hit.age_s)} old", *load, answer]


_PLACES = {Source.OWN: "this node", Source.DIRECTORY: "the local directory", Source.MESH: "the mesh"}


def in_order(placed: Iterable[Placed]) -> list[Placed]:
    return sorted(placed, key=lambda one: one.place)


def ago(seconds: float) -> str:
    """A length of time for people: "40 s", "12 min", "3 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.0f} h"


def hit_event(hit: Hit, node_text: Callable[[NodeId], str]) -> dict[str, Any]:
    """As the control socket tells it. docs/control.md, "Verbs"."""
    return {
        "kind": "hit",
        "agent": hit.record.agent,
        "node": node_text(hit.record.node),
        "skills": [skill.name for skill in hit.card.skills],
        "description": hit.card.description,
        "trust": str(hit.standing.level),
        "age_s": round(hit.age_s, 1),
        "answered": hit.answered,
        "source": str(hit.source),
    }


def names(hits: Iterable[Hit], node_text: Callable[[NodeId], str]) -> list[str]:
    return [f"{hit.record.agent}@{node_text(hit.record.node)}" for hit in hits]
