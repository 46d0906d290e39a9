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


def filled(items, sketch: bytes = b"") -> Harvest:
    harvest = Harvest(sketch, DICE)
    for each in items:
        harvest.add(each, b"holder")
    return harvest


def test_one_agent_counts_once_in_its_newest_issue_with_all_who_had_it():
    harvest = Harvest(b"", DICE)
    old, new = one(1, seq=10), one(1, seq=11, depth=4)
    for each, holder in ((old, b"a"), (new, b"b"), (old, b"c"), (new, b"b")):
        harvest.add(each, holder)
    assert harvest.pick(10) == [(new.body, 3)]


def test_a_subnet_with_many_gets_no_more_than_others_leave():
    flood = [one(number, f"93.184.216.{number}") for number in range(1, 200)]
    honest = [one(1_000 + number, f"8.8.{number}.1") for number in range(50)]
    nodes = [body.node for body, _ in filled(flood + honest).pick(60)]
    assert len(nodes) == 60
    assert {each.body.node for each in honest} < set(nodes)


def test_a_node_with_many_agents_gets_no_more_than_others_leave():
    flood = [one(1, agent=f"agent-{number}") for number in range(50)]
    picked = filled(flood + [one(number) for number in range(2, 12)]).pick(15)
    assert Counter(body.node == flood[0].body.node for body, _ in picked) == {False: 10, True: 5}


def test_of_too_many_each_reader_gets_others():
    harvest = filled([one(number) for number in range(40)])
    assert {body.node for body, _ in harvest.pick(10)} != {body.node for body, _ in harvest.pick(10)}


def test_by_sketch_the_nearest_come_first_and_those_without_one_last():
    harvest = filled(
        [one(1), *(one(number, sketch=b"\xff" * number + bytes(64 - number)) for number in (5, 9, 7))], b"\xff" * 64
    )
    assert [body.sketch.count(0xFF) for body, _ in harvest.pick(4)] == [9, 7, 5, 0]
    assert [body.sketch.count(0xFF) for body, _ in harvest.pick(2)] == [9, 7]
