"""Repair: whom to ask, and what happens with those that do not help."""

import random

from ioa_p2p.gossip.log import Chain
from ioa_p2p.gossip.repair import Repair, span
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, TEAM, chain

AUTHOR, HELPER, LIAR = NODES[:3]
HELD = 1_000
RANGE = limits.CHAT_WANT_ENTRIES_MAX


def empty() -> Chain:
    return Chain(TEAM, AUTHOR, lambda space: [])


def grow(held: Chain, length: int = 1) -> None:
    for raw in chain(KEYS[0], held.head + length)[held.head :]:
        held.append(raw, blake(raw))


def ask(repair: Repair, boot: float, held: Chain, *holders: bytes, author: bytes = AUTHOR) -> bytes | None:
    """Who is asked now."""
    asked = repair.ask(boot, author, held, dict.fromkeys(holders, HELD))
    return asked[0] if asked else None


def test_the_author_is_asked_first_and_only_once_at_a_time() -> None:
    repair, held = Repair(random.Random(1)), empty()
    assert repair.ask(0.0, AUTHOR, held, {HELPER: 9, AUTHOR: 7}) == (AUTHOR, 1, 7)
    assert ask(repair, 1.9, held, HELPER, AUTHOR) is None
    assert repair.next_due == 2.0


def test_who_does_not_help_rests_longer_each_time_and_others_are_asked() -> None:
    repair, held = Repair(random.Random(1)), empty()
    asked = [tenth / 10 for tenth in range(150) if ask(repair, tenth / 10, held, LIAR)]
    assert asked == [0.0, 4.0, 10.0]
    assert ask(repair, 15.0, held, LIAR, HELPER) == HELPER


def test_a_frontier_told_anew_ends_the_rest() -> None:
    repair, held = Repair(random.Random(1)), empty()
    ask(repair, 0.0, held, HELPER)
    assert ask(repair, 2.0, held, HELPER) is None
    repair.hear(HELPER)
    repair.lose(HELPER)
    assert ask(repair, 4.0, held, HELPER) == HELPER


def test_an_answer_that_helped_lets_the_next_range_go_at_once() -> None:
    repair, held = Repair(random.Random(1)), empty()
    ask(repair, 0.0, held, HELPER)
    grow(held)
    assert not repair.end(0.1, AUTHOR, held, LIAR, 1)
    assert not repair.end(0.1, AUTHOR, held, HELPER, 2)
    assert repair.end(0.1, AUTHOR, held, HELPER, 1)
    assert ask(repair, 0.1, held, HELPER) == HELPER


def test_an_answer_with_nothing_in_it_sends_us_to_another_at_once() -> None:
    repair, held = Repair(random.Random(1)), empty()
    ask(repair, 0.0, held, LIAR)
    assert repair.end(0.1, AUTHOR, held, LIAR, 1)
    assert ask(repair, 0.1, held, LIAR, HELPER) == HELPER
    assert ask(repair, 0.1, empty(), LIAR, author=AUTHOR) is None


def test_an_answer_that_comes_slowly_is_waited_for_and_not_asked_of_another() -> None:
    repair, held = Repair(random.Random(1)), empty()
    ask(repair, 0.0, held, HELPER)
    for second in range(1, 29):
        grow(held)
        assert repair.is_answer(float(second), AUTHOR, held.head, HELPER)
        assert ask(repair, second + 0.9, held, HELPER, LIAR) is None
    assert ask(repair, limits.CHAT_RANGE_S_MAX, held, HELPER, LIAR) == LIAR


def test_only_what_was_asked_of_a_member_counts_as_its_answer() -> None:
    repair, held = Repair(random.Random(1)), empty()
    ask(repair, 0.0, held, HELPER)
    assert not repair.is_answer(1.0, AUTHOR, 1, LIAR)
    assert not repair.is_answer(1.0, AUTHOR, RANGE + 1, HELPER)
    assert not repair.is_answer(1.0, HELPER, 1, HELPER)
    assert ask(repair, 2.0, held, HELPER, LIAR) == LIAR


def test_a_range_that_waits_behind_another_on_the_same_link_is_waited_for() -> None:
    repair, one, two = Repair(random.Random(1)), empty(), empty()
    for _ in range(2):
        ask(repair, 0.0, one, HELPER)
        grow(one)
        repair.end(0.0, AUTHOR, one, HELPER, one.head)
    ask(repair, 0.0, one, HELPER)
    ask(repair, 0.0, two, HELPER, author=LIAR)
    grow(one)
    repair.is_answer(1.5, AUTHOR, one.head, HELPER)
    assert ask(repair, 3.0, two, HELPER, AUTHOR, author=LIAR) is None


def test_several_members_share_the_load_and_none_is_asked_for_more_than_it_proved_to_carry() -> None:
    repair, chains = Repair(random.Random(1)), {author: empty() for author in NODES[:8]}
    helpers = NODES[8:11]

    def asked(boot: float) -> list[bytes | None]:
        return [ask(repair, boot, held, *helpers, author=author) for author, held in chains.items()]

    first = asked(0.0)
    assert sorted(filter(None, first)) == sorted(helpers)
    for author, peer in zip(chains, first, strict=True):
        if peer:
            grow(chains[author])
            repair.end(0.1, author, chains[author], peer, 1)
    assert sorted(filter(None, asked(0.1))) == sorted([*helpers, *helpers])


def test_a_member_is_asked_for_four_ranges_at_most() -> None:
    repair, held = Repair(random.Random(1)), empty()
    for _ in range(9):
        ask(repair, 0.0, held, HELPER)
        grow(held)
        repair.end(0.0, AUTHOR, held, HELPER, held.head)
    asked = [ask(repair, 0.0, empty(), HELPER, author=author) for author in NODES]
    assert asked == [HELPER] * limits.CHAT_WANTS_AT_ONCE + [None] * 12


def test_nothing_is_due_when_nobody_holds_more_or_the_one_asked_is_gone() -> None:
    repair, held = Repair(random.Random(1)), empty()
    ask(repair, 0.0, held, HELPER)
    repair.lose(HELPER)
    assert repair.next_due is None
    ask(repair, 0.0, held, HELPER)
    assert ask(repair, 0.5, held) is None
    assert repair.next_due is None


def test_a_range_ends_before_what_is_held_already_and_is_bounded() -> None:
    held = empty()
    assert span(held, 7) == (1, 7)
    assert span(held, 10**12) == (1, RANGE)
    grow(held, 2)
    [early] = chain(KEYS[0], 6)[5:]
    held._ahead[6] = early, blake(early), None
    assert span(held, 9) == (3, 5)
