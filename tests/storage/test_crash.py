"""kill -9 in the middle of commits: whole groups, and every acknowledged one."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ioa_p2p.storage.sqlite import SqliteStorage

ROOT = Path(__file__).parents[2]
ROWS = 5  # rows of one group, spread over two spaces

CHILD = f"""
import sys
from pathlib import Path
from ioa_p2p.effects import Save
from ioa_p2p.storage.sqlite import SqliteStorage
storage = SqliteStorage(Path(sys.argv[1]))
start = len(list(storage.scan("even")))
for group in range(start, 1_000_000):
    key = b"%08d" % group
    rows = [Save("even" if row == 0 else "odd", key + b"/%d" % row, bytes(300)) for row in range({ROWS})]
    storage.commit(rows)
    print(group, flush=True)  # the acknowledgement
"""


@pytest.mark.parametrize("seed", range(4))
def test_acknowledged_groups_survive_kill_9_and_none_is_halved(tmp_path: Path, seed: int) -> None:
    path, dice, acknowledged = tmp_path / "state.sqlite", random.Random(seed), -1
    for _ in range(3):
        wanted = acknowledged + dice.randint(1, 60)
        acknowledged = commit_and_die(path, wanted)
        storage = SqliteStorage(path)
        groups = [int(key[:8]) for key, _ in storage.scan("even")]
        assert groups == list(range(len(groups)))
        assert len(groups) > acknowledged >= wanted
        assert len(list(storage.scan("odd"))) == len(groups) * (ROWS - 1)
        storage.close()


def commit_and_die(path: Path, wanted: int) -> int:
    """Let a child commit until group `wanted` is acknowledged, kill it; the last group it acknowledged."""
    acknowledged = -1
    command, environment = [sys.executable, "-c", CHILD, str(path)], {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        for line in child.stdout:
            acknowledged = int(line)
            if acknowledged == wanted:
                child.send_signal(signal.SIGKILL)  # what it said before the kill reached it still counts
    return acknowledged
