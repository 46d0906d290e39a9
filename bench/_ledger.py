"""Agents of `bench.failover`: one writes a line under the task's key into an outside file, one counts them."""

import os
import time
from pathlib import Path

from ioa_p2p.adapters.agent import skill

FILE = Path(os.environ.get("LEDGER_FILE", "ledger.txt"))
SECONDS = float(os.environ.get("LEDGER_SECONDS", "5"))


@skill("ledger.write", outputs=["ledger.line"], effect="idempotent", description="Write a line into the ledger.")
def write(task, progress):
    """The contract of an idempotent effect: a key that is there already is not written again."""
    key = task.key.hex()
    for step in range(20):
        progress(step / 20)
        time.sleep(SECONDS / 20)
    if key not in lines(FILE):
        with FILE.open("a") as file:
            file.write(f"{key} attempt {task.attempt}\n")
    return key


@skill("ledger.count", inputs=["ledger.line*"], outputs=["ledger.total"], description="Count all the ledger's lines.")
def count(task):
    return len(task.inputs["ledger.line"])


def lines(file: Path) -> list[str]:
    """The keys in the file, one a line, in order."""
    return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []
