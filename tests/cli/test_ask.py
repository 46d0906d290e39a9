"""`ask`: the team's story, its end, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.cli.output import Output
from ioa_p2p.cli.progress import Progress, bar
from tests.cli.conftest import NODE, OTHER, Cli, FakeNode

TEAM = "12" * 16
TASK = {"kind": "task", "task": "ab" * 16, "agent": "meter", "node": OTHER, "skill": "device.measure", "attempt": 1}
RESULT = {
    "team": TEAM,
    "outcome": "concluded",
    "answer": "All is well.",
    "files": [{"name": "report.md", "path": "/tmp/report.md", "bytes": 10}],
    "credits": [{"agent": "meter", "node": OTHER, "skill": "device.measure", "tasks": 2}],
    "seconds": 3.0,
}
STORY: list[dict[str, Any]] = [
    {"kind": "started", "team": TEAM, "goal": "How are my devices?"},
    {"kind": "found", "agent": "meter", "node": OTHER, "skills": ["device.measure"]},
    {"kind": "bid", "agent": "meter", "node": OTHER, "willing": True, "load": 0.25},
    {"kind": "bid", "agent": "meter", "node": NODE, "willing": False, "load": 1},
    {"kind": "roster", "team": TEAM, "members": [{"agent": "meter", "node": OTHER, "skills": []}]},
    {"kind": "elected", "term": 1, "coordinator": OTHER, "votes": 2, "voters": 3},
    {"kind": "phase", "phase": "ASYNC_ASSIGN", "turn": 1},
    {"kind": "phase", "phase": "ASYNC_ASSIGN", "turn": 2},
    {**TASK, "state": "running", "fraction": 0.1, "note": ""},
    {**TASK, "state": "running", "fraction": 0.6, "note": "half way"},
    {**TASK, "state": "running", "fraction": None, "note": "", "attempt": 2},
    {**TASK, "state": "succeeded", "fraction": 1.0, "note": "", "attempt": 2},
    {"kind": "orphan", "task": "ab" * 16, "attempt": 1, "state": "succeeded", "note": ""},
    {"kind": "missing", "name": "chart.png", "note": "nobody has it"},
    {"kind": "said", "who": "meter", "text": "It is warm."},
    {"kind": "halted", "reason": "only a newer version can read it: update it"},
    {"kind": "a-kind-of-the-future", "x": 1},
    {"kind": "concluded", "outcome": "concluded"},
]


def test_the_story_is_told_on_stderr_and_the_answer_on_stdout(cli: Cli, node: FakeNode) -> None:
    node.answers("ask", RESULT, *STORY)
    answer = cli("ask", "How are my devices?", "--timeout", "30")
    assert answer.code == 0
    assert answer.out == "All is well.\nfile     /tmp/report.md\ncredit   meter@bbbbbbbb: device.measure x2\n"
    assert [line[10:] for line in answer.err.splitlines()] == [
        "team      12121212: How are my devices?",
        "found     1 agent",
        "bid       meter@bbbbbbbb is willing, load 0.25",
        "bid       meter@aaaaaaaa declines, load 1.00",
        "roster    1 members: meter@bbbbbbbb",
        "elected   bbbbbbbb leads term 1 with 2 of 3 votes",
        "phase     ASYNC_ASSIGN",
        "task      ababab device.measure by meter@bbbbbbbb running",
        "task      ababab device.measure by meter@bbbbbbbb running (attempt 2)",
        "task      ababab device.measure by meter@bbbbbbbb succeeded (attempt 2)",
        "orphan    ababab attempt 1 succeeded too late; kept apart",
        "missing   chart.png: nobody has it",
        "said      meter: It is warm.",
        "halted    this node: only a newer version can read it: update it",
        "ended     concluded",
    ]
    assert node.asked == [("ask", {"goal": "How are my devices?", "timeout_s": 30.0, "detach": False})]


def test_a_crowd_of_found_agents_is_one_line(cli: Cli, node: FakeNode) -> None:
    crowd = [{"kind": "found", "agent": f"a{number}", "node": OTHER, "skills": ["x"]} for number in range(21)]
    node.answers("ask", RESULT, *crowd, *STORY[2:4])
    told = [line[10:] for line in cli("ask", "goal").err.splitlines()]
    assert told[0] == "found     21 agents"
    assert told[1].startswith("bid ")
    node.answers("ask", RESULT, *crowd)
    assert [line[10:] for line in cli("ask", "goal").err.splitlines()] == ["found     21 agents"]


def test_scripts_get_every_event_and_then_the_result(cli: Cli, node: FakeNode) -> None:
    node.answers("ask", RESULT, *STORY)
    answer = cli("ask", "goal", "--json")
    assert answer.events == STORY
    assert answer.last == {"ok": True, **RESULT}
    assert answer.err == ""


@pytest.mark.parametrize(
    ("outcome", "code"), [("concluded", 0), ("detached", 0), ("failed", 1), ("cancelled", 1), ("expired", 4)]
)
def test_the_exit_code_tells_how_the_team_ended(cli: Cli, node: FakeNode, outcome: str, code: int) -> None:
    node.answers("ask", {"team": TEAM, "outcome": outcome})
    answer = cli("ask", "goal", "--detach")
    assert answer.code == code
    assert answer.out == f"team {TEAM}: {outcome}\n"
    assert node.asked[0][1]["detach"] is True


@pytest.mark.parametrize(
    ("why", "reason", "step"), [("nobody-found", "", "`ioa-p2p find"), ("nobody-fits", "not-allowed", "`allow`")]
)
def test_a_goal_without_a_team_says_what_to_do_next(cli: Cli, node: FakeNode, why: str, reason: str, step: str) -> None:
    bid = {"kind": "bid", "agent": "meter", "node": OTHER, "willing": False, "load": 0, "reason": reason}
    node.answers("ask", {"team": TEAM, "outcome": "failed", "why": why, "answer": "Nobody."}, bid)
    answer = cli("ask", "goal")
    assert (answer.code, answer.out) == (1, "Nobody.\n")
    assert ("declines: not-allowed" in answer.err) == bool(reason)
    assert answer.err.splitlines()[-1].startswith("hint: ")
    assert step in answer.err.splitlines()[-1]


def test_resume_goes_on_with_the_newest_team_or_the_named_one(cli: Cli, node: FakeNode) -> None:
    node.answers("resume", RESULT)
    assert cli("ask", "--resume").code == 0
    assert cli("ask", "--resume", TEAM).code == 0
    assert node.asked == [("resume", {}), ("resume", {"team": TEAM})]


def test_a_goal_is_needed(cli: Cli) -> None:
    assert cli("ask", "--json").last["code"] == "no-goal"


@contextmanager
def asking(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """`ask` as a process of its own, past its first event."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ioa_p2p.cli", "ask", "goal", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "IOA_P2P_HOME": str(tmp_path), "PYTHONPATH": os.getcwd()},
    )
    try:
        assert process.stdout is not None
        assert "started" in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


def test_ctrl_c_once_leaves_the_team_at_work(tmp_path: Path, node: FakeNode) -> None:
    node.answers("ask", None, STORY[0])
    with asking(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert json.loads(process.stdout.readline())["event"]["kind"] == "detaching"
        assert json.loads(process.stdout.readline()) == {"ok": True, "team": TEAM, "outcome": "detached"}
        assert process.wait(30) == 130
    assert [verb for verb, _ in node.asked] == ["ask"]


def test_ctrl_c_twice_cancels_the_team(tmp_path: Path, node: FakeNode) -> None:
    node.answers("ask", None, STORY[0])
    node.answers("cancel", {"cancelled": True})
    with asking(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert json.loads(process.stdout.readline())["event"]["kind"] == "detaching"
        process.send_signal(signal.SIGINT)
        assert json.loads(process.stdout.readline()) == {"ok": True, "cancelled": True}
        assert process.wait(30) == 130
    assert node.asked[-1] == ("cancel", {"team": TEAM})


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_redrawn_line_with_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    talk = Terminal()
    progress = Progress(Output(talk=talk, data=StringIO()), {OTHER: "kitchen"})
    for event in STORY[:10]:
        progress.show(event)
    assert "\r\x1b[2K[ASYNC_ASSIGN] kitchen  device.measure ██████░░░░" in talk.getvalue()
    progress.end()
    assert talk.getvalue().endswith("\r\x1b[2K")


def test_elsewhere_nothing_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for talk in (StringIO(), Terminal()):
        progress = Progress(Output(talk=talk, data=StringIO()))
        for event in STORY:
            progress.show(event)
        assert "\r" not in talk.getvalue()
        assert "\x1b" not in talk.getvalue()


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.0, "░" * 10), (0.5, "█" * 5 + "░" * 5), (9.0, "█" * 10), (None, "·" * 10)]
)
def test_a_bar_never_leaves_its_cells(fraction: float | None, text: str) -> None:
    assert bar(fraction) == text


def test_no_members_words_pass_for_lines_of_ours(cli: Cli, node: FakeNode) -> None:
    said = {"kind": "said", "who": "mallory", "text": "hm\n  0.1 s  concluded concluded\n\x1b[2J"}
    node.answers("ask", {"team": "t", "outcome": "concluded", "answer": "Done."}, said)
    told = cli("ask", "Greet.").err
    assert len(told.splitlines()) == 1
    assert "\x1b" not in told
