"""One look after another at a process tree, its folder and its connections.

    Sampler(root, folder) ── look ──> {"cpu_percent": 12.5, "memory_mb": 131.2, ...}

`cpu_percent` is of one core, over the whole tree, since the look before; rates are per second since then. Network
bytes are the machine's: the system does not count them by process. Connections are the root's, who holds them all.
"""

import contextlib
import os
import time
from pathlib import Path

import psutil

UNITS = {
    "cpu_percent": "% of a core",
    "memory_mb": "MB",
    "disk_mb": "MB in its folder",
    "disk_write_kb_s": "kB/s written",
    "connections": "open",
    "processes": "running",
    "machine_network_kb_s": "kB/s on the whole machine",
}


class Sampler:
    """`root`: the node's process; everything below it counts. The first look only sets the start."""

    def __init__(self, root: psutil.Process, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._cpu_s: dict[psutil.Process, float] = {}
        self._written: dict[psutil.Process, int] = {}
        self._network = 0
        self._at_s = 0.0
        self.look()

    def look(self) -> dict[str, float]:
        """Metric -> value now, rounded as it is stored and reported."""
        now_s = time.monotonic()
        seconds, self._at_s = max(1e-3, now_s - self._at_s), now_s
        tree = self._tree()
        return {
            "cpu_percent": round(100 * self._cpu_since(tree) / seconds, 2),
            "memory_mb": round(sum(_resident(process) for process in tree) / 1e6, 2),
            "disk_mb": round(_size(self._folder) / 1e6, 3),
            "disk_write_kb_s": round(self._written_since(tree) / 1e3 / seconds, 2),
            "connections": _connections(self._root),
            "processes": len(tree),
            "machine_network_kb_s": round(self._network_since() / 1e3 / seconds, 2),
        }

    def _tree(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def _cpu_since(self, tree: list[psutil.Process]) -> float:
        """CPU seconds of the tree since the last look; a process born since then counts whole."""
        before, self._cpu_s = self._cpu_s, {process: _cpu_s(process) for process in tree}
        return sum(spent - before.get(process, 0.0) for process, spent in self._cpu_s.items())

    def _written_since(self, tree: list[psutil.Process]) -> int:
        before, self._written = self._written, {process: _written(process) for process in tree}
        return sum(written - before.get(process, 0) for process, written in self._written.items())

    def _network_since(self) -> int:
        counters = psutil.net_io_counters()
        total = counters.bytes_sent + counters.bytes_recv if counters else 0
        before, self._network = self._network, total
        return total - before


def _cpu_s(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return times.user + times.system
    return 0.0


def _resident(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return process.memory_info().rss
    return 0


def _written(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error, AttributeError):  # macOS does not tell
        return process.io_counters().write_bytes
    return 0


def _connections(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return len(process.net_connections(kind="inet"))
    return 0


def _size(folder: Path) -> int:
    """Bytes of all files below; those that vanish meanwhile do not count."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
