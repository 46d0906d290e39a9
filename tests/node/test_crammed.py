"""T19: a whole mesh on a disk that is really full, then freed: no crash, a clear error, and on by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.test_full_disk import IN_NAMESPACE, ROOT, may_mount

MOUNT = 'mount -t tmpfs -o size=4m none "$1" && exec "$2" -m tests.node.crammed "$1"'


@pytest.mark.skipif(not may_mount(), reason="no mount namespaces here")
def test_a_goal_on_a_full_disk_ends_with_a_clear_error_and_the_next_works_when_it_is_freed(tmp_path: Path) -> None:
    done = subprocess.run(
        [*IN_NAMESPACE, "sh", "-c", MOUNT, "sh", str(tmp_path), sys.executable],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    before, during, full, after = done.stdout.splitlines()[-1].split()
    assert (before, during, after) == ("concluded", "concluded", "concluded")
    assert full in ("failed", "disk-full")
