"""Starting a node in the background: wait until it answers, or say why it does not."""

import json
import os
import subprocess
import sys
import time
from typing import Any

from ioa_p2p.cli.client import NotRunningError, TimedOutError
from ioa_p2p.cli.here import Here
from ioa_p2p.errors import IoaError

POLL_S = 0.1


def start(here: Here, flags: list[str], wait_s: float) -> tuple[dict[str, Any], str]:
    """Start `ioa-p2p up` as its own session and wait until it is ready; its status, and a line for people.

    Raises the node's own error when it ends first, TimedOutError when it is not up after `wait_s`.
    """
    here.home.make_folders()
    child = _spawn(here, flags)
    deadline = time.monotonic() + wait_s
    status: dict[str, Any] = {}
    while not status.get("ready") and time.monotonic() < deadline:
        if child.poll() is not None:
            raise _reason(child)
        status = _status(here) if here.home.holder() == child.pid else {}
        time.sleep(0 if status.get("ready") else POLL_S)
    if not status:
        child.kill()
        child.wait()
        raise TimedOutError("timeout", f"the node was not up after {wait_s:g} s; it was ended", f"see {here.home.log}")
    ready = "ready" if status.get("ready") else "up, but has not found a mesh yet"
    failed = [
        here.spelt(f"agent {name!r} did not come up: {why}; see `ioa-p2p doctor`")
        for name, why in status.get("agents_failed", {}).items()
    ]
    return status, "\n".join(
        [f"node {here.home.name!r} is {ready} (process {child.pid})", *failed, *status.get("notes", [])]
    )


def _spawn(here: Here, flags: list[str]) -> "subprocess.Popen[bytes]":
    base = here.home.data_folder.parent
    environment = dict(os.environ)
    place = ["--home", str(base)] if here.home.config_folder == here.home.data_folder else []
    command = [sys.executable, "-m", "ioa_p2p.cli", "up", "--json", "--quiet", "--name", here.home.name, *place, *flags]
    with open(here.home.data_folder / "stderr", "wb") as stderr:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            env=environment,
        )


def _status(here: Here) -> dict[str, Any]:
    try:
        return here.ask("status", wait_s=2.0)
    except (NotRunningError, TimedOutError):
        return {}


def _reason(child: "subprocess.Popen[bytes]") -> IoaError:
    """Why it ended: the error it printed as its last line."""
    assert child.stdout is not None
    lines = child.stdout.read().splitlines()
    try:
        answer = json.loads(lines[-1])
        return IoaError(answer["code"], answer["message"], answer["hint"])
    except (IndexError, ValueError, KeyError):
        return IoaError("start-failed", f"the node ended with code {child.returncode}", "see `ioa-p2p logs`")
