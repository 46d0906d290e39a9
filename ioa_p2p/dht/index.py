"""Under which index keys an agent is found. Cut at 32, in a fixed order; what was cut is said.

    cells of an index model > skill names > output types > first prefixes > keywords > input types

The same texts are asked for: "cell:MODEL:17", "skill:stats.outliers", "out:stats.report", "skill:stats",
"word:memory", "in:metrics".
"""

from collections.abc import Iterator, Sequence

from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.words import words

_CELL = "cell:"


def index_keys(card: Card, cells: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """(kept, cut) index key texts, most useful first, each once. cells: `cell_key`s nearest to the card."""
    ordered = list(dict.fromkeys([*cells, *_of(card)]))
    return ordered[: limits.INDEX_KEYS_MAX], ordered[limits.INDEX_KEYS_MAX :]


def cell_key(model: str, cell: int) -> str:
    """The key text of one centroid: it names the index model, for cells and sketches of different ones never meet."""
    return f"{_CELL}{model}:{cell}"


def is_cell_key(text: str) -> bool:
    return text.startswith(_CELL)


def _of(card: Card) -> Iterator[str]:
    for skill in card.skills:
        yield f"skill:{skill.name}"
    for skill in card.skills:
        yield from (f"out:{_type(name)}" for name in skill.outputs)
    for skill in card.skills:
        yield f"skill:{skill.name.split('.')[0]}"
    for text in _texts(card):
        yield from (f"word:{word}" for word in words(text))
    for skill in card.skills:
        yield from (f"in:{_type(name)}" for name in skill.inputs)


def _texts(card: Card) -> Iterator[str]:
    """What keywords come from: names and tags say more a word than descriptions."""
    yield card.name
    for skill in card.skills:
        yield from skill.tags
    yield card.description
    for skill in card.skills:
        yield skill.description


def _type(name: str) -> str:
    """The type without its mark for "all there are"."""
    return name.removesuffix("*")
