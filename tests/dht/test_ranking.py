"""In what order pointers are given to who asks with a sketch."""

import random
import struct

import pytest

from ioa_p2p.dht import ranking
from ioa_p2p.dht.store import Held
from ioa_p2p.wire import limits
from tests.dht.frames import item
from tests.wire.samples import pointer

DICE = random.Random(1)


def sketch(*values: int) -> bytes:
    """The first values of a sketch whose others are 0."""
    return struct.pack(f"{limits.SKETCH_BYTES}b", *values, *[0] * (limits.SKETCH_BYTES - len(values)))


def held(number: int, sketch: bytes, source: bytes | None = None) -> Held:
    one = item(pointer(agent=f"agent-{number}", sketch=sketch))
    return Held(one, b"%d" % number if source is None else source, 0.0)


def names(several: list[Held]) -> list[int]:
    return [int(one.item.body.agent.split("-")[1]) for one in several]


def naive(query: bytes, other: bytes) -> int:
    return sum(a * b for a, b in zip(memoryview(query).cast("b"), memoryview(other).cast("b"), strict=True))


@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_all_dot_products_are_what_they_are_one_by_one(count: int):
    query, sketches = DICE.randbytes(64), [DICE.randbytes(64) for _ in range(count)]
    assert ranking.dot_products(query, sketches) == [naive(query, one) for one in sketches]


@pytest.mark.parametrize(("query", "other"), [(-128, -128), (-128, 127), (127, 127), (127, -128), (0, 5)])
def test_the_largest_dot_products_do_not_spill_into_their_neighbours(query: int, other: int):
    extremes = [struct.pack("64b", *[value] * 64) for value in (other, -128, other, 127, other)]
    found = ranking.dot_products(struct.pack("64b", *[query] * 64), extremes)
    assert found == [64 * query * value for value in (other, -128, other, 127, other)]


def test_the_nearest_come_first_and_those_without_a_sketch_last():
    several = [held(0, b""), held(1, sketch(1)), held(2, sketch(9)), held(3, sketch(-9)), held(4, sketch(5))]
    assert names(ranking.ranked(sketch(100), several)) == [2, 4, 1, 3, 0]


def test_one_source_has_two_places_before_all_others_had_one():
    flood = [held(number, sketch(127), b"flood") for number in range(5)]
    honest = [held(number, sketch(number), b"%d" % number) for number in range(10, 13)]
    assert names(ranking.ranked(sketch(100), flood + honest)) == [0, 1, 12, 11, 10, 2, 3, 4]


def test_of_eight_six_are_the_best_and_two_by_lot():
    best = [held(number, b"") for number in range(20)]
    order = list(ranking.mixed(best, reversed(best), 0))[:8]
    assert names([one for one, _ in order]) == [0, 1, 2, 19, 3, 4, 5, 18]
    assert [places for _, places in order] == [1, 1, 1, 0, 1, 1, 1, 0]


def test_a_later_page_goes_on_at_its_place_with_others_by_lot():
    best = [held(number, b"") for number in range(20)]
    assert names([one for one, _ in ranking.mixed(best, reversed(best), 6)])[:4] == [6, 7, 8, 17]
    assert names([one for one, _ in ranking.mixed(best, reversed(best), 18)]) == [18, 19]
