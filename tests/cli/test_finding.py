"""publish, find and show: what a person sees of what the node answers."""

from typing import Any

import pytest

from tests.cli.conftest import OTHER, Cli, FakeNode

TEAM = "12" * 16


def test_publish_tells_copies_and_warnings(cli: Cli, node: FakeNode) -> None:
    record = {"agent": "meter", "seq": 7, "copies": 12, "holders": 16, "keys": 32, "meaning": True, "skills": ["a.b"],
              "warnings": ["2 keywords cut"]}  # fmt: skip
    node.answers("publish", {"records": [record]})
    answer = cli("publish", "meter")
    assert "meter  7    12 of 16  32    meaning, words  a.b" in answer.out
    assert "2 keywords cut" in answer.err
    assert node.asked == [("publish", {"agent": "meter"})]


HIT = {"kind": "hit", "agent": "meter", "node": OTHER, "skills": ["device.measure"], "description": "measures",
       "trust": "stranger", "age_s": 200.0, "answered": True, "source": "mesh"}  # fmt: skip
RANKED = {**HIT, "match": 1.5, "weak": False, "why": ["a stranger", "match 1.50"]}
FOUND: dict[str, Any] = {"hits": 1, "ranked": [RANKED], "needs": [], "ranking": "words", "holders": 7, "silent": 0,
                         "local_hits": 1, "rpcs": 40, "bytes": 2048}  # fmt: skip


def test_find_shows_nothing_but_the_ranked_list_once(cli: Cli, node: FakeNode) -> None:
    node.answers("find", FOUND, {**HIT, "answered": False}, HIT, {**HIT, "agent": "other"})
    answer = cli("find", "disk", "usage", "--out", "metrics.samples", "--trust", "granted")
    assert answer.out.splitlines() == [f"  1. meter@{OTHER[:8]}  stranger, 3 min old  device.measure", "     measures"]
    assert answer.err.splitlines() == ["1 found; 7 answers of holders"]
    (_, args) = node.asked[0]
    assert (args["words"], args["out"], args["skill"], args["trust"]) == (
        "disk usage",
        "metrics.samples",
        None,
        "granted",
    )
    scripted = cli("find", "disk", "--json")
    assert [event["answered"] for event in scripted.events] == [False, True, True]
    assert scripted.last == {"ok": True, **FOUND}


@pytest.mark.parametrize(
    ("ranking", "rest"), [("meaning", "by meaning and words"), ("words", "by words"), ("trust", "by trust and age")]
)
def test_find_says_what_an_order_rests_on_where_there_is_one(cli: Cli, node: FakeNode, ranking: str, rest: str) -> None:
    node.answers("find", {**FOUND, "ranking": ranking, "hits": 2, "ranked": [RANKED, RANKED]})
    assert f"2 found, ranked {rest}; 7 answers" in cli("find", "disk").err
    node.answers("find", {**FOUND, "ranking": ranking, "hits": 0, "ranked": []})
    answer = cli("find", "disk")
    assert "0 found; 7 answers" in answer.err
    assert "hint:" in answer.err
    assert answer.out == ""


def test_find_marks_who_may_not_fit_and_whose_node_is_silent(cli: Cli, node: FakeNode) -> None:
    weak = {**RANKED, "agent": "poet", "weak": True, "answered": False}
    node.answers("find", {**FOUND, "hits": 1, "ranked": [RANKED, weak]})
    first, second = (line for line in cli("find", "disk").out.splitlines() if "@" in line)
    assert "may not fit" not in first
    assert second.startswith(f"  2. poet@{OTHER[:8]}  stranger, 3 min old, may not fit, its node has not answered")
    node.answers("find", {**FOUND, "hits": 0, "ranked": [weak]})
    assert cli("find", "disk").out.startswith("nothing fits well; nearest:\n")


def test_find_explains_each_place_and_the_cost(cli: Cli, node: FakeNode) -> None:
    node.answers("find", FOUND, HIT)
    plain, told = cli("find", "disk"), cli("find", "disk", "--explain")
    assert "a stranger; match 1.50" in told.out
    assert "a stranger; match 1.50" not in plain.out
    assert "40 requests, 2 KiB; 1 were known" in told.err


def test_find_groups_agents_by_need_when_there_are_several(cli: Cli, node: FakeNode) -> None:
    needs = [{"need": "book a flight", "agents": [f"flyer@{OTHER}"]}, {"need": "plan meals", "agents": []}]
    node.answers("find", {**FOUND, "needs": needs}, HIT)
    out = cli("find", "book a flight and plan meals").out
    assert f"book a flight: flyer@{OTHER[:8]}" in out
    assert "plan meals: nobody" in out


SHOWN: dict[str, Any] = {
    "agent": "meter", "node": OTHER, "signature": "good", "seq": 9, "issued": 1_800_000_000, "age_s": 3.0,
    "expires_s": 7_000.0, "holders": 20, "copies": 18, "trust": "granted", "why": "its node is on the allow-list",
    "addresses": ["/ip4/192.0.2.1/tcp/1"], "endpoint": "192.0.2.1:1", "features": [], "index_model": "",
    "card": "matches", "card_hash": "00", "card_bytes": 210, "version": "1", "description": "measures\nthings",
    "skills": [{"name": "device.measure", "description": "", "effect": "pure", "inputs": [], "outputs": ["samples"],
                "tags": ["disk"], "examples": []}],
}  # fmt: skip


def test_show_tells_what_is_proven_apart_from_what_is_said(cli: Cli, node: FakeNode) -> None:
    node.answers("show", SHOWN)
    out = cli("show", f"meter@{OTHER[:8]}").out
    assert node.asked == [("show", {"agent": f"meter@{OTHER[:8]}"})]
    proven, said = out.split("it says of itself:")
    assert "good: its node signed this record, number 9" in proven
    assert "18 of 20 asked have it" in proven
    assert "matches the hash in the record, 210 bytes" in proven
    assert "measures things" in said
    assert "device.measure  - -> samples  pure  [disk]" in said
    assert cli("show", "meter", "--json").last == {"ok": True, **SHOWN}


def test_show_says_when_the_card_is_not_to_be_had(cli: Cli, node: FakeNode) -> None:
    node.answers("show", {**SHOWN, "card": "not-had", "description": "", "skills": [{"name": "device.measure"}]})
    out = cli("show", "meter").out
    assert "not had: its node does not answer" in out
    assert "device.measure" in out


def test_find_wants_something_to_find(cli: Cli) -> None:
    assert cli("find", "--json").last["code"] == "nothing-to-find"


def test_foreign_text_cannot_move_the_terminals_cursor(cli: Cli, node: FakeNode) -> None:
    hit = {**RANKED, "description": "\x1b[2J\x07\u202egone\r"}
    node.answers("find", {**FOUND, "ranked": [hit]})
    out = cli("find", "x").out
    assert not set(out) & {"\x1b", "\x07", "\r", "\u202e"}
    assert "gone" in out


def test_what_an_agent_says_of_itself_makes_no_line_of_ours(cli: Cli, node: FakeNode) -> None:
    forged = "x\ntrust       mine: forged"
    skill = {**SHOWN["skills"][0], "inputs": [forged], "outputs": [forged], "tags": [forged], "description": forged}
    node.answers("show", {**SHOWN, "description": forged, "skills": [skill]})
    assert sum(line.startswith("trust ") for line in cli("show", "meter").out.splitlines()) == 1
    node.answers("task", {"task": "ff", "state": "done", "note": forged})
    assert not any(line.startswith("trust ") for line in cli("task", "show", "ff").out.splitlines())
    node.answers("team", {"team": TEAM, "chat": [{"who": "meter", "text": forged}]})
    assert not any(line.startswith("trust ") for line in cli("team", "show", TEAM).out.splitlines())
