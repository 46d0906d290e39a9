"""`up` and `down`: foreground, background, signals, and a node that cannot start."""

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from ioa_p2p.node.home import Home
from tests.cli.conftest import Cli

STAND_IN = str(Path(__file__).parent / "stand_in")


@pytest.fixture(autouse=True)
def fake_node(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NODE", "ready")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((STAND_IN, os.getcwd())))
    cli("init", "--set", "dht.port=7000")


@pytest.fixture
def background(home: Home) -> Iterator[None]:
    """Whatever a test leaves running in the background is ended."""
    yield
    holder = home.holder()
    if holder:
        psutil.Process(holder).kill()


Up = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def up() -> Iterator[Up]:
    """Start `up` as a child; whatever a test leaves running is ended."""
    children: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "ioa_p2p.cli", "up", *flags]
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate(timeout=60)


def is_up(child: "subprocess.Popen[str]") -> bool:
    assert child.stderr is not None
    return child.stderr.readline().endswith("node 'default' is up\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_the_node_in_order(up: Up, home: Home, number: signal.Signals) -> None:
    child = up()
    assert is_up(child)
    child.send_signal(number)
    _, talk = child.communicate(timeout=60)
    assert child.returncode == 0
    assert talk.endswith("node 'default' is down\n")
    assert (home.data_folder / "closed").read_text() == "in order"
    assert home.holder() is None


def test_hup_reads_the_configuration_again_and_the_node_goes_on(up: Up, home: Home) -> None:
    child = up()
    assert is_up(child)
    home.config.write_text(f'allow = ["{"a" * 52}"]\n')
    child.send_signal(signal.SIGHUP)
    assert child.stderr is not None
    assert child.stderr.readline().endswith("allows 1\n")
    home.config.write_text("allow = 5\n")
    child.send_signal(signal.SIGHUP)
    refused = child.stderr.readline()
    assert "the old one goes on" in refused
    assert "allow" in refused
    child.terminate()
    child.communicate(timeout=60)
    assert child.returncode == 0


def test_a_node_goes_with_its_terminal(home: Home) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "ioa_p2p.cli", "up"]
    child = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    try:
        assert is_up(child)
        os.close(ours)
        _, talk = child.communicate(timeout=60)
        assert talk.endswith("node 'default' is down\n")
        assert (child.returncode, home.holder()) == (0, None)
    finally:
        child.kill()
        child.wait()


def test_a_seed_tells_its_line_its_record_and_how_to_check_them(up: Up, cli: Cli, home: Home) -> None:
    mesh = "it's a $(garden)"
    home.config.write_text(f'mesh = "{mesh}"\nseed_dns = ["seeds.example.org"]\n')
    child = up("--seed", "--host", "127.0.0.2")
    assert is_up(child)
    child.terminate()
    told, _ = child.communicate(timeout=60)
    line = f"{'a' * 52}@127.0.0.2:4701"
    assert f"seed   {line}\n" in told
    assert f'seeds.example.org. 3600 IN TXT "ioa-p2p-seed={line}"' in told
    (check,) = [row for row in told.splitlines() if row.startswith("check")]
    assert shlex.split(check)[-4:] == ["--mesh", mesh, "--seed", line]  # whoever pastes it runs nothing else
    assert "this machine alone" in told


@pytest.mark.usefixtures("background")
def test_a_seed_in_the_background_keeps_the_port_it_was_told(cli: Cli, home: Home) -> None:
    answer = cli("up", "--seed", "--detach")
    assert answer.code == 0
    assert f"seed   {'a' * 52}@127.0.0.1:7000" in answer.out
    assert cli("down").code == 0


def test_a_node_that_is_no_seed_tells_nothing_of_it(up: Up) -> None:
    child = up()
    assert is_up(child)
    child.terminate()
    assert child.communicate(timeout=60)[0] == ""


def test_down_stops_a_foreground_node_and_waits_for_it(up: Up, cli: Cli, home: Home) -> None:
    child = up()
    assert is_up(child)
    answer = cli("down", "--json")
    assert answer.last == {"ok": True, "stopped": "default", "pid": child.pid}
    assert home.holder() is None
    child.communicate(timeout=60)
    assert child.returncode == 0


@pytest.mark.usefixtures("background")
def test_detach_returns_when_the_node_is_ready_and_it_outlives_us(cli: Cli, home: Home) -> None:
    answer = cli("up", "--detach", "--json", "--set", "dht.port=7001")
    assert answer.code == 0
    assert answer.last == {"ok": True, "ready": True, "pid": home.holder(), "dht_port": 7001}
    assert psutil.Process(answer.last["pid"]).is_running()
    assert cli("up", "--json").last["code"] == "locked"
    assert cli("down").out == "node 'default' is down\n"
    assert (home.data_folder / "closed").exists()


@pytest.mark.usefixtures("background")
def test_detach_says_when_the_node_is_alone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NODE", "alone")
    answer = cli("up", "--detach", "--wait", "3")
    assert answer.code == 0
    assert "has not found a mesh yet" in answer.out


@pytest.mark.usefixtures("background")
def test_detach_says_which_agent_did_not_come_up(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NODE", "lame")
    answer = cli("up", "--detach")
    assert answer.code == 0
    assert "agent 'meter' did not come up: no such file" in answer.out


def test_detach_tells_why_the_node_could_not_start(cli: Cli, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NODE", "broken")
    answer = cli("up", "--detach", "--json")
    refusal = {"ok": False, "code": "port-in-use", "message": "port 7000 is taken", "hint": "choose another"}
    assert (answer.code, answer.last) == (1, refusal)
    assert home.holder() is None


def test_a_node_that_never_comes_up_is_a_timeout_and_is_ended(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NODE", "silent")
    before = {child.pid for child in psutil.Process().children()}
    answer = cli("up", "--detach", "--wait", "2", "--json")
    assert (answer.code, answer.last["code"]) == (4, "timeout")
    assert [child.pid for child in psutil.Process().children() if child.pid not in before] == []


def test_a_crash_at_start_is_told_without_a_trace_on_stdout(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKE_NODE")
    answer = cli("up", "--detach", "--json")
    assert (answer.code, answer.last["code"]) == (1, "start-failed")


def test_the_log_begins_with_up(up: Up, home: Home) -> None:
    child = up()
    assert is_up(child)
    child.terminate()
    child.communicate(timeout=60)
    assert "node 'default' is up" in home.log.read_text()


def test_only_an_asked_for_level_is_logged(up: Up, cli: Cli, home: Home) -> None:
    child = up("--quiet", "--log-level", "error")
    assert cli("status", "--wait", "60").code == 0
    child.terminate()
    assert child.communicate(timeout=60)[1] == ""
    assert home.log.read_text() == ""
