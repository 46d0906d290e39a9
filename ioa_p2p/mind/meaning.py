"""What a text is about, as numbers: the port between search and an encoder.

    text ── encode ──> vector ──┬── cells ──> numbers of the nearest centroids: index keys "cell:MODEL:17"
                                └── sketch ─> 64 B that holders rank pointers by

Without the extra `semantic` there is none: `load()` is None, and search goes by words alone.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ioa_p2p.errors import UsageError
from ioa_p2p.wire.records import Card

if TYPE_CHECKING:
    from ioa_p2p.mind.vectors import Vectors

log = logging.getLogger(__name__)


class Meaning(Protocol):
    """One encoder with its codebook. Vectors, cells and sketches of different `model`s never meet."""

    @property
    def model(self) -> str:
        """Name and version of encoder and codebook together, <= 32 B; goes into every record."""
        ...

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """(len(texts), dimensions), each row of length 1. Blocks for some ms a text: call it off the event loop."""
        ...

    def cells(self, vector: "Vectors", count: int) -> tuple[int, ...]:
        """Numbers of the `count` centroids nearest to one vector, nearest first."""
        ...

    def rest(self) -> None:
        """Let go of what takes memory; the next `encode` takes a second longer."""
        ...

    def sketch(self, vector: "Vectors") -> bytes:
        """One vector as `limits.SKETCH_BYTES` of `wire.sketch`, whose dot products rank as those of vectors do."""
        ...

    def numbers(self, vector: "Vectors") -> tuple[float, ...]:
        """The `wire.sketch.NUMBERS` numbers that the sketch of a vector rounds."""
        ...


def load() -> Meaning | None:
    """The encoder of the extra `semantic`, or None without it. Blocks for some 100 ms: call it off the event loop.

    One that is there but is not the one our codebook was made for counts as absent, and the log says so.
    """
    try:
        from ioa_p2p.mind.encoder import Encoder
    except ImportError:
        return None
    try:
        return Encoder.installed()
    except UsageError as fault:
        log.warning("search goes by words alone: %s", fault)
        return None


def card_text(card: Card) -> str:
    """What of an agent is encoded: its name, what it says of itself, its skills; names as plain words.

    The name is a sentence of its own: measured better than a label before a colon (docs/search.md, "Ranking").
    """
    skills = (f"{_plain(skill.name)}: {skill.description}" for skill in card.skills if skill.description)
    return " ".join((f"{_plain(card.name)}. {card.description}", *skills))


def _plain(name: str) -> str:
    return name.translate(str.maketrans("-./", "   "))
