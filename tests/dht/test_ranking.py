"""In what order pointers are given to who asks with a sketch."""

from ioa_p2p.dht import ranking
from ioa_p2p.dht.store import Held
from ioa_p2p.wire.sketch import NUMBERS, pack
from tests.dht.frames import item
from tests.wire.samples import pointer


def sketch(near: int) -> bytes:
    """The first `near` numbers are 3, the others -3."""
    return pack([1.0] * near + [-1.0] * (NUMBERS - near), 0.5)


def held(number: int, sketch: bytes, source: bytes | None = None) -> Held:
    one = item(pointer(agent=f"agent-{number}", sketch=sketch))
    return Held(one, b"%d" % number if source is None else source, 0.0)


def names(several: list[Held]) -> list[int]:
    return [int(one.item.body.agent.split("-")[1]) for one in several]


def test_the_nearest_come_first_and_those_without_a_sketch_last():
    several = [held(0, b""), held(1, sketch(1)), held(2, sketch(9)), held(3, sketch(0)), held(4, sketch(5))]
    assert names(ranking.ranked(sketch(NUMBERS), several)) == [2, 4, 1, 3, 0]


def test_between_equals_every_holder_has_the_same_order():
    several = [held(number, sketch(5)) for number in range(9)]
    assert names(ranking.ranked(sketch(9), several)) == names(ranking.ranked(sketch(9), several[::-1]))


def test_one_source_has_two_places_before_all_others_had_one():
    flood = [held(number, sketch(200 - number), b"flood") for number in range(5)]
    honest = [held(number, sketch(number), b"%d" % number) for number in range(10, 13)]
    assert names(ranking.ranked(sketch(NUMBERS), flood + honest)) == [0, 1, 12, 11, 10, 2, 3, 4]


def test_of_eight_six_are_the_best_and_two_by_lot():
    best = [held(number, b"") for number in range(20)]
    order = list(ranking.mixed(best, reversed(best), 0))[:8]
    assert names([one for one, _ in order]) == [0, 1, 2, 19, 3, 4, 5, 18]
    assert [places for _, places in order] == [1, 1, 1, 0, 1, 1, 1, 0]


def test_a_later_page_goes_on_at_its_place_with_others_by_lot():
    best = [held(number, b"") for number in range(20)]
    assert names([one for one, _ in ranking.mixed(best, reversed(best), 6)])[:4] == [6, 7, 8, 17]
    assert names([one for one, _ in ranking.mixed(best, reversed(best), 18)]) == [18, 19]
