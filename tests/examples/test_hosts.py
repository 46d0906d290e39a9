"""examples/hosts.py: what it makes works, and nothing of it stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples import hosts as module
from examples.hosts import Hosts, HostsError, lacking
from tests.namespaces import needs_hosts

SERVE = """
import socket, sys
server = socket.create_server(("0.0.0.0", 7000))
print("up", flush=True)
print(server.accept()[1][0], flush=True)
"""
OTHER = """
import time
from examples.hosts import Hosts
with Hosts() as hosts:
    hosts.net("outside", "11.0.0.0/24")
    hosts.host("birch", "outside", "11.0.0.2")
    print(hosts.mark, flush=True)
    time.sleep(60)
"""
DIAL = "import socket, sys; socket.create_connection((sys.argv[1], 7000), 2)"


def made(mark: str) -> set[str]:
    """Namespaces there are, of those whose names begin so."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0].removeprefix(mark) for line in listed.splitlines() if line.startswith(mark)}


def test_who_may_not_make_namespaces_is_told_so_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    with pytest.raises(HostsError, match="needs root"), Hosts():
        pass
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(module.shutil, "which", lambda tool: None if tool == "nft" else f"/sbin/{tool}")
    assert "nft" in lacking(nat=True)
    assert lacking() == ""


@needs_hosts
def test_a_router_lets_out_under_its_own_address_and_nobody_in() -> None:
    with Hosts() as hosts:
        hosts.net("outside", "11.0.0.0/24")
        hosts.host("birch", "outside", "11.0.0.2")
        hosts.net("home", "10.1.0.0/24")
        hosts.router("door", "outside", "11.0.0.9", "home", "10.1.0.1")
        hosts.host("kitchen", "home", "10.1.0.2", gateway="10.1.0.1")
        with _server(hosts, "birch") as birch:
            assert birch.stdout is not None
            hosts.run("kitchen", sys.executable, "-c", DIAL, "11.0.0.2")
            assert birch.stdout.readline().strip() == "11.0.0.9"
        with _server(hosts, "kitchen") as kitchen:
            for address in ("11.0.0.9", "10.1.0.2"):
                with pytest.raises(HostsError, match=r"refused|unreachable|timed out"):
                    hosts.run("birch", sys.executable, "-c", DIAL, address)
            kitchen.kill()


def _server(hosts: Hosts, name: str) -> "subprocess.Popen[str]":
    """One that tells who came, once it listens."""
    command = [*hosts.inside(name), sys.executable, "-c", SERVE]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "up\n"
    return server


@needs_hosts
def test_nothing_stays_when_the_making_fails_half_way() -> None:
    hosts = Hosts()
    with pytest.raises(HostsError):
        _make_two_and_fail(hosts)
    assert made(hosts.mark) == set()


def _make_two_and_fail(hosts: Hosts) -> None:
    with hosts:
        hosts.net("outside", "11.0.0.0/24")
        hosts.host("birch", "outside", "11.0.0.2")
        assert made(hosts.mark) == {"outside", "birch"}
        hosts.host("rowan", "outside", "no address")


@needs_hosts
def test_two_at_once_do_not_meet_and_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "other.py"
    script.write_text(OTHER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    other = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        assert other.stdout is not None
        mark = other.stdout.readline().strip()
        with Hosts() as hosts:
            hosts.net("outside", "11.0.0.0/24")
            hosts.host("birch", "outside", "11.0.0.2")
            assert made(hosts.mark) == {"outside", "birch"}
        assert made(hosts.mark) == set()
        assert made(mark) == {"outside", "birch"}
        other.send_signal(signal.SIGINT)
        other.wait(30)
        assert made(mark) == set()
    finally:
        other.kill()
        other.wait()
