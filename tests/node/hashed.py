"""A Meaning without a model: words are thrown at random directions, so texts that share words lie near each other.

text ── words ──> one seeded random vector a word, summed ──> length 1. Plain Python: no test needs numpy for it.
"""

import math
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from ioa_p2p.wire.sketch import NUMBERS, pack
from ioa_p2p.wire.words import words

CELLS = 16


class Hashed:
    """A `mind.meaning.Meaning`. Vectors are lists of `NUMBERS` floats: a sketch is one, rounded."""

    model = "hashed-1"

    def encode(self, texts: Sequence[str]) -> Any:
        sums = ([sum(column) for column in zip(*map(_direction, words(text) or ["?"]), strict=True)] for text in texts)
        return _Rows(map(_unit, sums))

    def cells(self, vector: Any, count: int) -> tuple[int, ...]:
        near = [_dot(vector, _direction(f"cell {number}")) for number in range(CELLS)]
        return tuple(sorted(range(CELLS), key=lambda number: -near[number])[:count])

    def sketch(self, vector: Any) -> bytes:
        return pack(vector, 1 / math.sqrt(NUMBERS))


class _Rows(list[list[float]]):
    """As much of a matrix as a ranker uses."""

    def __matmul__(self, vector: list[float]) -> list[float]:
        return [_dot(row, vector) for row in self]


@cache
def _direction(word: str) -> list[float]:
    dice = random.Random(word)
    return _unit([dice.gauss(0, 1) for _ in range(NUMBERS)])


def _unit(vector: list[float]) -> list[float]:
    size = math.sqrt(_dot(vector, vector)) or 1.0
    return [value / size for value in vector]


def _dot(a: Any, b: Any) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
