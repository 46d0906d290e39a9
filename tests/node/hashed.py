"""A Meaning without a model: words are thrown at random directions, so texts that share words lie near each other.

text ── words ──> one seeded random vector a word, summed ──> length 1.
"""

import math
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from ioa_p2p.wire import limits
from ioa_p2p.wire.words import words

CELLS = 16


class Hashed:
    """A `mind.meaning.Meaning`. Vectors have `limits.SKETCH_BYTES` dimensions: a sketch is one, rounded."""

    model = "hashed-1"

    def encode(self, texts: Sequence[str]) -> Any:
        numpy = pytest.importorskip("numpy", reason="vectors need numpy, which the extra `semantic` brings")
        sums = ([sum(column) for column in zip(*map(_direction, words(text) or ["?"]), strict=True)] for text in texts)
        return numpy.array([_unit(row) for row in sums])

    def cells(self, vector: Any, count: int) -> tuple[int, ...]:
        near = [_dot(vector, _direction(f"cell {number}")) for number in range(CELLS)]
        return tuple(sorted(range(CELLS), key=lambda number: -near[number])[:count])

    def rest(self) -> None:
        pass

    def sketch(self, vector: Any) -> bytes:
        largest = max(map(abs, vector)) or 1.0
        return bytes(round(127 * value / largest) & 0xFF for value in vector)


@cache
def _direction(word: str) -> list[float]:
    dice = random.Random(word)
    return _unit([dice.gauss(0, 1) for _ in range(limits.SKETCH_BYTES)])


def _unit(vector: list[float]) -> list[float]:
    size = math.sqrt(_dot(vector, vector)) or 1.0
    return [value / size for value in vector]


def _dot(a: Any, b: Any) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
