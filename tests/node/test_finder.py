"""Searches over a make-believe mesh: what is asked, who is offered, in which order, at what cost."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ioa_p2p.effects import Rows
from ioa_p2p.errors import UsageError
from ioa_p2p.node import verbs_find
from ioa_p2p.node.answer import DENSE_SURE, FIRST, NEAREST, answer_of, is_match
from ioa_p2p.node.budget import Budget
from ioa_p2p.node.candidates import Candidates
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import Hit, Source
from ioa_p2p.node.query import Query
from ioa_p2p.node.trust import Level, Past
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.records import Card, Skill
from tests.node.hashed import Hashed
from tests.node.market import MODEL, Market, card, no_rows, node, record

WAIT_S = 20.0


@pytest.fixture
def market() -> Market:
    return Market()


def names(search: Search) -> list[str]:
    meaning = MODEL if search.aspect else None
    return [f"{placed.hit.card.name}-{placed.hit.record.node[-1]}" for placed in answer_of(search, meaning).placed]


async def run(market: Market, text: str, **how: object) -> Search:
    search = market.search(Query(text), **how)  # type: ignore[arg-type]
    await search.run()
    return search


# -- who is found


async def test_agents_are_found_by_words_the_best_match_first(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage of devices"))
    market.add(2, card("cleaner", "cleans a disk"))
    market.add(3, card("poet", "writes verse"))
    search = await run(market, "disk usage")
    assert names(search) == ["meter-1", "cleaner-2"]
    assert search.holders > 0
    assert answer_of(search, None).ranking == "words"


async def test_with_a_model_cells_are_asked_too_and_the_answer_says_so(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage of devices"))
    search = await run(market, "disk usage", meaning=True)
    assert {key.split(":")[0] for key, _ in market.keys} == {"cell", "word"}
    assert {key for key, _ in market.keys if key.startswith("cell:")} <= set(
        search.aspect.keys if search.aspect else ()
    )
    assert answer_of(search, MODEL).ranking == "meaning"
    assert names(search) == ["meter-1"]


async def test_a_crashed_agent_is_not_offered_whoever_still_holds_its_record(market: Market) -> None:
    for number in range(1, 4):
        market.add(number, card("meter", "measures disk usage"))
    market.silent = {node(2)}
    search = await run(market, "disk usage")
    assert names(search) == ["meter-1", "meter-3"]
    assert search.unreached == 1
    assert node(2) not in market.dialled


async def test_twenty_agents_of_a_dead_node_cost_one_request_and_the_next_search_none(market: Market) -> None:
    for number in range(20):
        market.add(1, card(f"meter-{number}", "measures disk usage"))
    market.add(2, card("meter", "measures disk usage"))
    market.silent = {node(1)}
    search = await run(market, "disk usage")
    assert (names(search), search.unreached) == (["meter-2"], 20)
    again = await run(market, "disk usage")
    assert (names(again), again.unreached) == (["meter-2"], 20)
    assert market.asked.count(node(1)) == 1


async def test_once_others_answered_the_silent_are_not_waited_for_to_their_end(market: Market) -> None:
    market.hanging = True
    for number in range(1, 8):
        market.add(number, card("meter", "measures disk usage"))
    market.silent = {node(number) for number in range(1, 5)}
    async with asyncio.timeout(WAIT_S):
        search = await run(market, "disk usage")
    assert (names(search), search.unreached) == (["meter-5", "meter-6", "meter-7"], 4)


async def test_a_node_behind_a_relay_is_linked_though_no_datagram_reaches_it(market: Market) -> None:
    market.relayed = True
    market.add(1, card("meter", "measures disk usage"))
    market.silent = {node(1)}
    market.linkable = {node(1)}
    search = await run(market, "disk usage")
    assert (names(search), search.unreached) == (["meter-1"], 0)
    assert not market.silence.has(node(1))


async def test_a_node_that_is_heard_again_is_offered_again(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage"))
    market.silent = {node(1)}
    assert names(await run(market, "disk usage")) == []
    market.silent.clear()
    assert names(await run(market, "disk usage")) == []
    market.silence.heard(node(1))
    assert names(await run(market, "disk usage")) == ["meter-1"]


async def test_an_agent_that_left_is_not_offered(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage"))
    market.gone = {node(1)}
    assert names(await run(market, "disk usage")) == []


async def test_a_card_of_another_name_is_no_hit(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage"))
    market.agents[node(1), "thief"] = market.agents.pop((node(1), "meter"))
    assert names(await run(market, "disk usage")) == []


async def test_no_stranger_is_a_hit_before_its_node_answered(market: Market) -> None:
    market.direct = False
    market.add(1, card("meter", "measures disk usage"))
    told: list[Hit] = []
    await run(market, "disk usage", on_hit=told.append)
    assert [(hit.answered, hit.source) for hit in told] == [(True, Source.MESH)]
    assert market.dialled == market.fetched == [node(1)]


async def test_cards_are_fetched_for_the_best_alone(market: Market) -> None:
    for number in range(1, 60):
        market.add(number, card(f"meter-{number}", "measures disk usage"))
    search = await run(market, "disk usage")
    assert len(market.fetched) == len(search.hits) == limits.FIND_CARDS_MAX


async def test_who_does_not_come_up_makes_room_for_the_next(market: Market) -> None:
    for number in range(1, 60):
        market.add(number, card(f"meter-{number}", "measures disk usage"))
    market.silent = {node(number) for number in range(1, 15)}
    assert len(names(await run(market, "disk usage"))) == limits.FIND_CARDS_MAX


# -- filters


async def test_filters_are_searched_first_and_held_to(market: Market) -> None:
    market.add(
        1, card("meter", "measures disk usage", "device.measure", outputs=("metrics.samples.disk",), tags=("disk",))
    )
    market.add(2, card("cleaner", "measures disk usage", "device.clean", inputs=("samples*",)))
    for query, wanted in (
        (Query("disk", output="samples"), ["meter-1"]),
        (Query("disk", input="samples"), ["cleaner-2"]),
        (Query(skill="device.clean"), ["cleaner-2"]),
        (Query(skill="device"), ["cleaner-2", "meter-1"]),
        (Query(skill="clean"), ["cleaner-2"]),
        (Query(skill="lean"), []),
        (Query(output="metrics"), ["meter-1"]),
        (Query(output="samples.disk"), ["meter-1"]),
        (Query("usage", tag="disk"), ["meter-1"]),
    ):
        market.keys.clear()
        search = market.search(query)
        await search.run()
        assert sorted(names(search)) == wanted, query
        assert [key for key, _ in market.keys][: len(query.filter_keys)] == query.filter_keys


async def test_only_those_trusted_enough_are_looked_at(market: Market) -> None:
    for number in (1, 2):
        market.add(number, card("meter", "measures disk usage"))
    search = market.search(Query("disk", trust=Level.GRANTED), granted=[node(2)])
    await search.run()
    assert names(search) == ["meter-2"]
    assert market.fetched == [node(2)]


def test_a_query_of_nothing_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError) as fault:
        Query("?!").keys()
    assert (fault.value.code, bool(fault.value.hint)) == ("empty-query", True)


def test_a_type_may_be_asked_for_as_a_card_writes_it() -> None:
    asked = verbs_find._query({"in": "metrics.samples*", "out": "chart"})
    assert asked.facts == ["out:chart", "in:metrics.samples"]
    assert asked.filter_keys == [*asked.facts, "in:samples"]
    assert asked.fits(Card(name="meter", skills=(Skill("a.b", inputs=("metrics.samples*",), outputs=("chart",)),)))


def test_a_tag_that_holds_nobody_back_is_refused() -> None:
    with pytest.raises(UsageError) as fault:
        Query("disk", tag="!!!").keys()
    assert (fault.value.code, bool(fault.value.hint)) == ("empty-query", True)


def test_rare_words_are_asked_first() -> None:
    assert Query("tools to measure seismograms").keys()[0] == "word:seismogram"


# -- trust


async def test_an_allow_listed_agent_is_first_among_those_that_match_whatever_a_flood_says(market: Market) -> None:
    for number in range(1, 200):
        market.add(number, card("disk-usage", "disk usage disk usage disk usage"))
    market.add(200, card("meter", "tells the usage of what is stored"))
    market.add(201, card("poet", "writes verse"))
    search = await run(market, "disk usage", granted=[node(200), node(201)])
    assert names(search)[0] == "meter-200"
    assert "poet-201" not in names(search)
    assert search.hits[node(200), "meter"].standing.level is Level.GRANTED


async def test_every_hit_says_why_it_stands_where_it_stands(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage"))
    search = market.search(Query("disk usage"), granted=[node(1)])
    await search.run()
    (placed,) = answer_of(search, None).placed
    assert placed.why[0] == "its node is on the allow-list"
    assert any(clause.startswith("match ") for clause in placed.why)
    assert "found under word:disk word:usage" in placed.why
    assert placed.why[-1] == "its node answered just now"


def past(*agents: tuple[bytes, str]) -> Rows:
    """One team of ours, in which these did a task well."""
    save, *_ = Past(no_rows).concluded(b"t" * 16, 1, [(*agent, True) for agent in agents])
    assert save.value is not None
    row = save.key, save.value
    return lambda space: [row] if space == save.space else []


async def test_one_task_done_well_lifts_no_agent_over_a_much_better_match(market: Market) -> None:
    market.add(1, card("words", "counts the words of a text"))
    market.add(2, card("hello", "greets whoever is named, in few words"))
    search = market.search(Query("count words"), rows=past((node(2), "hello")))
    await search.run()
    assert search.hits[node(2), "hello"].standing.level is Level.SUCCEEDED
    assert names(search) == ["words-1", "hello-2"]


async def test_between_agents_that_match_about_alike_the_one_that_succeeded_before_is_first(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage"))
    market.add(2, card("meter", "measures disk usage too"))
    assert names(await run(market, "disk usage")) == ["meter-1", "meter-2"]
    assert names(await run(market, "disk usage", rows=past((node(2), "meter")))) == ["meter-2", "meter-1"]


async def test_an_allow_listed_agent_that_hardly_matches_stays_behind_who_matches_well(market: Market) -> None:
    market.add(1, card("seismologist", "draws seismograms of volcanoes and glaciers"))
    market.add(2, card("ruler", "draws lines"))
    search = await run(market, "draw seismograms of volcanoes and glaciers", granted=[node(2)])
    assert names(search) == ["seismologist-1", "ruler-2"]
    assert [one.weak for one in answer_of(search, None).placed] == [False, True]


# -- who may not fit


class Faint(Hashed):
    """Every text is as near to one vector as is said."""

    def __init__(self, vector: Any, cosine: float) -> None:
        self._row = cosine * vector

    def encode(self, texts: Sequence[str]) -> Any:
        numpy = pytest.importorskip("numpy")
        return numpy.array([self._row] * len(texts))


@pytest.mark.parametrize(("cosine", "fit"), [(DENSE_SURE - 0.01, False), (DENSE_SURE + 0.01, True)])
async def test_where_nobody_is_surely_near_the_nearest_three_are_offered_as_weak(
    market: Market, cosine: float, fit: bool
) -> None:
    for number in range(1, 10):
        market.add(number, card("poet", f"writes verse number {number}"))
    search = market.search(Query("monstera"), meaning=True)
    await search.widen(["word:verse"])
    assert search.aspect is not None
    model = Faint(search.aspect.vector, cosine)
    placed = answer_of(search, model).placed
    assert [one.weak for one in placed] == ([False] * 9 if fit else [True] * NEAREST)
    assert {is_match(search, model, hit) for hit in search.hits.values()} == {fit}


async def test_the_first_are_offered_even_if_but_one_of_them_fits(market: Market) -> None:
    market.add(1, card("meter", "measures disk usage"))
    for number in range(2, 12):
        market.add(
            number, card(f"poet-{number}", "usage of verse in many old and very long poems of which few are known")
        )
    search = await run(market, "disk usage of seismographs")
    placed = answer_of(search, None).placed
    assert [one.weak for one in placed] == [False, *[True] * (FIRST - 1)]
    assert "so it may not fit" in placed[1].why[1]


async def test_who_serves_one_of_several_needs_fits_little_as_it_matches_the_whole(market: Market) -> None:
    market.add(1, card("seismologist", "draws coloured seismograms of volcanic glaciers"))
    market.add(2, card("cook", "knows which meals are good for whom, and on which days they are eaten in the north"))
    whole = "draw coloured seismograms of volcanic glaciers"
    as_one = answer_of(await run(market, f"{whole} meals menu"), None)
    assert [(one.hit.card.name, one.weak) for one in as_one.placed] == [("seismologist", False), ("cook", True)]
    apart = answer_of(await run(market, f"{whole}, meals menu"), None)
    assert [hit.card.name for hit in apart.needs[-1][1]] == ["cook"]
    assert [one.weak for one in apart.placed] == [False, False]


async def test_by_words_alone_who_shares_none_is_not_even_near(market: Market) -> None:
    poet = card("poet", "writes verse")
    market.known_here = [(record(node(1), poet), poet)]
    market.add(1, poet)
    search = await run(market, "disk usage")
    assert answer_of(search, None).placed == []
    assert not is_match(search, None, search.hits[node(1), "poet"])


async def test_filters_alone_are_answered_by_trust(market: Market) -> None:
    for number in (1, 2):
        market.add(number, card("meter", skill="device.measure"))
    search = market.search(Query(skill="measure"), granted=[node(2)])
    await search.run()
    answer = answer_of(search, None)
    assert ([one.hit.record.node for one in answer.placed], answer.ranking) == ([node(2), node(1)], "trust")
    assert all(is_match(search, None, one.hit) for one in answer.placed)


# -- what is known here


async def test_the_local_directory_answers_before_anybody_is_asked(market: Market) -> None:
    meter = card("meter", "measures disk usage")
    market.known_here = [(record(node(1), meter), meter)]
    market.add(1, meter)
    told: list[tuple[bool, int]] = []
    search = await run(market, "disk usage", on_hit=lambda hit: told.append((hit.answered, len(market.keys))))
    assert told[0] == (False, 0)
    assert told[1][0], "then its node answered"
    assert (search.local_hits, names(search)) == (1, ["meter-1"])
    assert market.fetched == [], "the card was known"


async def test_offline_the_local_directory_is_the_answer(market: Market) -> None:
    meter = card("meter", "measures disk usage")
    market.known_here = [(record(node(1), meter), meter)]
    market.unreachable = True
    search = await run(market, "disk usage")
    assert names(search) == ["meter-1"]
    assert (search.holders, search.hits[node(1), "meter"].answered) == (0, False)


async def test_a_local_hit_of_a_silent_node_is_not_told_but_stands_when_we_are_offline(market: Market) -> None:
    meter = card("meter", "measures disk usage")
    market.known_here = [(record(node(1), meter), meter)]
    market.unreachable = True
    market.silence.note(node(1))
    told: list[Hit] = []
    search = await run(market, "disk usage", on_hit=told.append)
    assert (told, names(search), search.hits[node(1), "meter"].answered) == ([], ["meter-1"], False)


async def test_a_local_hit_whose_node_is_dead_is_dropped_once_others_answer(market: Market) -> None:
    meter = card("meter", "measures disk usage")
    market.known_here = [(record(node(1), meter), meter)]
    market.add(1, meter)
    market.silent = {node(1)}
    assert names(await run(market, "disk usage")) == []


# -- cost


async def test_a_search_keeps_its_budget_however_long_the_query(market: Market) -> None:
    market.key_rpcs = 12
    for number in range(1, 60):
        market.add(number, card(f"meter-{number}", "alpha beta gamma delta epsilon zeta"))
    search = await run(market, "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda", meaning=True)
    assert 0 < search.budget.rpcs <= limits.FIND_RPCS_MAX
    assert search.budget.bytes <= limits.FIND_BYTES_MAX
    assert len(search.hits) > limits.FIND_CARDS_MAX // 2, "enough was left, though no card came along with its record"


async def test_a_search_for_an_assignment_reads_everything_over_more_paths(market: Market) -> None:
    for number in range(1, 40):
        market.add(number, card(f"meter-{number}", "measures disk usage", outputs=("samples",)))
    search = await run(market, "disk usage", thorough=True)
    await search.widen(["out:samples"])
    assert all(thorough for _, thorough in market.keys)
    assert len(search.hits) == 39
    assert len(market.fetched) == 39, "nothing is fetched twice"


def test_a_key_is_begun_only_if_the_last_records_and_cards_stay_affordable() -> None:
    budget = Budget(rpcs_max=100)
    assert budget.may_begin(0)
    budget.charge_key(40, 1_000)
    assert not budget.may_begin(0), "another forty would leave too little"
    assert budget.may_ask(29)
    assert not budget.may_ask(30), "those under way may cost two each"


def test_who_is_nearer_or_under_a_word_of_the_query_comes_first() -> None:
    market, query = Market(), Query("weather forecast")
    for number, text in enumerate(("weather forecast", "stock prices", "weather", "stock prices"), 1):
        market.add(number, card("agent", text))
    search = market.search(query, meaning=True)
    assert search.aspect is not None
    candidates = Candidates(search.aspect.numbers, query.words)
    for owner, agent in market.agents:
        candidates.add("cell:hashed-1:1", [market.pointer("cell:hashed-1:1", owner, agent)])
    assert [one.node[-1] for one in candidates.best()][:2] == [1, 3]
    candidates.add("word:weather", [market.pointer("word:weather", node(4), "agent")])
    assert candidates.best()[-1].node == node(2), "the other of two that say the same is under a word"


def test_who_is_found_under_a_word_alone_comes_after_those_with_a_near_sketch() -> None:
    market, query = Market(), Query("weather forecast")
    market.add(1, card("agent", "weather forecast"))
    market.add(2, card("agent", "forecast"))
    search = market.search(query, meaning=True)
    assert search.aspect is not None
    candidates = Candidates(search.aspect.numbers, query.words)
    bare = codec.replace(market.pointer("word:forecast", node(2), "agent"), sketch=b"")
    candidates.add("word:forecast", [bare])
    candidates.add("cell:hashed-1:1", [market.pointer("cell:hashed-1:1", node(1), "agent")])
    assert [one.node for one in candidates.best()] == [node(1), node(2)]
