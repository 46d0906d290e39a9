import pytest

from ioa_p2p.mind.cover import NEEDS_MAX, cover, needs


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Show the latest news about Tesla and draw a chart of its stock", 2),
        ("Book a table, then rent a car. Also translate the menu!", 3),
        ("查明天的高铁余票，然后预订一家酒店", 2),
        ("Draw a chart", 0),
        ("Book a table, please", 0),
        ("", 0),
    ],
)
def test_a_question_falls_into_its_clauses_and_one_clause_is_none(question: str, parts: int) -> None:
    assert len(needs(question)) == parts


def test_a_long_question_has_a_bounded_number_of_needs() -> None:
    assert len(needs(". ".join(f"rent house number {number}" for number in range(50)))) == NEEDS_MAX


def test_second_comes_who_serves_the_other_need_not_the_runner_up_of_the_first() -> None:
    news, other_news, charts = 0, 1, 2
    whole = [0.6, 0.55, 0.3]
    by_need = [[0.8, 0.7, 0.0], [0.0, 0.0, 0.6]]
    assert cover(whole, by_need, 3) == [news, charts, other_news]
    assert cover(whole, (), 3) == [news, other_news, charts]


def test_no_more_are_chosen_than_there_are_or_than_were_wanted() -> None:
    assert cover([0.1], [[0.1]], 5) == [0]
    assert cover([0.1, 0.2, 0.3], [], 2) == [2, 1]
    assert cover([], [], 5) == []
