"""`task watch`, `forget`, `retry`, and what a goal may cost."""

from typing import Any

import pytest

from ioa_p2p.cli.budget import cost_text
from ioa_p2p.cli.watching import Watching
from ioa_p2p.errors import IoaError
from tests.cli.conftest import NODE, Cli, FakeNode

TASK = "ab" * 16
ROW = {"task": TASK, "skill": "a.b", "state": "succeeded", "attempt": 1, "agent": "meter"}


def told(seq: int, state: str = "running", **more: Any) -> dict[str, Any]:
    return {"kind": "task", "task": TASK, "state": state, "attempt": 1, "seq": seq, "note": "", **more}


WATCHING = {"kind": "watching", "task": TASK, "life": 7}


def test_a_watched_task_is_told_with_its_gaps_until_its_end(cli: Cli, node: FakeNode) -> None:
    gap = {"kind": "gap", "from": 1, "to": 3}
    late = {"kind": "orphan", "task": TASK, "attempt": 1, "state": "succeeded", "note": "", "seq": 5}
    events = [WATCHING, gap, told(4, fraction=0.5, note="half way"), late, told(6, "succeeded")]
    node.answers("watch", ROW, *events)
    answer = cli("task", "watch", "ab")
    assert answer.code == 0
    assert "state    succeeded" in answer.out
    assert [line.split(None, 1)[1] for line in answer.err.splitlines()] == [
        "3 events were missed", "running 50%: half way", "attempt 1 succeeded too late; kept apart", "succeeded"
    ]  # fmt: skip


class Broken:
    """A node that goes away after some events, and comes back; then for good."""

    def __init__(self, *lives: list[dict[str, Any]] | dict[str, Any]) -> None:
        self.asked: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self._lives = list(lives)
        self.out: Any = self

    def event(self, event: dict[str, Any]) -> None: ...

    def say(self, line: str) -> None:
        self.lines.append(line)

    def call(self, verb: str, args: dict[str, Any], wait_s: float | None) -> Any:
        from ioa_p2p.cli.client import NotRunningError

        self.asked.append(args)
        life = self._lives.pop(0) if self._lives else []
        if isinstance(life, dict):
            return life
        yield from life
        if self._lives:
            raise NotRunningError("node-gone", "the node went away")
        return ROW


def test_a_watcher_goes_on_after_a_cut_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioa_p2p.cli.watching.POLL_S", 0.0)
    again = [{**WATCHING, "life": 8}, {"kind": "gap", "from": 3, "to": None}, told(1, "succeeded")]
    here: Any = Broken([WATCHING, told(1), told(2)], [], again)
    assert Watching(here, "ab", 30.0).to_the_end() == ROW
    assert [(args["task"], args["life"], args["after"]) for args in here.asked] == [
        ("ab", 0, 0), (TASK, 7, 2), (TASK, 7, 2)
    ]  # fmt: skip
    assert here.lines[2] == "gap       the node was started anew; what came after number 2 may be missing"


def test_a_watcher_is_not_patient_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioa_p2p.cli.watching.POLL_S", 0.0)
    here: Any = Broken([WATCHING], [], [])
    with pytest.raises(IoaError, match="went away"):
        Watching(here, "ab", -1.0).to_the_end()


def test_a_node_that_never_answered_is_not_waited_for(cli: Cli) -> None:
    assert cli("task", "watch", "ab").code == 3


def test_dead_letters_are_listed_forgotten_and_asked_again(cli: Cli, node: FakeNode) -> None:
    node.answers("tasks", {"tasks": [{**ROW, "state": "dead-letter"}]})
    assert "dead-letter" in cli("task", "list", "--dead").out
    assert node.asked[-1] == ("tasks", {"open": False, "team": None, "dead": True})
    node.answers("forget", {"forgotten": TASK})
    assert cli("task", "forget", "ab").code == 0
    node.answers("retry", {"team": "cd" * 16, "goal": "g"})
    answer = cli("task", "retry", "ab")
    assert (answer.code, node.asked[-1]) == (0, ("retry", {"task": "ab"}))
    assert f"ask --resume {'cd' * 16}" in answer.out


def test_a_goal_is_asked_with_what_it_may_cost_and_ends_with_what_it_did(cli: Cli, node: FakeNode) -> None:
    cost = {"tokens": 12_345, "money": 250_000, "calls": 7}
    node.answers("ask", {"team": NODE, "outcome": "concluded", "answer": "Done.", "cost": cost})
    answer = cli("ask", "goal", "--budget", "tokens=20000, money=0.000001,calls=30,agents=8")
    assert node.asked[-1][1]["budget"] == {"tokens": 20_000, "money": 1, "calls": 30, "agents": 8}
    assert answer.out.splitlines()[-1] == "cost     12,345 tokens, 0.25 money, 7 calls"
    assert cost_text({"tokens": 0, "money": 0, "calls": 0}) == ""


@pytest.mark.parametrize(
    "budget", ["", "tokens=1e999999999", "money=1e999999", "tokens=1e30",
               "tokens", "tokens=", "tokens=-1", "tokens=1.5", "money=0.0000001", "money=nan", "rice=1",
               "tokens=1,tokens=2", "calls=inf"],
)  # fmt: skip
def test_a_budget_of_no_sense_is_refused_before_anything_is_asked(cli: Cli, node: FakeNode, budget: str) -> None:
    assert cli("ask", "goal", "--budget", budget).code == 2
    assert node.asked == []
