"""Causal order: after everything its author had seen, or after 60 s."""

from ioa_p2p.gossip.order import Order
from ioa_p2p.wire.gossip import FIRST_PREVIOUS, Entry
from tests.gossip.team import NODES, TEAM

A, B, C, STRANGER = NODES[:4]
MEMBERS = dict.fromkeys((A, B, C))


def entry(author: bytes, seq: int, *seen: tuple[bytes, int]) -> Entry:
    return Entry(author, TEAM, 0, seq, FIRST_PREVIOUS, seen, "text", b"", 0)


def ids(entries: list[Entry]) -> list[tuple[bytes, int]]:
    return [(one.node, one.seq) for one in entries]


def test_an_entry_that_had_seen_nothing_new_is_shown_at_once() -> None:
    order = Order(MEMBERS, {})
    assert ids(order.add(0.0, entry(A, 1))) == [(A, 1)]
    assert ids(order.add(0.0, entry(B, 1, (A, 1)))) == [(B, 1)]
    assert order.next_due is None


def test_an_answer_waits_for_its_question_and_all_that_follows_waits_too() -> None:
    order = Order(MEMBERS, {})
    assert order.add(0.0, entry(B, 1, (A, 2))) == []
    assert order.add(1.0, entry(B, 2)) == []
    assert order.add(2.0, entry(C, 1, (B, 2))) == []
    assert ids(order.add(3.0, entry(A, 1))) == [(A, 1)]
    assert order.waiting(B) == 2
    assert ids(order.add(4.0, entry(A, 2))) == [(A, 2), (B, 1), (B, 2), (C, 1)]
    assert order.shown == {A: 2, B: 2, C: 1}


def test_a_gap_that_nobody_fills_counts_as_met_after_a_minute_and_durably_so() -> None:
    order = Order(MEMBERS, {})
    order.add(100.0, entry(B, 1, (A, 2)))
    assert order.next_due == 160.0
    assert order.force(159.9) == ([], {})
    shown, forced = order.force(160.0)
    assert (ids(shown), forced) == ([(B, 1)], {B: 1})
    again = Order(MEMBERS, forced)
    assert ids(again.add(0.0, entry(B, 1, (A, 2)))) == [(B, 1)]
    assert again.add(0.0, entry(B, 2, (A, 3))) == []


def test_what_was_given_up_for_missing_is_shown_as_late_when_it_turns_up() -> None:
    order = Order(MEMBERS, {})
    order.add(0.0, entry(B, 1, (A, 2)))
    order.force(60.0)
    late = [order.is_late(one) for seq in (1, 2, 3) for one in order.add(1.0, entry(A, seq))]
    assert late == [True, True, False]


def test_what_can_never_come_is_not_waited_for() -> None:
    order = Order(MEMBERS, {})
    order.end(A, 1)
    assert ids(order.add(0.0, entry(B, 1, (A, 2), (STRANGER, 9)))) == [(B, 1)]
    assert order.add(0.0, entry(C, 1, (A, 1))) == []
    assert order.add(0.0, entry(A, 2)) == []
    assert ids(order.add(0.0, entry(A, 1))) == [(A, 1), (C, 1)]


def test_a_fork_takes_back_what_still_waits_beyond_it() -> None:
    order = Order(MEMBERS, {})
    for seq in (1, 2, 3):
        order.add(0.0, entry(A, seq, (B, 1)))
    order.add(0.0, entry(C, 1, (A, 3)))
    order.end(A, 2)
    assert ids(order.release()) == [(C, 1)]
    assert ids(order.add(0.0, entry(B, 1))) == [(B, 1), (A, 1), (A, 2)]
