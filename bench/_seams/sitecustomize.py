"""On PYTHONPATH it lets a bench say at which save a node dies: before the disk has it, or after and before it is told.

A file `die` in the node's folder, "3 before" or "5 after", arms it; the process that dies of it takes it away first.
"""

import os
import signal
from pathlib import Path
from typing import Any

from ioa_p2p.storage.sqlite import SqliteStorage

commit = SqliteStorage.commit
ORDER = Path(os.environ.get("IOA_P2P_HOME", ".")) / os.environ.get("IOA_P2P_NAME", "default") / "die"
left: list[int] = []


def commit_or_die(self: SqliteStorage, saves: Any) -> None:
    """Count this save if the order is given."""
    order = ORDER.read_text().split() if ORDER.exists() else []
    if not order:
        commit(self, saves)
        return
    if not left:
        left.append(int(order[0]))
    left[0] -= 1
    if left[0] <= 0 and order[1] == "before":
        die()
    commit(self, saves)
    if left[0] <= 0:
        die()


def die() -> None:
    ORDER.unlink()
    os.kill(os.getpid(), signal.SIGKILL)


SqliteStorage.commit = commit_or_die
