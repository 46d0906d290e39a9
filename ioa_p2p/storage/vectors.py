"""Directions of texts in memory, compared one by one: at ten thousand rows nothing cleverer is faster enough.

    put(number, vector) ──> rows ── compare(query) ──> nearest(count) -> numbers, cosine(number) -> -1.0 .. 1.0

A vector is signed bytes of any one length; only its direction counts. With numpy all rows are one matrix (5 MB at
10,000 x 512); without, plain Python does for sketches of 64 B. Both hold to one contract.
"""

import heapq
import math
import operator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Vectors(Protocol):
    """Rows of `size` bytes each, by number."""

    def put(self, number: int, vector: bytes) -> None: ...

    def drop(self, number: int) -> None:
        """Nothing happens if it is not there."""
        ...

    def compare(self, query: bytes) -> "Comparison":
        """With every row. query: `size` bytes; one of zeros is like nothing."""
        ...


class Comparison(Protocol):
    """One query against all rows as they were."""

    def nearest(self, count: int) -> list[int]:
        """Numbers of the rows most like the query, the most like it first."""
        ...

    def cosine(self, number: int) -> float:
        """0.0 for a row that is not there."""
        ...


def vectors(size: int) -> Vectors:
    """An empty set of rows; numpy is loaded here, if it is there at all."""
    return MatrixVectors(size) if find_spec("numpy") else PlainVectors(size)


class PlainVectors:
    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: dict[int, tuple[memoryview, float]] = {}

    def put(self, number: int, vector: bytes) -> None:
        assert len(vector) == self._size
        self._rows[number] = _signed(vector)

    def drop(self, number: int) -> None:
        self._rows.pop(number, None)

    def compare(self, query: bytes) -> Comparison:
        asked, length = _signed(query)
        return _Scores({number: _dot(row, asked) / (own * length) for number, (row, own) in self._rows.items()})


class _Scores:
    def __init__(self, scores: dict[int, float]) -> None:
        self._scores = scores

    def nearest(self, count: int) -> list[int]:
        return heapq.nlargest(count, self._scores, self._scores.__getitem__)

    def cosine(self, number: int) -> float:
        return self._scores.get(number, 0.0)


def _signed(vector: bytes) -> tuple[memoryview, float]:
    """A vector as numbers, and its length; that of zeros is taken for 1."""
    numbers = memoryview(vector).cast("b")
    return numbers, math.sqrt(_dot(numbers, numbers)) or 1.0


def _dot(a: memoryview, b: memoryview) -> int:
    return sum(map(operator.mul, a, b))


class MatrixVectors:
    """The matrix grows by doubling; the last row takes the place of one that is dropped."""

    def __init__(self, size: int) -> None:
        import numpy as np

        self._np = np
        self._places: dict[int, int] = {}
        self._numbers: list[int] = []
        self._rows = np.zeros((64, size), np.int8)
        self._lengths = np.ones(64, np.float32)

    def put(self, number: int, vector: bytes) -> None:
        place = self._places.setdefault(number, len(self._numbers))
        if place == len(self._numbers):
            self._numbers.append(number)
            self._grow()
        self._rows[place] = self._np.frombuffer(vector, self._np.int8)
        self._lengths[place] = self._length(self._rows[place])

    def drop(self, number: int) -> None:
        place = self._places.pop(number, None)
        if place is None:
            return
        last = self._numbers.pop()
        if last != number:
            self._numbers[place], self._places[last] = last, place
            self._rows[place] = self._rows[len(self._numbers)]
            self._lengths[place] = self._lengths[len(self._numbers)]

    def compare(self, query: bytes) -> Comparison:
        """By einsum, not BLAS: its threads stall for tens of ms on a machine that is busy."""
        count = len(self._numbers)
        asked = self._np.frombuffer(query, self._np.int8)
        dots = self._np.einsum("ij,j->i", self._rows[:count], asked, dtype=self._np.int32)
        return _Row(self._numbers, self._places, dots / (self._lengths[:count] * self._length(asked)))

    def _length(self, row: "NDArray[np.int8]") -> float:
        return float(self._np.linalg.norm(row.astype(self._np.float32))) or 1.0

    def _grow(self) -> None:
        if len(self._numbers) > len(self._rows):
            self._rows = self._np.concatenate([self._rows, self._np.zeros_like(self._rows)])
            self._lengths = self._np.concatenate([self._lengths, self._np.ones_like(self._lengths)])


class _Row:
    """Good until the rows change."""

    def __init__(self, numbers: list[int], places: dict[int, int], cosines: "NDArray[np.float32]") -> None:
        self._numbers = numbers
        self._places = places
        self._cosines = cosines

    def nearest(self, count: int) -> list[int]:
        if not count:
            return []
        some = self._cosines.argpartition(-count)[-count:] if count < len(self._cosines) else self._cosines.argsort()
        return [self._numbers[place] for place in some[(-self._cosines[some]).argsort()].tolist()]

    def cosine(self, number: int) -> float:
        place = self._places.get(number)
        return float(self._cosines[place]) if place is not None else 0.0
