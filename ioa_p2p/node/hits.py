"""What a search found, and in which order it is shown: trust first, then match, then freshness and load.

    Hit ── match, from a ranker ──> Placed(hit, match, why) ── in_order ──> the best first

Texts of a card never lift an agent over one that is trusted more; but who does not match at all is no hit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ioa_p2p.node.trust import Standing
from ioa_p2p.steps import FoundAgent
from ioa_p2p.wire.ids import NodeId
from ioa_p2p.wire.records import AgentRecord, Card

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
    """match: as the ranker measures it; only differences count."""

    hit: Hit
    match: float

    @property
    def place(self) -> tuple[Any, ...]:
        """Sorts the best first."""
        hit = self.hit
        near = round(self.match / STEP)
        return hit.standing.level, -near, int(hit.age_s // AGE_STEP_S), hit.load or 0.0, hit.agent

    @property
    def why(self) -> list[str]:
        """One clause a reason, in the order in which they count."""
        hit = self.hit
        under = f"found under {' '.join(hit.keys)}" if hit.keys else f"known from {_PLACES[hit.source]}"
        load = [] if hit.load is None else [f"busy to {hit.load:.0%}"]
        answer = "its node answered just now" if hit.answered else "its node has not answered"
        return [hit.standing.why, f"match {self.match:.2f}", under, f"record {ago(hit.age_s)} old", *load, answer]


_PLACES = {Source.OWN: "this node", Source.DIRECTORY: "the local directory", Source.MESH: "the mesh"}


def in_order(hits: Sequence[Hit], matches: Sequence[float]) -> list[Placed]:
    """matches: one a hit."""
    placed = (Placed(hit, match) for hit, match in zip(hits, matches, strict=True))
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
