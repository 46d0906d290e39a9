"""One contract for both ways of comparing vectors, and against plain arithmetic."""

import math
import random

import pytest

from ioa_p2p.storage.vectors import MatrixVectors, PlainVectors, Vectors, vectors

SIZE = 16


@pytest.fixture(params=[PlainVectors, MatrixVectors])
def rows(request: pytest.FixtureRequest) -> Vectors:
    return request.param(SIZE)


def cosine(a: bytes, b: bytes) -> float:
    first, second = (memoryview(one).cast("b").tolist() for one in (a, b))
    lengths = math.sqrt(sum(x * x for x in first) * sum(y * y for y in second))
    return sum(x * y for x, y in zip(first, second, strict=True)) / (lengths or 1.0)


def cosines(rows: Vectors, query: bytes, numbers: set[int]) -> dict[int, float]:
    compared = rows.compare(query)
    return {number: compared.cosine(number) for number in numbers}


def test_cosines_are_those_of_the_rows_put_last_whatever_was_dropped(rows: Vectors) -> None:
    dice, kept = random.Random(5), dict[int, bytes]()
    for _ in range(1_000):
        number, vector = dice.randrange(200), dice.randbytes(SIZE)
        if dice.random() < 0.6:
            rows.put(number, vector)
            kept[number] = vector
        else:
            rows.drop(number)
            kept.pop(number, None)
    query = dice.randbytes(SIZE)
    expected = {number: cosine(vector, query) for number, vector in kept.items()}
    assert len(expected) > 64  # the matrix has grown
    assert cosines(rows, query, set(range(200))) == pytest.approx(
        {**dict.fromkeys(range(200), 0.0), **expected}, abs=1e-5
    )
    ordered = sorted(expected, key=lambda number: -expected[number])
    for count in (0, 1, 20, len(ordered), len(ordered) + 5):
        assert rows.compare(query).nearest(count) == ordered[:count]


def test_a_vector_of_zeros_is_like_nothing(rows: Vectors) -> None:
    rows.put(1, bytes(SIZE))
    rows.put(2, bytes([1]) * SIZE)
    assert cosines(rows, bytes(SIZE), {1, 2}) == {1: 0.0, 2: 0.0}
    assert cosines(rows, bytes([2]) * SIZE, {1, 2}) == pytest.approx({1: 0.0, 2: 1.0})
    assert rows.compare(bytes([2]) * SIZE).nearest(9) == [2, 1]


def test_without_rows_nothing_is_near(rows: Vectors) -> None:
    rows.drop(7)
    assert rows.compare(bytes(SIZE)).nearest(9) == []
    assert rows.compare(bytes(SIZE)).cosine(7) == 0.0


def test_without_numpy_plain_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(vectors(SIZE), MatrixVectors)
    monkeypatch.setattr("ioa_p2p.storage.vectors.find_spec", lambda _: None)
    assert isinstance(vectors(SIZE), PlainVectors)
