"""The agents of tests/live/test_kills.py: a miller and a baker whose every run and effect is seen from outside.

BAKERY/runs             one line a run: customer, skill, key, attempt
BAKERY/milled-NAME-KEY  the miller's effect: one file a key, made at the beginning of its run
BAKERY/open-NAME        made by the test: the miller may end
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from ioa_p2p.adapters.agent import Attachment, Failed, Result, skill

FOLDER = Path(os.environ.get("BAKERY", "."))
LOAF_BYTES = 8 * 1024 * 1024  # many pieces to write


@skill("grain.mill", outputs=["grain.flour"], description="Mill the grain.", effect="idempotent")
def mill(task, progress):
    name = _begin(task)
    with suppress(FileExistsError):
        (FOLDER / f"milled-{name}-{task.key.hex()}").touch(exist_ok=False)
    end = time.monotonic() + task.deadline_s
    while not (FOLDER / f"open-{name}").exists():
        if time.monotonic() > end:
            return Failed("closed", "nobody opened")
        time.sleep(0.02)
    return f"flour for {name}"


@skill("bread.bake", inputs=["grain.flour"], outputs=["bread.loaf"], description="Bake bread of flour.")
def bake(task, progress):
    name = _begin(task)
    (flour,) = task.inputs["grain.flour"]
    file = Attachment("loaf", "application/octet-stream", loaf(name))
    return Result({"bread.loaf": f"loaf of {flour}"}, (file,), f"A loaf of {flour}.")


def loaf(name):
    """What the baker makes for a customer."""
    return name.encode() * (LOAF_BYTES // len(name))


def _begin(task):
    """Write the run down; the customer's name, the goal's last word."""
    name = task.goal.split()[-1]
    with open(FOLDER / "runs", "a") as runs:
        runs.write(f"{name} {task.skill} {task.key.hex()} {task.attempt}\n")
    return name
