"""Repair: whom to ask, and what happens with those that do not help."""

import random

from ioa_p2p.gossip.log import Chain
from ioa_p2p.gossip.repair import Repair, span
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, TEAM, chain

AUTHOR, HELPER, LIAR = NODES[:3]


def empty() -> Chain:
    return Chain(TEAM, AUTHOR, lambda space: [])


def grow(held: Chain, length: int = 1) -> None:
    for raw in chain(KEYS[0], held.head + length)[held.head :]:
        held.append(raw, blake(raw))


def test_the_author_is_asked_first_and_only_once_at_a_time() -> None:
    repair, held = Repair(random.Random(1)), empty()
    assert repair.ask(0.0, AUTHOR, held, [HELPER, AUTHOR]) == AUTHOR
    assert repair.ask(1.9, AUTHOR, held, [HELPER, AUTHOR]) is None
    assert repair.next_due == 2.0


def test_who_does_not_help_rests_longer_each_time_and_others_are_asked() -> None:
    repair, held = Repair(random.Random(1)), empty()
    asked = []
    for tenth in range(150):
        peer = repair.ask(tenth / 10, AUTHOR, held, [LIAR])
        if peer:
            asked.append(tenth / 10)
    assert asked == [0.0, 4.0, 10.0]
    assert repair.ask(15.0, AUTHOR, held, [LIAR, HELPER]) == HELPER


def test_a_frontier_told_anew_ends_the_rest() -> None:
    repair, held = Repair(random.Random(1)), empty()
    repair.ask(0.0, AUTHOR, held, [HELPER])
    assert repair.ask(2.0, AUTHOR, held, [HELPER]) is None
    repair.hear(HELPER)
    repair.lose(HELPER)
    assert repair.ask(4.0, AUTHOR, held, [HELPER]) == HELPER


def test_an_answer_that_helped_lets_the_next_range_go_at_once() -> None:
    repair, held = Repair(random.Random(1)), empty()
    repair.ask(0.0, AUTHOR, held, [HELPER])
    assert not repair.end(AUTHOR, held, HELPER)
    grow(held)
    assert not repair.end(AUTHOR, held, LIAR)
    assert repair.end(AUTHOR, held, HELPER)
    assert repair.ask(0.1, AUTHOR, held, [HELPER]) == HELPER


def test_nothing_is_due_when_nobody_holds_more_or_the_one_asked_is_gone() -> None:
    repair, held = Repair(random.Random(1)), empty()
    repair.ask(0.0, AUTHOR, held, [HELPER])
    repair.lose(HELPER)
    assert repair.next_due is None
    repair.ask(0.0, AUTHOR, held, [HELPER])
    assert repair.ask(0.5, AUTHOR, held, []) is None
    assert repair.next_due is None


def test_a_range_ends_before_what_is_held_already_and_is_bounded() -> None:
    held = empty()
    assert span(held, 7) == (1, 7)
    assert span(held, 10**12) == (1, limits.CHAT_WANT_ENTRIES_MAX)
    grow(held, 2)
    [early] = chain(KEYS[0], 6)[5:]
    held._ahead[6] = early, blake(early), None
    assert span(held, 9) == (3, 5)
