"""What a crowded key keeps: as much of every source as there is room for, and by lot."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.dht.sample import Sample


def rank(slot: bytes) -> bytes:
    """Foreseen by nobody: of a fixed shuffle."""
    return random.Random(slot).randbytes(8)


def filled(offers: list[tuple[bytes, bytes]], most: int) -> dict[bytes, bytes]:
    """offers: (slot, source). What is kept of them, if they come in this order: slot to source."""
    sample, sources = Sample(), dict(offers)
    for slot, source in offers:
        sample.add(slot, source, rank(slot))
        if len(sample) > most:
            last = sample.last()
            sample.remove(last, sources[last], rank(last))
    return {slot: sources[slot] for slot in sample.order()}


def offers_of(source: bytes, count: int) -> list[tuple[bytes, bytes]]:
    return [(source + b"%d" % number, source) for number in range(count)]


def test_a_flood_from_few_sources_pushes_out_nobody_else_whenever_it_comes():
    honest = [(b"honest-%d" % number, b"home-%d" % number) for number in range(50)]
    flood = [one for source in range(5) for one in offers_of(b"evil-%d" % source, 400)]
    for offers in (honest + flood, flood + honest):
        kept = filled(offers, 100)
        assert len(kept) == 100
        assert {slot for slot, _ in honest} <= kept.keys()
        shares = Counter(source for source in kept.values() if source.startswith(b"evil"))
        assert set(shares.values()) == {10}


def test_what_is_kept_does_not_depend_on_the_order_in_which_it_came():
    offers = [one for source in range(30) for one in offers_of(b"%d" % source, 1 + source % 7)]
    expected = filled(offers, 40).keys()
    for seed in range(5):
        random.Random(seed).shuffle(offers)
        assert filled(offers, 40).keys() == expected


def test_of_sources_with_one_each_every_part_of_the_crowd_is_kept_alike():
    crowd = [(b"slot-%d" % number, b"%d" % number) for number in range(2_000)]
    kept = filled(crowd, 400)
    quarters = Counter(int(slot.split(b"-")[1]) // 500 for slot in kept)
    assert min(quarters.values()) >= 70


def test_the_order_goes_round_the_sources_and_begins_where_it_is_told():
    sample = Sample()
    for slot, source in (*offers_of(b"a", 3), *offers_of(b"b", 1), *offers_of(b"c", 2)):
        sample.add(slot, source, rank(slot))
    orders = [list(sample.order(start)) for start in range(6)]
    for order in orders:
        assert [slot[:1] for slot in sorted(order[:3])] == [b"a", b"b", b"c"]
        assert [slot[:1] for slot in sorted(order[3:5])] == [b"a", b"c"]
        assert len(set(order)) == 6
    assert len({order[0] for order in orders}) == 3


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4), st.booleans())))
def test_slots_come_and_go_in_any_order_and_the_turns_have_no_holes(steps: list[tuple[int, int, bool]]):
    sample, kept = Sample(), dict[bytes, bytes]()
    for number, origin, comes in steps:
        slot, source = b"%d" % number, b"%d" % origin
        if slot in kept:
            sample.remove(slot, kept.pop(slot), rank(slot))
        if comes:
            kept[slot] = source
            sample.add(slot, source, rank(slot))
        assert len(sample) == len(kept)
    assert set(sample.order()) == kept.keys()
    sizes = Counter(kept.values())
    turns = [sum(size > turn for size in sizes.values()) for turn in range(max(sizes.values(), default=0))]
    order = [kept[slot] for slot in sample.order()]
    for turn, size in enumerate(turns):
        part = order[sum(turns[:turn]) : sum(turns[:turn]) + size]
        assert len(set(part)) == size


def test_a_source_with_very_many_is_cut_first_and_leaves_without_a_trace():
    sample, many, few = Sample(), offers_of(b"many", 200), offers_of(b"few", 60)
    for slot, source in many + few:
        sample.add(slot, source, rank(slot))
    for _ in range(100):
        last = sample.last()
        assert last.startswith(b"many")
        sample.remove(last, b"many", rank(last))
    for slot, _ in many:
        if slot in set(sample.order()):
            sample.remove(slot, b"many", rank(slot))
    assert sorted(sample.order()) == sorted(slot for slot, _ in few)
