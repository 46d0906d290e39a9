"""What is handed on of all that a read brought in."""

import random
from collections import Counter

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht.harvest import Harvest
from ioa_p2p.wire.dht import pack_endpoint
from tests.dht.frames import item
from tests.wire.samples import pointer

DICE = random.Random(1)


def one(number: int, host: str = "127.0.0.1", agent: str = "a", **changes):
    key = NodeKey(number.to_bytes(32))
    return item(pointer(key, agent=agent, endpoint=pack_endpoint(host, 4001), **changes), key)


def filled(items, sketch: bytes = b"", source=lambda body: body.node) -> Harvest:
    harvest = Harvest(sketch, DICE)
    for each in items:
        harvest.add(each, b"holder", source(each.body))
    return harvest


def test_one_agent_counts_once_in_its_newest_issue_with_all_who_had_it():
    harvest = Harvest(b"", DICE)
    old, new = one(1, seq=10), one(1, seq=11, depth=4)
    for each, holder in ((old, b"a"), (new, b"b"), (old, b"c"), (new, b"b")):
        harvest.add(each, holder, b"")
    assert harvest.pick(10) == [(new.body, 3)]


def test_a_source_with_many_gets_no_more_than_others_leave_whatever_its_pointers_name():
    flood = [one(number, f"93.184.{number}.1") for number in range(1, 200)]
    honest = [one(1_000 + number, f"8.8.{number}.1") for number in range(50)]
    nodes = {each.body.node for each in honest}
    picked = filled(flood + honest, source=lambda body: body.node if body.node in nodes else b"flood").pick(60)
    assert len(picked) == 60
    assert nodes < {body.node for body, _ in picked}


def test_a_source_is_what_most_holders_say():
    harvest = Harvest(b"", DICE)
    for number in range(20):
        for holder, source in ((b"a", b"flood"), (b"b", b"flood"), (b"liar", b"%d" % number)):
            harvest.add(one(number), holder, source)
    for number in range(100, 104):
        harvest.add(one(number), b"a", b"%d" % number)
    nodes = {one(number).body.node for number in range(100, 104)}
    assert nodes < {body.node for body, _ in harvest.pick(5)}


def test_a_node_with_many_agents_gets_no_more_than_others_leave():
    flood = [one(1, agent=f"agent-{number}") for number in range(50)]
    picked = filled(flood + [one(number) for number in range(2, 12)]).pick(15)
    assert Counter(body.node == flood[0].body.node for body, _ in picked) == {False: 10, True: 5}


def test_of_too_many_each_reader_gets_others():
    harvest = filled([one(number) for number in range(40)])
    assert {body.node for body, _ in harvest.pick(10)} != {body.node for body, _ in harvest.pick(10)}


def test_by_sketch_three_quarters_are_the_nearest_and_the_others_are_drawn_by_lot():
    """Number n agrees with the query in 4 n numbers of its sketch."""
    query, many = b"\xff" * 64, [one(number, sketch=b"\xff" * number + bytes(64 - number)) for number in range(60)]
    harvest = filled([*many, one(200)], query)
    picks = [[body.sketch.count(0xFF) if body.sketch else -1 for body, _ in harvest.pick(8)] for _ in range(5)]
    assert all(pick[:6] == [59, 58, 57, 56, 55, 54] for pick in picks)
    assert len({tuple(pick[6:]) for pick in picks}) > 2
    assert [body.sketch for body, _ in filled([one(1), many[5]], query).pick(2)] == [many[5].body.sketch, b""]
