"""A disk that is really full: a file system of 1 MiB in a mount namespace of its own, then freed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
MOUNT = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'

CHILD = """
import sys
from pathlib import Path
from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError
from ioa_p2p.storage.sqlite import SqliteStorage

folder = Path(sys.argv[1])
ballast = folder / "ballast"
ballast.write_bytes(bytes(600_000))
storage, groups, refusals = SqliteStorage(folder / "state.sqlite"), 0, 0

def commit():
    storage.commit([Save("a", b"%06d" % groups, bytes(3_000)), Save("b", b"%06d" % groups, bytes(3_000))])

while refusals < 5:  # it refuses again and again, and harms nothing
    try:
        commit()
        groups += 1
    except StorageError as fault:
        assert fault.code == "disk-full", fault
        refusals += 1
    rows = [len(list(storage.scan(space))) for space in "ab"]
    assert rows == [groups, groups], (rows, groups)
storage.close()
try:
    SqliteStorage(folder / "state.sqlite").close()  # may lack the room to look at its log
except StorageError as fault:
    assert fault.code == "disk-full", fault
ballast.unlink()
storage = SqliteStorage(folder / "state.sqlite")
commit()
storage.close()
again = SqliteStorage(folder / "state.sqlite")
assert len(list(again.scan("b"))) == groups + 1
print("groups", groups)
"""


def may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*IN_NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="no mount namespaces here")
def test_a_full_disk_loses_nothing_and_the_store_goes_on_when_freed(tmp_path: Path) -> None:
    done = subprocess.run(
        [*IN_NAMESPACE, "sh", "-c", MOUNT, "sh", str(tmp_path), sys.executable, CHILD],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) > 10
