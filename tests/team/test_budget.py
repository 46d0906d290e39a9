"""Exact sums: what is given, spent, lost and free always makes the limit, and no level exceeds the one above."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioa_p2p.errors import PeerError
from ioa_p2p.team.budget import KINDS, Budget, exceeds, plus
from ioa_p2p.wire import limits
from ioa_p2p.wire.spending import Allowance, Spent
from tests.team.people import ROSTER

A, B = b"a" * 16, b"b" * 16
LIMIT = Allowance(1_000, 50_000, 10, 8)
TWENTY = Allowance(200, 10_000, 2, 1)


def test_what_is_reserved_is_no_longer_free() -> None:
    budget = Budget(LIMIT).reserve(A, TWENTY)
    assert budget.free == Allowance(800, 40_000, 8, 7)
    with pytest.raises(PeerError, match="900 tokens wanted, 800 left"):
        budget.reserve(B, Allowance(900, 0, 1))


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Allowance(1_001, 0, 1), "1001 tokens wanted, 1000 left"),
        (Allowance(0, 50_001, 1), "50001 money wanted, 50000 left"),
        (Allowance(0, 0, 11), "11 calls wanted, 10 left"),
        (Allowance(0, 0, 1, 9), "9 agents wanted, 8 left"),
        (Allowance(None, 0, 1), "all tokens wanted, 1000 left"),
        (Allowance(0, 0, 0), "no call allowed"),
    ],
)
def test_more_than_there_is_of_anything_is_refused_in_plain_words(part: Allowance, why: str) -> None:
    assert Budget(LIMIT).shortage(part) == why
    with pytest.raises(PeerError, match=why) as refused:
        Budget(LIMIT).reserve(A, part)
    assert refused.value.code == "over-budget"


def test_what_was_spent_is_settled_and_the_rest_is_free_again() -> None:
    budget = Budget(LIMIT).reserve(A, TWENTY).settle(A, Spent(150, 9_000, 2))
    assert budget.spent == Spent(150, 9_000, 2)
    assert budget.free == Allowance(850, 41_000, 8, 8)
    assert (budget.lost, budget.over) == (Spent(), Spent())


def test_what_is_gone_is_all_that_may_be_spent_by_now() -> None:
    budget = Budget(LIMIT).reserve(A, TWENTY).settle(A, Spent(150, 9_000, 2)).reserve(A, TWENTY).write_off(A)
    assert budget.reserve(B, Allowance(1, 7, 3)).gone == Spent(150 + 200 + 1, 9_000 + 10_000 + 7, 2 + 2 + 3)


def test_only_who_forms_a_team_is_given_agents() -> None:
    assert [Budget(LIMIT).share(3, agents=forms).agents for forms in (False, True)] == [0, 2]


def test_a_run_is_one_call_even_if_it_tells_of_none() -> None:
    assert Budget(LIMIT).reserve(A, TWENTY).settle(A, Spent()).spent == Spent(0, 0, 1)


def test_a_worker_that_tells_more_than_it_was_given_is_counted_up_to_its_part_and_the_rest_shown() -> None:
    budget = Budget(LIMIT).reserve(A, TWENTY).settle(A, Spent(950, 10_001, 2))
    assert budget.spent == Spent(200, 10_000, 2)
    assert budget.over == Spent(750, 1, 0)
    assert budget.free == Allowance(800, 40_000, 8, 8)


def test_what_never_began_is_released_and_what_vanished_is_lost_whole() -> None:
    held = Budget(LIMIT).reserve(A, TWENTY)
    assert held.release(A) == Budget(LIMIT)
    gone = held.write_off(A)
    assert (gone.spent, gone.lost) == (Spent(), Spent(200, 10_000, 2))
    assert gone.free == Allowance(800, 40_000, 8, 8)


def test_without_a_limit_all_is_counted_and_nothing_refused() -> None:
    budget = Budget(Allowance()).reserve(A, Allowance()).settle(A, Spent(7, 8, 9))
    assert (budget.spent, budget.free, budget.exhausted) == (Spent(7, 8, 9), Allowance(), "")


def test_a_part_of_what_is_not_limited_may_be_limited_itself() -> None:
    budget = Budget(Allowance()).reserve(A, Allowance(5)).settle(A, Spent(7))
    assert (budget.spent.tokens, budget.over.tokens) == (5, 2)


def test_it_is_exhausted_when_all_is_spent_and_not_while_something_may_come_back() -> None:
    all_of_it = Allowance(1_000, 0, 1)
    held = Budget(LIMIT).reserve(A, all_of_it)
    assert held.exhausted == ""
    assert held.settle(A, Spent(999)).exhausted == ""
    assert held.settle(A, Spent(1_000)).exhausted == "tokens"
    assert held.write_off(A).exhausted == "tokens"
    assert Budget(Allowance(tokens=0)).exhausted == ""


def test_the_next_attempt_gets_what_is_left_at_most_what_it_had() -> None:
    budget = Budget(Allowance(300, None, None)).reserve(A, Allowance(200)).write_off(A)
    assert budget.fitting(Allowance(200)) == Allowance(100)
    assert budget.fitting(Allowance(50)) == Allowance(50)
    with pytest.raises(PeerError, match="no tokens left"):
        budget.reserve(B, Allowance(100)).fitting(Allowance(200))


def test_a_share_leaves_one_for_later_and_is_one_call_at_least() -> None:
    assert Budget(LIMIT).share(3) == Allowance(250, 12_500, 2)
    assert Budget(Allowance(None, 9, 1)).share(16) == Allowance(None, 0, 1)


def test_the_planner_spends_what_is_free() -> None:
    budget = Budget(LIMIT).reserve(A, TWENTY).spend(Spent(900, 1, 1))
    assert (budget.spent, budget.over) == (Spent(800, 1, 1), Spent(100, 0, 0))


def test_the_teams_own_agents_count_but_not_its_launcher() -> None:
    assert Budget.of(ROSTER).free == Allowance(agents=limits.AGENTS_BELOW_MAX - 3)


def test_agents_come_back_however_the_task_ends() -> None:
    held = Budget(LIMIT).reserve(A, Allowance(0, 0, 1, 8))
    assert held.shortage(Allowance(0, 0, 1, 1)) == "1 agents wanted, 0 left"
    for ended in (held.release(A), held.settle(A, Spent()), held.write_off(A)):
        assert ended.free.agents == 8


def test_who_spent_more_than_given_is_known_by_kind() -> None:
    assert exceeds(Spent(5, 5, 5), Allowance(5, 5, 5)) == ""
    assert exceeds(Spent(5, 6, 5), Allowance(5, 5, 5)) == "money"
    assert exceeds(Spent(5, 6, 5), Allowance()) == ""


def test_sums_stay_within_what_the_wire_can_say() -> None:
    most = Spent(limits.AMOUNT_MAX, 0, 0)
    assert plus(most, most) == most


def test_fifty_calls_at_once_race_exactly_to_the_limit() -> None:
    """The last clause of the injection scenario: whatever the order, the sum is the limit, not one above."""
    for seed in range(20):
        dice, budget = random.Random(seed), Budget(Allowance(calls=30))
        running: list[bytes] = []
        waiting = [bytes([number]) * 16 for number in range(50)]
        while waiting or running:
            if waiting and dice.random() < 0.6:
                task = waiting.pop(dice.randrange(len(waiting)))
                if not budget.shortage(Allowance(calls=1)):
                    budget = budget.reserve(task, Allowance(calls=1))
                    running.append(task)
            elif running:
                budget = budget.settle(running.pop(dice.randrange(len(running))), Spent(calls=dice.randrange(3)))
        assert (budget.spent.calls, budget.free.calls, budget.held) == (30, 0, {})


AMOUNTS = st.integers(0, 400)
PARTS = st.builds(Allowance, AMOUNTS, AMOUNTS, st.integers(1, 5), st.integers(0, 4))
TOLD = st.builds(Spent, AMOUNTS, AMOUNTS, AMOUNTS)
DEEDS = st.tuples(st.sampled_from(["reserve", "settle", "write_off", "release", "spend"]), PARTS, TOLD)


def _total(budget: Budget, kind: str) -> int:
    held: list[Any] = [getattr(part, kind) for part in budget.held.values()]
    return sum(held) + getattr(budget.spent, kind) + getattr(budget.lost, kind) + getattr(budget.free, kind)


@settings(max_examples=80)
@given(st.lists(DEEDS, max_size=40), st.randoms(use_true_random=False))
def test_whatever_happens_the_parts_make_the_limit_and_nothing_is_negative(deeds: Any, dice: random.Random) -> None:
    budget, number = Budget(LIMIT), 0
    for deed, part, told in deeds:
        if deed == "reserve" and not budget.shortage(part):
            number += 1
            budget = budget.reserve(number.to_bytes(16), part)
        elif deed == "spend":
            budget = budget.spend(told)
        elif deed != "reserve" and budget.held:
            task = dice.choice(sorted(budget.held))
            budget = budget.settle(task, told) if deed == "settle" else getattr(budget, deed)(task)
        for kind in KINDS:
            assert _total(budget, kind) == getattr(LIMIT, kind)
            assert getattr(budget.free, kind) >= 0
        assert sum(part.agents for part in budget.held.values()) <= LIMIT.agents


@settings(max_examples=50)
@given(st.lists(st.tuples(PARTS, TOLD), max_size=30))
def test_three_levels_below_one_root_never_spend_more_than_the_root(work: Any) -> None:
    """Each level's whole budget is a part of the level above; what the lowest tells goes up as its sum."""
    root = Budget(LIMIT)
    if root.shortage(TWENTY):
        return
    middle = Budget(TWENTY)
    root = root.reserve(A, TWENTY)
    for number, (part, told) in enumerate(work):
        fit = Allowance(*(min(getattr(part, kind), getattr(middle.free, kind)) for kind in KINDS))
        if middle.shortage(fit):
            continue
        task = number.to_bytes(16)
        lowest = Budget(fit).reserve(b"x", fit).settle(b"x", told)
        middle = middle.reserve(task, fit).settle(task, lowest.spent)
        assert middle.spent.tokens <= TWENTY.tokens
    root = root.settle(A, middle.spent)
    assert root.over == Spent()
    assert all(getattr(root.spent, kind) <= getattr(TWENTY, kind) for kind in KINDS)
