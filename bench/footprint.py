"""What a node costs that does nothing, among nine neighbours; and what `--help` costs: `./dev bench footprint`.

Ten real node processes on loopback, one measured. MiB of resident memory, per cent of one core over a window,
CPU-seconds of one `ioa-p2p --help`; medians of the runs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from examples.mesh import COMMAND, ROOT, Mesh, MeshNode, free_ports, ready, wait_until

NEIGHBOURS_MIN = 9
LINK_WAIT_S = 60.0
SETTLE_S = 10.0  # joining is over, caches are warm


def main() -> None:
    options = read_options()
    say(f"{options.nodes} nodes, {options.runs} windows of {options.window} s")
    with tempfile.TemporaryDirectory(prefix="ioa-") as folder, Mesh(Path(folder), "footprint") as mesh:
        figures = idle(start(mesh, options.nodes), options.runs, options.window)
    figures["help_cpu_s"] = statistics.median(help_cpu_s() for _ in range(options.runs))
    figures |= {"nodes": options.nodes, "runs": options.runs, "load_avg": os.getloadavg()[0]}
    print(json.dumps(figures) if options.json else "\n".join(f"{name:18} {value}" for name, value in figures.items()))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench footprint")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=NEIGHBOURS_MIN + 1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--window", type=float, default=20.0, help="seconds of one run")
    return parser.parse_args()


def start(mesh: Mesh, count: int) -> MeshNode:
    """The measured node, linked to the others."""
    (port,) = free_ports(1)
    mesh.make({"measured": ["--set", f"dht.port={port}"]})
    mesh.make({f"neighbour-{number}": [] for number in range(count - 1)})
    mesh.introduce(["measured"])
    for node in mesh.nodes.values():
        node.start()
    ready(mesh.nodes.values())
    measured = mesh.nodes["measured"]
    wait_until(lambda: neighbours(measured) >= count - 1, LINK_WAIT_S)
    return measured


def idle(node: MeshNode, runs: int, window_s: float) -> dict[str, Any]:
    """Memory and CPU of one node process over windows in which nobody asks it anything."""
    linked = neighbours(node)
    time.sleep(SETTLE_S)
    process = psutil.Process(node.pid)
    rss_mb, core_percent = [], []
    for _ in range(runs):
        used, began = cpu_s(process), time.monotonic()
        time.sleep(window_s)
        core_percent.append(100 * (cpu_s(process) - used) / (time.monotonic() - began))
        rss_mb.append(process.memory_info().rss / 1024**2)
    return {
        "idle_rss_mb": round(statistics.median(rss_mb), 1),
        "idle_core_percent": round(statistics.median(core_percent), 3),
        "neighbours": linked,
    }


def neighbours(node: MeshNode) -> int:
    return node.ask("status")["peers"]


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def help_cpu_s() -> float:
    """User and system CPU-seconds of one `ioa-p2p --help`."""
    child = subprocess.Popen([*COMMAND, "--help"], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    return round(usage.ru_utime + usage.ru_stime, 3)


def say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
