"""Sketches: packing, and how near two are."""

import math
import random
from itertools import product

import pytest

from ioa_p2p.wire import limits
from ioa_p2p.wire.sketch import NUMBERS, dot_products, likeness, pack

DICE = random.Random(1)


def numbers(sketch: bytes) -> list[int]:
    """As docs/wire.md says, bit by bit."""
    bits = int.from_bytes(sketch, "little")
    return [2 * (bits >> 2 * place & 3) - 3 for place in range(NUMBERS)]


def naive(a: bytes, b: bytes) -> int:
    return sum(x * y for x, y in zip(numbers(a), numbers(b), strict=True))


def test_numbers_are_packed_by_size_and_sign_the_first_lowest() -> None:
    packed = pack([-9.0, -0.5, 0.5, 9.0] * (NUMBERS // 4), 1.0)
    assert packed == bytes([0b11100100]) * limits.SKETCH_BYTES
    assert numbers(packed)[:4] == [-3, -1, 1, 3]


@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_all_dot_products_are_what_they_are_one_by_one(count: int) -> None:
    query, sketches = DICE.randbytes(64), [DICE.randbytes(64) for _ in range(count)]
    assert dot_products(query, sketches) == [naive(query, one) for one in sketches]


def test_the_largest_dot_products_do_not_spill_into_their_neighbours() -> None:
    extremes = [bytes([byte]) * 64 for byte in (0, 0xFF, 0, 0x55, 0xFF)]
    for query, others in product(extremes, (extremes, extremes[::-1])):
        assert dot_products(query, others) == [naive(query, other) for other in others]


def test_the_likeness_of_numbers_to_a_sketch_is_their_cosine_with_its() -> None:
    sketch, ours = DICE.randbytes(64), [DICE.gauss(0, 1) for _ in range(NUMBERS)]
    both = sum(x * y for x, y in zip(ours, numbers(sketch), strict=True))
    expected = both / math.sqrt(sum(x * x for x in ours) * naive(sketch, sketch))
    assert likeness(ours, sketch) == pytest.approx(expected)
    assert likeness(numbers(sketch), sketch) == pytest.approx(1)
    assert likeness(ours, b"") == likeness((), sketch) == likeness([0.0] * NUMBERS, sketch) == 0
