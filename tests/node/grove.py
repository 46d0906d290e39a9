"""The leaf of tests about teams within teams: it measures trunks when it may, and leaves a file.

GROVE/open      made by the test: it may end      GROVE/runs      one line a run: its task's key
"""

import os
import time
from pathlib import Path

from ioa_p2p.adapters.agent import Attachment, Failed, Result, skill

FOLDER = Path(os.environ.get("GROVE", "."))


@skill("trunk.measure", outputs=["trunk.list"], description="Measure each trunk.")
def measure(task, progress):
    with open(FOLDER / "runs", "a") as runs:
        runs.write(f"{task.key.hex()}\n")
    end = time.monotonic() + task.deadline_s
    while not (FOLDER / "open").exists():
        if time.monotonic() > end:
            return Failed("closed", "nobody opened")
        time.sleep(0.02)
    return Result({"trunk.list": [1, 2, 3]}, (Attachment("trunks", "text/plain", b"1 2 3"),), "3 trunks")
