"""A bounded load on one device: half a core, 96 MiB of memory, a file that grows to 96 MiB; nobody is told.

    sh -c 'python -m examples.load FOLDER & exec ioa-p2p up'     so the load is a child of the node it burdens

It ends by itself with its parent, or after SECONDS_MAX.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

SECONDS_MAX = 120.0
BUSY_S, IDLE_S = 0.05, 0.05
MEMORY_BYTES = 96 * 1024 * 1024
FILE_BYTES_A_ROUND = 64 * 1024
FILE_BYTES_MAX = 96 * 1024 * 1024


def main(folder: Path) -> None:
    parent, deadline = os.getppid(), time.monotonic() + SECONDS_MAX
    ballast = os.urandom(1024) * (MEMORY_BYTES // 1024)
    with open(folder / "load.bin", "wb") as file:
        while os.getppid() == parent and time.monotonic() < deadline:
            work(ballast)
            if file.tell() < FILE_BYTES_MAX:
                file.write(ballast[:FILE_BYTES_A_ROUND])
                file.flush()
            time.sleep(IDLE_S)


def work(ballast: bytes) -> None:
    """Keep one core busy for a moment."""
    until = time.thread_time() + BUSY_S
    while time.thread_time() < until:
        hashlib.sha256(ballast[: 64 * 1024]).digest()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
