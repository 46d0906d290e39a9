"""The local directory: what is found, what is never given out, and what goes first when it is full."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ioa_p2p.storage.catalogue import Catalogue, Match
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.words import words
from tests.storage.agents import WALL, card, frame_of, node, record_of
from tests.wire.samples import fault_of

CHART = card("charts", "Draws charts.", Skill("chart.bars", "Bars from samples.", inputs=("samples*",), tags=("图表",)))
NEWS = card("news", "Tells the news of the day.", Skill("news.daily", outputs=("news text",)))
TTL = limits.TTL_S_DEFAULT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "directory.db"


@pytest.fixture
def catalogue(path: Path) -> Iterator[Catalogue]:
    catalogue = Catalogue(path)
    yield catalogue
    catalogue.close()


def hear(catalogue: Catalogue, number: int, card: Card, at: float = WALL, trust: int = 0, **changes: object) -> None:
    """Put a record of node `number`, issued when it was heard, and its card."""
    record = record_of(number, card, **{"issued": at, **changes})
    catalogue.put(frame_of(record), record, at, trust)


def tell(catalogue: Catalogue, card: Card, vector: bytes | None = None, model: str = "") -> None:
    encoded = codec.encode(card)
    catalogue.put_card(ids.blake(encoded), encoded, vector, model)


def find(catalogue: Catalogue, text: str = "", at: float = WALL + 1, keys: tuple[str, ...] = ()) -> list[Match]:
    return catalogue.search(words(text), None, "", 20, at, keys)


def names(found: list[Match]) -> list[str]:
    return [match.known.record.agent for match in found]


def found_nodes(found: list[Match]) -> set[bytes]:
    return {match.known.record.node for match in found}


# -- found


def test_a_record_is_found_by_its_names_before_its_card_is_known(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    hear(catalogue, 2, NEWS)
    (match,) = find(catalogue, "bars please")
    assert match.known.record.agent == "charts"
    assert match.known.card is None
    assert match.known.heard_wall == WALL
    assert match.lexical > 0
    assert match.dense == 0.0


def test_a_card_makes_its_texts_findable_and_comes_with_the_match(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    assert find(catalogue, "samples") == []
    tell(catalogue, CHART)
    assert [match.known.card for match in find(catalogue, "samples")] == [CHART]


def test_the_frame_comes_back_as_it_was_received(catalogue: Catalogue) -> None:
    record = record_of(1, CHART)
    catalogue.put(frame_of(record), record, WALL)
    known = catalogue.get(record.node, "charts", WALL)
    assert known is not None
    assert known.frame == frame_of(record)
    assert known.record == record


@pytest.mark.parametrize("query", ["图表", "画图表", "图表在哪里"])
def test_chinese_is_found_by_its_pairs_of_characters(catalogue: Catalogue, query: str) -> None:
    hear(catalogue, 1, CHART)
    tell(catalogue, CHART)
    assert names(find(catalogue, query)) == ["charts"]


@pytest.mark.parametrize("text", ["データ・ベース", "ー", "한국어 검색", "ＡＢＣ", "naïve café", "搜"])
def test_any_text_is_found_by_itself(catalogue: Catalogue, text: str) -> None:
    agent = card("any", text)
    hear(catalogue, 1, agent)
    tell(catalogue, agent)
    assert names(find(catalogue, text)) == ["any"]


@pytest.mark.parametrize(
    "word", ['"', "a OR b", "text : x", "nul\0", "\ud800", "*", "", "NEAR(", "'; DROP TABLE agents"]
)
def test_no_word_can_break_the_query(catalogue: Catalogue, word: str) -> None:
    hear(catalogue, 1, CHART)
    assert catalogue.search([word], None, "", 20, WALL + 1) == []
    assert names(catalogue.search([word, "bar"], None, "", 20, WALL + 1)) == ["charts"]


def test_more_words_in_common_come_first(catalogue: Catalogue) -> None:
    for number, text in enumerate(["red", "red green", "red green blue"]):
        agent = card(f"agent-{number}", text)
        hear(catalogue, number, agent)
        tell(catalogue, agent)
    assert names(find(catalogue, "blue green red")) == ["agent-2", "agent-1", "agent-0"]


def test_one_program_on_many_devices_needs_its_card_once(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    tell(catalogue, CHART, bytes([1, 2]), "m")
    hear(catalogue, 2, CHART)
    assert found_nodes(find(catalogue, "samples")) == {node(1), node(2)}
    assert [match.dense for match in catalogue.search([], bytes([1, 2]), "m", 9, WALL)] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("skill:chart",), ["charts"]),
        (("skill:chart.bars",), ["charts"]),
        (("skill:bars",), ["charts"]),
        (("skill:char",), []),
        (("in:samples",), ["charts"]),
        (("out:news text",), ["news"]),
        (("word:图表",), ["charts"]),
        (("word:chart",), []),
        (("skill:chart", "out:news text"), []),
        ((), ["news", "charts"]),
    ],
)
def test_filters_hold_for_all_ways_of_searching(
    catalogue: Catalogue, keys: tuple[str, ...], expected: list[str]
) -> None:
    for number, agent in enumerate([CHART, NEWS]):
        hear(catalogue, number, agent, WALL + number)
        tell(catalogue, agent, bytes([1, number]), "m")
    assert names(find(catalogue, keys=keys)) == expected
    assert set(names(find(catalogue, "charts news", keys=keys))) == set(expected)
    assert set(names(catalogue.search([], bytes([1, 1]), "m", 9, WALL + 1, keys))) == set(expected)


# -- by meaning


def test_the_nearest_by_vector_join_the_best_by_words(catalogue: Catalogue) -> None:
    for number, vector in enumerate([(100, 0), (90, 10), (0, 100), (-100, 0)]):
        agent = card(f"agent-{number}", "red" if number == 3 else "")
        hear(catalogue, number, agent)
        tell(catalogue, agent, bytes(value % 256 for value in vector), "m")
    found = catalogue.search(["red"], bytes([100, 0]), "m", 2, WALL + 1)
    assert names(found) == ["agent-3", "agent-0", "agent-1"]
    assert [match.dense for match in found] == pytest.approx([-1.0, 1.0, 0.994], abs=1e-3)
    assert found[0].lexical > 0
    assert found[1].lexical == 0.0


def test_vectors_of_another_model_or_size_never_meet(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    tell(catalogue, CHART, bytes([1, 2]), "one")
    assert catalogue.search([], bytes([1, 2]), "other", 9, WALL + 1) == []
    assert catalogue.search([], bytes([1, 2, 3]), "one", 9, WALL + 1) == []
    assert names(catalogue.search([], bytes([1, 2]), "one", 9, WALL + 1)) == ["charts"]


def test_what_changes_after_the_first_search_by_vector_counts_in_the_next(catalogue: Catalogue) -> None:
    def cosines() -> dict[str, float]:
        found = catalogue.search([], bytes([1, 0]), "m", 9, WALL + 1)
        return {match.known.record.agent: round(match.dense, 2) for match in found}

    for number, agent in enumerate([CHART, NEWS]):
        hear(catalogue, number, agent)
        tell(catalogue, agent, bytes([1, 0]), "m")
    assert cosines() == {"charts": 1.0, "news": 1.0}
    tell(catalogue, NEWS, bytes([0, 1]), "m")
    assert cosines() == {"charts": 1.0, "news": 0.0}
    catalogue.forget(node(0), "charts")
    assert cosines() == {"news": 0.0}


def test_cards_without_a_vector_of_the_model_are_told_until_they_have_one(catalogue: Catalogue) -> None:
    for number, agent in enumerate([CHART, NEWS]):
        hear(catalogue, number, agent)
        tell(catalogue, agent)
    assert {card for _, card in catalogue.lacking("m", 9)} == {codec.encode(CHART), codec.encode(NEWS)}
    assert len(catalogue.lacking("m", 1)) == 1
    tell(catalogue, CHART, bytes(2), "m")
    assert catalogue.lacking("m", 9) == [(ids.blake(codec.encode(NEWS)), codec.encode(NEWS))]
    assert len(catalogue.lacking("other", 9)) == 2


# -- newest, gone, forgotten


def test_the_newest_seq_wins_in_whatever_order_it_is_heard(catalogue: Catalogue) -> None:
    for seq in (2, 3, 1):
        hear(catalogue, 1, CHART, seq=seq)
    assert [match.known.record.seq for match in find(catalogue)] == [3]


def test_of_one_seq_the_lower_hash_is_served(catalogue: Catalogue) -> None:
    record = record_of(1, CHART)
    twins = sorted((frame_of(record, salt) for salt in range(4)), key=ids.blake)
    for frame in (twins[2], twins[0], twins[3]):
        catalogue.put(frame, record, WALL)
    known = catalogue.get(record.node, "charts", WALL)
    assert known is not None
    assert known.frame == twins[0]


def test_a_gone_record_removes_and_no_older_one_comes_back(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    hear(catalogue, 1, CHART, WALL + 5, seq=2, gone=True, ttl=TTL + limits.GONE_EXTRA_TTL_S)
    hear(catalogue, 1, CHART, WALL + 6, seq=1)
    tell(catalogue, CHART, bytes(2), "m")
    assert find(catalogue, "charts", WALL + 7) == find(catalogue, at=WALL + 7) == []
    assert catalogue.get(node(1), "charts", WALL + 7) is None
    assert catalogue.of(node(1), WALL + 7) == []
    assert catalogue.search([], bytes([1, 1]), "m", 9, WALL + 7) == []


def test_an_agent_comes_back_after_it_was_gone(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART, seq=1, gone=True)
    hear(catalogue, 1, CHART, WALL + 5, seq=2)
    assert names(find(catalogue, "charts", WALL + 6)) == ["charts"]


def test_a_changed_card_is_not_known_until_it_is_fetched(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    tell(catalogue, CHART, bytes([1, 0]), "m")
    changed = card("charts", "Paints pictures.")
    hear(catalogue, 1, changed, seq=2)
    assert find(catalogue, "samples") == []
    assert catalogue.search([], bytes([1, 0]), "m", 9, WALL + 1) == []
    tell(catalogue, changed)
    assert names(find(catalogue, "paint")) == ["charts"]


def test_what_is_forgotten_is_found_by_nothing(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    tell(catalogue, CHART, bytes(2), "m")
    catalogue.forget(node(1), "charts")
    assert catalogue.count == 0
    assert find(catalogue, "charts") == catalogue.search([], bytes([1, 1]), "m", 9, WALL) == []


def test_a_card_that_nobody_named_is_not_kept(catalogue: Catalogue) -> None:
    tell(catalogue, CHART)
    hear(catalogue, 1, CHART)
    assert [match.known.card for match in find(catalogue)] == [None]


def test_a_card_that_is_no_card_is_refused(catalogue: Catalogue) -> None:
    assert fault_of(catalogue.put_card, ids.blake(b"\xc0"), b"\xc0", None, "") == "undecodable"


# -- time


@pytest.mark.parametrize(
    ("issued", "last_s"),
    [(WALL, TTL), (WALL - TTL, limits.CLOCK_SKEW_S), (WALL + 500, TTL)],
    ids=["fresh", "heard late", "issued by a fast clock"],
)
def test_nothing_past_its_keep_time_is_given_out(catalogue: Catalogue, issued: float, last_s: float) -> None:
    record = record_of(1, CHART, issued=issued)
    catalogue.put(frame_of(record), record, WALL)
    tell(catalogue, CHART, bytes([1, 1]), "m")

    def given(at: float) -> list[int]:
        by_vector = catalogue.search([], bytes([1, 1]), "m", 9, at)
        one = catalogue.get(node(1), "charts", at)
        return [len(find(catalogue, "charts", at)), len(find(catalogue, "", at)), len(by_vector), int(one is not None)]

    assert given(WALL + last_s - 0.1) == [1, 1, 1, 1]
    assert given(WALL + last_s) == [0, 0, 0, 0]


def test_the_same_bytes_heard_again_extend_nothing(catalogue: Catalogue) -> None:
    record = record_of(1, CHART, issued=WALL)
    for second in (0, 60, 600):
        catalogue.put(frame_of(record), record, WALL + second)
    assert find(catalogue, "charts", WALL + TTL) == []


def test_a_clone_of_the_same_seq_extends_nothing(catalogue: Catalogue) -> None:
    record = record_of(1, CHART, issued=WALL)
    second, first = sorted((frame_of(record), frame_of(record, 1)), key=ids.blake)
    catalogue.put(first, record, WALL)
    catalogue.put(second, record, WALL + 500)
    assert find(catalogue, "charts", WALL + TTL) == []


def test_what_was_heard_in_the_future_is_not_given_out_after_the_clock_was_set_back(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    assert names(find(catalogue, "charts", WALL - limits.CLOCK_SKEW_S)) == ["charts"]
    assert find(catalogue, "charts", WALL - limits.CLOCK_SKEW_S - 1) == []


def test_expiring_frees_the_rows(catalogue: Catalogue) -> None:
    hear(catalogue, 1, CHART)
    catalogue.expire(WALL + TTL - 1)
    assert catalogue.count == 1
    catalogue.expire(WALL + TTL)
    assert catalogue.count == 0


def test_what_is_written_before_any_time_is_told_expires_nothing(path: Path) -> None:
    catalogue = Catalogue(path)
    hear(catalogue, 1, CHART)
    catalogue.close()
    catalogue = Catalogue(path)
    catalogue.forget(node(2), "nobody")
    assert catalogue.count == 1
    catalogue.close()


# -- bounds


def small(path: Path, records_max: int = 3, bytes_max: int = 1 << 20) -> Catalogue:
    return Catalogue(path, records_max, bytes_max)


def test_over_the_bound_what_is_past_its_time_goes_first_then_the_strangers_oldest(path: Path) -> None:
    catalogue = small(path)
    hear(catalogue, 1, CHART, WALL, ttl=60, trust=2)
    hear(catalogue, 2, CHART, WALL + 1, trust=1)
    hear(catalogue, 3, CHART, WALL + 2)
    hear(catalogue, 4, CHART, WALL + 90)
    assert found_nodes(find(catalogue, at=WALL + 91)) == {node(2), node(3), node(4)}
    hear(catalogue, 5, CHART, WALL + 91)
    assert found_nodes(find(catalogue, at=WALL + 92)) == {node(2), node(4), node(5)}
    for number in range(6, 12):
        hear(catalogue, number, CHART, WALL + 90 + number)
    assert found_nodes(find(catalogue, at=WALL + 120)) == {node(2), node(10), node(11)}
    catalogue.close()


def test_trust_that_changes_counts_from_then_on(path: Path) -> None:
    catalogue = small(path, records_max=2)
    for number in (1, 2):
        hear(catalogue, number, CHART, WALL + number)
    record = record_of(1, CHART, issued=WALL + 1)
    catalogue.put(frame_of(record), record, WALL + 3, trust=1)
    hear(catalogue, 3, CHART, WALL + 4)
    assert found_nodes(find(catalogue, at=WALL + 5)) == {node(1), node(3)}
    catalogue.close()


def test_bytes_are_bounded_too(path: Path) -> None:
    catalogue = small(path, records_max=1_000, bytes_max=20_000)
    for number in range(40):
        agent = card(f"agent-{number}", "word " * 200)
        hear(catalogue, number, agent, WALL + number)
        tell(catalogue, agent)
    assert 2 < catalogue.count < 20
    assert "agent-39" in names(find(catalogue, at=WALL + 50))
    catalogue.close()


def test_nobody_fills_it_with_one_key(catalogue: Catalogue) -> None:
    hear(catalogue, 2, CHART)
    with catalogue.batch():
        for number in range(limits.CATALOGUE_NODE_RECORDS_MAX + 5):
            hear(catalogue, 1, card(f"agent-{number}"), WALL + number)
    kept = [known.record.agent for known in catalogue.of(node(1), WALL + 99)]
    assert len(kept) == limits.CATALOGUE_NODE_RECORDS_MAX
    assert "agent-4" not in kept
    assert catalogue.get(node(2), "charts", WALL + 99) is not None


def best(catalogue: Catalogue, words: list[str], limit: int) -> list[tuple[str, float]]:
    found = catalogue.search(words, None, "", limit, WALL + 1)
    return [(match.known.record.agent, match.lexical) for match in found]


def test_words_that_many_agents_hold_count_only_if_the_others_find_too_few(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CATALOGUE_COMMON_RECORDS", 3)
    catalogue = Catalogue(path)
    for number in range(5):
        agent = card(f"agent-{number}", "server rare" if number == 2 else "server")
        hear(catalogue, number, agent)
        tell(catalogue, agent)
    catalogue.close()
    catalogue = Catalogue(path)
    assert best(catalogue, ["rare", "server"], 1) == best(catalogue, ["rare"], 1)
    assert [name for name, _ in best(catalogue, ["rare", "server"], 2)] == ["agent-2", "agent-4"]
    assert len(find(catalogue, "server")) == 5
    catalogue.close()


# -- batches, restarts


def test_a_batch_that_fails_leaves_nothing_behind(catalogue: Catalogue) -> None:
    hear(catalogue, 1, NEWS)
    with suppress(ZeroDivisionError), catalogue.batch():
        hear(catalogue, 2, CHART)
        raise ZeroDivisionError
    assert names(find(catalogue)) == ["news"]
    assert find(catalogue, "charts") == []


def test_everything_is_there_after_a_restart(path: Path) -> None:
    catalogue = Catalogue(path)
    hear(catalogue, 1, CHART)
    tell(catalogue, CHART, bytes([1, 2]), "m")
    before = find(catalogue, "samples")
    catalogue.close()
    catalogue = Catalogue(path)
    assert find(catalogue, "samples") == before
    assert [match.dense for match in catalogue.search([], bytes([1, 2]), "m", 9, WALL)] == pytest.approx([1.0])
    catalogue.close()


def test_only_its_owner_may_read_the_file(path: Path, catalogue: Catalogue) -> None:
    assert path.stat().st_mode & 0o077 == 0
