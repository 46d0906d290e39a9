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
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert child.stdout is not None
        wanted = acknowledged + dice.randint(1, 60)
        for line in child.stdout:
            acknowledged = int(line)
            if acknowledged >= wanted:
                break
        child.send_signal(signal.SIGKILL)
        for line in child.stdout:  # acknowledged before the kill reached it
            acknowledged = int(line)
        child.wait(10)
        storage = SqliteStorage(path)
        groups = [int(key[:8]) for key, _ in storage.scan("even")]
        assert groups == list(range(len(groups)))
        assert len(groups) > acknowledged >= wanted
        assert len(list(storage.scan("odd"))) == len(groups) * (ROWS - 1)
        storage.close()
