"""Every command: what people see, what scripts read, and each way it can fail."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.node.home import Home
from tests.cli.conftest import NODE, OTHER, Cli, FakeNode

TEAM = "12" * 16


def refuse(code: str, message: str, hint: str) -> Any:
    def script(args: dict[str, Any]) -> Any:
        raise UsageError(code, message, hint)

    return script


def fails(code: str) -> Any:
    return refuse(code, "it is so", "do this")


# -- init and id


def test_init_makes_a_node_and_says_who_it_is(cli: Cli, home: Home) -> None:
    answer = cli("init", "--mesh", "kitchen", "--json")
    assert answer.code == 0
    assert answer.last["config"] == str(home.config)
    assert len(answer.last["node"]) == 52
    assert 'mesh = "kitchen"' in home.config.read_text()
    assert cli("id", "--json").last == {"ok": True, "node": answer.last["node"], "mesh": "kitchen", "seed": ""}


def test_the_first_config_reads_back_as_what_was_asked_for(cli: Cli, home: Home) -> None:
    from ioa_p2p.node.config import load

    other = cli("init", "--name", "other", "--json").last["node"]
    arguments = ["--allow", other, "--seed", f"{other}@127.0.0.1:7001", "--host", "127.0.0.2", "--set", "dht.port=7002"]
    assert cli("init", *arguments).code == 0
    config = load(home, {}, {})
    assert str(config.seeds[0]) == f"{other}@127.0.0.1:7001"
    assert (config.dht_host, config.dht_port, config.link_host, len(config.allow)) == (
        "127.0.0.2",
        7002,
        "127.0.0.2",
        1,
    )
    assert cli("id", "--json").last["seed"].endswith("@127.0.0.2:7002")


def test_an_agents_file_becomes_part_of_the_config(cli: Cli, home: Home, tmp_path: Path) -> None:
    from ioa_p2p.node.config import load

    file = tmp_path / "meter.toml"
    file.write_text('# mine\n[agents.meter]\nadapter = "python"\ntarget = "meter.py"\n')
    assert cli("init", "--agent", str(file)).code == 0
    assert load(home, {}, {}).agents["meter"].options == {"target": "meter.py"}
    assert "# mine" in home.config.read_text()


def test_a_target_beside_the_agents_file_or_where_we_work_is_found_from_any_folder(
    cli: Cli, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ioa_p2p.node.config import load

    beside, work = tmp_path / "beside", tmp_path / "wo\u00e9rk"
    for folder, names in ((beside, ("both.py", "near.py")), (work, ("both.py", "far.py"))):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    targets = ("both.py", "./near.py:run", "far.py", "package.module:run", "gone.py", str(work / "far.py"))
    tables = [f"[agents.a{n}]\nadapter = 'python'\ntarget = '{one}'  # why\n" for n, one in enumerate(targets)]
    placed = "[agents.placed]\nadapter = 'python'\nfolder = '/srv'\ntarget = 'placed.py'\n"
    (beside / "placed.py").touch()
    (beside / "agents.toml").write_text("\n".join([*tables, placed]))
    monkeypatch.chdir(work)
    assert cli("init", "--agent", str(beside / "agents.toml")).code == 0
    assert [one.options["target"] for one in load(home, {}, {}).agents.values()] == [
        str(beside / "both.py"),
        f"{beside / 'near.py'}:run",
        str(work / "far.py"),
        "package.module:run",
        "gone.py",
        str(work / "far.py"),
        "placed.py",
    ]
    assert home.config.read_text().count("# why") == len(targets)


@pytest.mark.parametrize("text", ["mesh = 'x'\n[agents.a]\nadapter='python'", "x", "[agents.a]\n"])
def test_an_agents_file_with_anything_else_is_refused_and_nothing_made(
    cli: Cli, home: Home, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "agents.toml"
    file.write_text(text)
    answer = cli("init", "--agent", str(file), "--json")
    assert answer.code == 2
    assert answer.last["code"] in ("bad-agent", "bad-config")
    assert not home.exists
    assert not home.key.exists()


def test_init_never_overwrites(cli: Cli, home: Home) -> None:
    cli("init")
    key = home.key.read_bytes()
    answer = cli("init", "--json")
    assert (answer.code, answer.last["code"]) == (2, "already-initialised")
    assert home.key.read_bytes() == key


def test_a_lost_key_needs_a_clear_wish_to_be_replaced(cli: Cli, home: Home) -> None:
    before = cli("init", "--set", "ttl_s=99", "--json").last["node"]
    assert cli("init", "--new-key", "--json").last["code"] == "key-exists"
    home.key.unlink()
    for command in (["id"], ["up"], ["init"]):
        answer = cli(*command, "--json")
        assert answer.code == 2
        assert "--new-key" in answer.last["hint"]
    assert not home.key.exists()
    assert cli("init", "--new-key", "--json").last["node"] != before
    assert "ttl_s = 99" in home.config.read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--seed", "nobody"], "bad-setting"),
        (["--allow", "nobody"], "bad-setting"),
        (["--set", "dht.prot=1"], "unknown-setting"),
        (["--set", "dht.port"], "bad-setting"),
        (["--name", "No Name"], "bad-name"),
    ],
)
def test_init_refuses_what_up_would_refuse(cli: Cli, home: Home, arguments: list[str], code: str) -> None:
    answer = cli("init", *arguments, "--json")
    assert (answer.code, answer.last["code"]) == (2, code)
    assert answer.last["hint"]
    assert not home.exists


# -- without a node


@pytest.mark.parametrize(
    "command",
    ["down", "status", "seeds list", "peers", "publish", "find x", "show x", "ask x", "ask --resume",
     "team list", "team show x", "team cancel x", "task list", "task show x", "task cancel x",
     "task watch x", "task forget x", "task retry x"],
)  # fmt: skip
def test_commands_that_need_a_node_say_that_none_runs(cli: Cli, command: str) -> None:
    answer = cli(*command.split(), "--json")
    assert (answer.code, answer.last["code"]) == (3, "not-running")
    assert "ioa-p2p up" in answer.last["hint"]
    spoken = cli(*command.split())
    assert (spoken.code, spoken.out) == (3, "")
    assert "[not-running]" in spoken.err


def test_down_without_a_running_node_is_done_already(cli: Cli) -> None:
    cli("init")
    answer = cli("down", "--json")
    assert (answer.code, answer.last) == (0, {"ok": True, "stopped": "", "pid": None})
    assert "nothing to stop" in cli("down").out


@pytest.mark.parametrize(
    "command",
    ["nonsense", "status --nonsense", "task", "team show x y", "find --limit x", "up --wait nan", "wire show"],
)
def test_wrong_usage_is_told_with_a_hint_where_to_look(cli: Cli, command: str) -> None:
    answer = cli(*command.split())
    assert answer.code == 2
    assert answer.out == ""
    assert "--help" in answer.err
    if command != "task":
        assert cli(*command.split(), "--json").last["code"] == "usage"


def test_up_needs_a_configured_node(cli: Cli) -> None:
    answer = cli("up", "--json")
    assert (answer.code, answer.last["code"]) == (2, "not-initialised")


def test_up_names_the_misspelt_key(cli: Cli, home: Home) -> None:
    cli("init")
    home.config.write_text("[dht]\nprot = 1\n")
    answer = cli("up", "--json")
    assert (answer.code, answer.last["hint"]) == (2, "did you mean 'dht.port'?")


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("up --detach", "`ioa-p2p init --name nope`"),
        ("id", "`ioa-p2p init --name nope`"),
        ("status", "`ioa-p2p up --detach --name nope`"),
        ("doctor", "`ioa-p2p init --name nope`"),
        ("team list", "`ioa-p2p init --name nope`"),
    ],
)
def test_a_hint_speaks_of_the_node_that_was_named(cli: Cli, command: str, hint: str) -> None:
    told = cli(*command.split(), "--name", "nope")
    assert hint in told.out + told.err


def test_a_hint_repeats_the_folder_that_was_given(cli: Cli, tmp_path: Path) -> None:
    folder = str(tmp_path / "my nodes")
    hint = cli("status", "--home", folder, "--name", "s1", "--json").last["hint"]
    assert f"`ioa-p2p up --detach --name s1 --home '{folder}'`" in hint


def test_a_lost_key_is_made_anew_for_the_node_that_was_named(cli: Cli, tmp_path: Path) -> None:
    cli("init", "--name", "s1")
    (tmp_path / "s1" / "node.key").unlink()
    for command in ("doctor", "id", "up", "init"):
        told = cli(command, "--name", "s1")
        assert "`ioa-p2p init --new-key --name s1`" in told.out + told.err, command


# -- with a node


def test_status_shows_every_field(cli: Cli, node: FakeNode) -> None:
    node.answers("status", {"ready": True, "peers": 3, "counters": {"signatures_checked": 9}, "addresses": ["x", "y"]})
    assert cli("status", "--json").last == {
        "ok": True,
        "ready": True,
        "peers": 3,
        "counters": {"signatures_checked": 9},
        "addresses": ["x", "y"],
    }
    spoken = cli("status").out
    assert "counters   signatures_checked 9\n" in spoken
    assert "x, y" in spoken


def test_status_is_told_in_plain_words_without_empty_rows(cli: Cli, node: FakeNode) -> None:
    node.answers("status", {"ready": True, "reachable": False, "clock_offset_s": None, "alarms": [], "degraded": "",
                            "peers": 0, "counters": {"seen": 0, "udp.sent": 4, "udp.lost": 2}})  # fmt: skip
    lines = [line.split(maxsplit=1) for line in cli("status").out.splitlines()]
    assert lines == [["ready", "yes"], ["reachable", "no"], ["peers", "0"], ["counters", "udp.sent 4, udp.lost 2"]]


@pytest.mark.parametrize(
    ("command", "verb", "answer"),
    [
        ("peers", "peers", {"peers": []}),
        ("team list", "teams", {"teams": []}),
        ("task list", "tasks", {"tasks": []}),
        ("seeds list", "seeds", {"seeds": [], "notes": []}),
    ],
)
def test_an_empty_table_says_none(cli: Cli, node: FakeNode, command: str, verb: str, answer: dict[str, Any]) -> None:
    node.answers(verb, answer)
    assert cli(*command.split()).out == "none\n"


def test_a_team_that_ended_is_listed_by_its_outcome(cli: Cli, node: FakeNode) -> None:
    team = {"team": TEAM, "goal": "g", "phase": "", "outcome": "failed", "term": 0, "tasks_open": 0}
    node.answers("teams", {"teams": [team]})
    assert f"{TEAM}  failed" in cli("team", "list").out


def test_each_team_is_listed_below_the_one_that_it_works_for(cli: Cli, node: FakeNode) -> None:
    row = {"phase": "PAUSE", "term": 1, "tasks_open": 1, "goal": "g", "outcome": ""}
    parents = {"cc": "bb", "bb": "aa", "aa": "", "ee": "not-here"}
    node.answers("teams", {"teams": [{**row, "team": team, "parent": above} for team, above in parents.items()]})
    lines = cli("team", "list").out.splitlines()[1:]
    assert [line.split("  PAUSE")[0].rstrip() for line in lines] == ["aa", "└ bb", "└ └ cc", "ee"]


def test_a_shown_team_names_those_that_do_its_tasks(cli: Cli, node: FakeNode) -> None:
    leaf = {"team": "cc", "task": "t2", "agent": "wood", "node": OTHER, "state": "succeeded", "children": []}
    child = {"team": "bb", "task": "t1", "agent": "valley", "node": OTHER, "state": "offered", "children": [leaf]}
    node.answers("team", {"team": TEAM, "children": [child]})
    lines = cli("team", "show").out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("TEAM BELOW"))
    assert [line.split() for line in lines[place + 1 :][:2]] == [
        ["bb", "offered", "valley"],
        ["└", "cc", "succeeded", "wood"],
    ]


def test_the_newest_team_is_shown_unless_one_is_named(cli: Cli, node: FakeNode) -> None:
    node.answers("team", {"team": TEAM})
    assert TEAM in cli("team", "show").out
    assert node.asked == [("team", {})]


def test_id_asks_the_running_node_for_its_seed_line(cli: Cli, node: FakeNode) -> None:
    node.answers("id", {"node": NODE, "mesh": "m", "seed": f"{NODE}@127.0.0.1:7000"})
    assert f"seed  {NODE}@127.0.0.1:7000" in cli("id").out


def test_peers_are_listed(cli: Cli, node: FakeNode) -> None:
    node.answers("peers", {"peers": [{"node": OTHER, "address": "/ip4/1", "outbound": True, "software": "s"}]})
    assert OTHER in cli("peers").out
    assert cli("peers", "--json").last["peers"][0]["node"] == OTHER


def test_a_refusal_of_the_node_is_told_in_its_words(cli: Cli, node: FakeNode) -> None:
    node.scripts["status"] = fails("no-disk")
    answer = cli("status")
    assert answer.code == 1
    assert answer.err == "error: it is so [no-disk]\nhint:  do this\n"
    assert cli("status", "--json").last == {"ok": False, "code": "no-disk", "message": "it is so", "hint": "do this"}


def test_a_timeout_told_by_the_node_has_its_own_exit_code(cli: Cli, node: FakeNode) -> None:
    node.scripts["find"] = fails("timeout")
    assert cli("find", "x").code == 4


def test_a_bug_in_the_node_is_told_as_such(cli: Cli, node: FakeNode) -> None:
    node.scripts["status"] = lambda _: ([], {}["x"])
    assert cli("status", "--json").last["code"] == "internal"


def test_teams_are_listed_shown_and_cancelled(cli: Cli, node: FakeNode) -> None:
    team = {"team": TEAM, "goal": "g", "phase": "PAUSE", "term": 2, "coordinator": NODE, "tasks_open": 1}
    node.answers("teams", {"teams": [team]})
    members = [{"agent": "meter", "node": OTHER}]
    tasks = [{"task": "ff", "skill": "a.b", "state": "running", "agent": "meter"}]
    node.answers("team", {**team, "members": members, "tasks": tasks, "chat": [{"who": "meter", "text": "hello"}]})
    node.answers("cancel", {"cancelled": True})
    assert f"{TEAM}  PAUSE" in cli("team", "list").out
    shown = cli("team", "show", TEAM).out
    assert "running" in shown
    assert "meter: hello" in shown
    assert cli("team", "cancel", TEAM, "--json").last == {"ok": True, "cancelled": True}
    assert node.asked[-1] == ("cancel", {"team": TEAM})


def test_tasks_are_listed_shown_and_cancelled(cli: Cli, node: FakeNode) -> None:
    task = {"task": "ff", "skill": "a.b", "state": "running", "attempt": 2, "agent": "meter"}
    node.answers("tasks", {"tasks": [task]})
    node.answers("task", task)
    node.answers("cancel", {"cancelled": True})
    assert "ff    a.b    running  2        meter" in cli("task", "list", "--open").out
    assert node.asked[-1] == ("tasks", {"open": True, "team": None, "dead": False})
    assert "attempt  2" in cli("task", "show", "ff").out
    assert cli("task", "cancel", "ff").code == 0
    assert node.asked[-1] == ("cancel", {"task": "ff"})


def test_a_second_node_in_the_same_folder_is_refused_naming_the_first(cli: Cli, node: FakeNode, home: Home) -> None:
    cli("init")
    answer = cli("up", "--detach", "--json")
    assert (answer.code, answer.last["code"]) == (1, "locked")
    assert str(os.getpid()) in answer.last["message"]


# -- logs


def test_logs_show_the_last_lines_without_a_node(cli: Cli, home: Home) -> None:
    home.make_folders()
    home.log.write_text("".join(f"line {n}\n" for n in range(9)))
    assert cli("logs", "-n", "2").out == "line 7\nline 8\n"
    assert [event["line"] for event in cli("logs", "-n", "1", "--json").events] == ["line 8"]


def test_following_a_log_goes_on_through_half_lines_and_rotation(tmp_path: Path) -> None:
    from ioa_p2p.cli.logs import read_lines

    log = tmp_path / "node.log"
    log.write_text("old\n")
    lines = read_lines(log, 1, follow=True)
    assert next(lines) == "old"
    with log.open("a") as file:
        file.write("first\nsec")
        file.flush()
        assert next(lines) == "first"
        file.write("ond\n")
    assert next(lines) == "second"
    log.rename(tmp_path / "node.log.1")
    log.write_text("third\n")
    assert next(lines) == "third"


def test_logs_say_when_there_is_none(cli: Cli) -> None:
    assert cli("logs", "--json").last["code"] == "no-log"


# -- all, and waiting


def test_every_command_takes_json_and_prints_only_json(cli: Cli) -> None:
    for command in ("init", "id", "doctor", "init"):
        for line in cli(command, "--json").out.splitlines():
            json.loads(line)


def test_status_waits_until_the_node_is_ready(cli: Cli, node: FakeNode) -> None:
    node.scripts["status"] = lambda _: ([], {"ready": len(node.asked) > 2})
    assert cli("status", "--wait", "30", "--json").last == {"ok": True, "ready": True}
    assert len(node.asked) == 3


def test_waiting_for_a_node_that_is_never_ready_ends(cli: Cli, node: FakeNode) -> None:
    node.answers("status", {"ready": False})
    answer = cli("status", "--wait", "0.01", "--json")
    assert (answer.code, answer.last["code"]) == (4, "timeout")


def test_waiting_for_a_node_that_never_comes_ends(cli: Cli) -> None:
    answer = cli("status", "--wait", "0.01")
    assert answer.code == 3
    assert "no node 'default' runs here yet; waiting up to 0.01 s" in answer.err
