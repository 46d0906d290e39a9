"""Index keys: which, in what order, and what is said when some are cut."""

from ioa_p2p.dht.index import cell_key, index_keys
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card, Skill


def test_keys_come_from_skills_types_prefixes_words_and_parts_each_once_in_this_order():
    skills = (
        Skill("stats.outliers", "Finds outliers", ("metrics.samples*",), ("stats.report",), ("anomaly",)),
        Skill("stats.trend", outputs=("stats.report",)),
    )
    kept, cut = index_keys(Card("analyst", "Statistics of memory", skills=skills))
    assert kept == [
        "skill:stats.outliers",
        "skill:stats.trend",
        "out:stats.report",
        "skill:stats",
        "word:analyst",
        "word:anomaly",
        "word:stat",
        "word:outlier",
        "word:trend",
        "word:statistic",
        "word:memory",
        "word:find",
        "in:metrics.samples",
        "out:stats",
        "out:report",
        "in:metrics",
        "in:samples",
    ]
    assert cut == []


def test_the_nearest_cells_of_an_index_model_come_first():
    kept, _ = index_keys(Card("a"), (cell_key("m-1", 7), cell_key("m-1", 3)))
    assert kept[:2] == ["cell:m-1:7", "cell:m-1:3"]


def test_what_is_beyond_the_limit_is_cut_and_said():
    description = " ".join(f"word{number}" for number in range(50))
    kept, cut = index_keys(Card("a1", description, skills=(Skill("x.y", inputs=("t",)),)))
    assert len(kept) == limits.INDEX_KEYS_MAX
    assert kept[:2] == ["skill:x.y", "skill:x"]
    assert cut[-1] == "in:t"
    assert len(kept) + len(cut) == 2 + 3 + 50 + 1


def test_a_chinese_description_is_found_by_its_bigrams():
    kept, _ = index_keys(Card("a1", "内存分析"))
    assert {"word:内存", "word:存分", "word:分析"} <= set(kept)


def test_an_agent_of_many_skills_is_found_by_words_of_all_before_its_further_skills():
    skills = tuple(Skill(f"make-{word}", outputs=(f"thing.{word}",)) for word in "abcdefghijklmn")
    kept, cut = index_keys(Card("a1", skills=skills))
    order = kept + cut
    assert [key for key in order if key.startswith("skill:")][:10] == [f"skill:make-{word}" for word in "abcdefghij"]
    assert order.index("word:n") < order.index("skill:make-k")
    assert {f"out:thing.{word}" for word in "abcdefghijklmn"} <= set(kept)
