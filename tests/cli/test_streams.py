"""Odd places to speak to: a closed stream, a full device, an encoding without the letters, paths that cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ioa_p2p.node.home import Home

WAIT_S = 60


def run(command: str, home: Path, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """The command line in a shell; `ioa` stands for it."""
    line = command.replace("ioa", f"{sys.executable} -m ioa_p2p.cli")
    variables = {**os.environ, "IOA_P2P_HOME": str(home), **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, env=variables, timeout=WAIT_S, check=False)


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_swallow_what_is_said_and_the_work_is_done(tmp_path: Path, streams: str) -> None:
    done = run(f"ioa init {streams}", tmp_path)
    assert done.returncode == 0
    assert b"Traceback" not in done.stdout + done.stderr
    assert len(Home("default", tmp_path / "default", tmp_path / "default").read_key()) == 32


@pytest.mark.parametrize("command", ["ioa --help", "ioa doctor", "ioa doctor --json"])
def test_output_that_cannot_be_written_is_an_error_and_no_trace(tmp_path: Path, command: str) -> None:
    done = run(f"{command} > /dev/full", tmp_path)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


def test_letters_that_an_encoding_lacks_are_escaped(tmp_path: Path) -> None:
    done = run("ioa status --name gr\u00fcn", tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert done.returncode == 2
    assert b"gr\\xfcn" in done.stderr


@pytest.mark.parametrize("command", ["init", "up", "doctor", "logs", "status", "down"])
def test_a_home_whose_path_is_too_long_is_an_error_with_a_hint(tmp_path: Path, command: str) -> None:
    done = run(f"ioa {command}", tmp_path / ("a" * 300))
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("place", ["node.log", "lock"])
def test_a_folder_where_a_file_should_be_is_an_error_with_a_hint(tmp_path: Path, place: str) -> None:
    assert run("ioa init", tmp_path).returncode == 0
    (tmp_path / "default" / place).mkdir()
    for command in ("up", "logs", "doctor"):
        done = run(f"ioa {command}", tmp_path)
        assert done.returncode != 0
        assert b"Traceback" not in done.stderr
    assert b"hint:" in run("ioa up", tmp_path).stderr
