"""The directory is a cache, but not a careless one: kill -9 in the middle of batches, and a disk that is full."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ioa_p2p.storage.catalogue import Catalogue
from tests.storage.agents import WALL
from tests.storage.test_full_disk import IN_NAMESPACE, MOUNT, ROOT, may_mount

BATCH = 5
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

WRITER = f"""
import sys
from pathlib import Path
from ioa_p2p.storage.catalogue import Catalogue
from ioa_p2p.wire import codec, ids
from tests.storage.agents import WALL, card, frame_of, record_of

catalogue = Catalogue(Path(sys.argv[1]))
for batch in range(catalogue.count // {BATCH}, 100_000):
    with catalogue.batch():
        for number in range({BATCH}):
            agent = card(f"agent-{{number}}", "says much " * 20)
            record, encoded = record_of(batch, agent), codec.encode(agent)
            catalogue.put(frame_of(record), record, WALL)
            catalogue.put_card(ids.blake(encoded), encoded, bytes([1, number]), "m")
    print(batch, flush=True)
"""


@pytest.mark.parametrize("wanted", [3, 40])
def test_kill_9_halves_no_batch_and_breaks_no_file(tmp_path: Path, wanted: int) -> None:
    path, acknowledged = tmp_path / "directory.db", -1
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env=ENVIRONMENT
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                acknowledged = int(line)
                if acknowledged % wanted == wanted - 1:
                    child.send_signal(signal.SIGKILL)
        catalogue = Catalogue(path)
        assert catalogue.count % BATCH == 0
        assert catalogue.count >= BATCH * (acknowledged + 1), "a killed process loses nothing it was told is written"
        found = catalogue.search(["much"], bytes([1, 0]), "m", catalogue.count, WALL)
        assert len(found) == catalogue.count
        catalogue.close()


FILLER = """
import sys
from pathlib import Path
from ioa_p2p.errors import StorageError
from ioa_p2p.storage.catalogue import Catalogue
from ioa_p2p.wire import codec, ids
from tests.storage.agents import WALL, card, frame_of, record_of

folder = Path(sys.argv[1])
(folder / "ballast").write_bytes(bytes(300_000))
catalogue, kept, refusals = Catalogue(folder / "directory.db"), 0, 0

def put():
    agent = card(f"agent-{kept}", " ".join(f"word{kept}x{number}" for number in range(80)))
    record, encoded = record_of(kept, agent), codec.encode(agent)
    with catalogue.batch():
        catalogue.put(frame_of(record), record, WALL)
        catalogue.put_card(ids.blake(encoded), encoded, bytes(64), "m")

while refusals < 3:  # it refuses again and again, and what was kept is still found
    try:
        put()
        kept += 1
    except StorageError as fault:
        assert fault.code == "disk-full", fault
        refusals += 1
    assert catalogue.count == kept
    if kept:
        found = catalogue.search([f"word{kept - 1}x3"], None, "", 9, WALL)
        assert [match.known.record.agent for match in found] == [f"agent-{kept - 1}"]
(folder / "ballast").unlink()
put()
assert catalogue.count == kept + 1
catalogue.close()
print(kept)
"""


@pytest.mark.skipif(not may_mount(), reason="no mount namespaces here")
def test_a_full_disk_keeps_what_there_is_and_the_directory_goes_on_when_freed(tmp_path: Path) -> None:
    done = subprocess.run(
        [*IN_NAMESPACE, "sh", "-c", MOUNT, "sh", str(tmp_path), sys.executable, FILLER],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
