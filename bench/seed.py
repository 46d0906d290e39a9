"""What a seed costs whoever runs it: `./dev bench seed`.

A real `ioa-p2p up --seed` process on loopback; newcomers, DHT machines on sockets of this process, join through it,
some at a time, and stay. CPU-ms of the seed for each, MiB of resident memory before and after, per cent of one core
while they are there and nothing else happens. Medians of the runs.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import psutil

from bench._measure import say
from bench.dht import NETWORK, Peer
from examples.mesh import Mesh, MeshNode, free_ports, ready
from ioa_p2p.wire import ids
from ioa_p2p.wire.dht import Contact, parse_seed

MESH_NAME = "bench"
CROWD = 20  # newcomers at a time
JOIN_WAIT_S = 30.0
SETTLE_S = 5.0  # what the start, or joining, left to be done is done


def main() -> None:
    options = read_options()
    assert ids.network_id(MESH_NAME) == NETWORK
    runs = [run(options.newcomers, options.window) for _ in range(options.runs)]
    figures = {name: round(statistics.median(one[name] for one in runs), 2) for name in runs[0]}
    figures |= {"newcomers": options.newcomers, "runs": options.runs, "load_avg": os.getloadavg()[0]}
    print(json.dumps(figures) if options.json else "\n".join(f"{name:18} {value}" for name, value in figures.items()))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench seed")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--newcomers", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--window", type=float, default=20.0, help="seconds of watching it idle")
    return parser.parse_args()


def run(newcomers: int, window_s: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ioa-") as folder, Mesh(Path(folder), MESH_NAME) as mesh:
        (port,) = free_ports(1)
        mesh.make({"seed": ["--set", f"dht.port={port}"]})
        seed = mesh.nodes["seed"]
        seed.start()
        (status,) = ready([seed])
        say(f"a seed of {status['pid']}, {newcomers} newcomers")
        return asyncio.run(measure(seed, newcomers, window_s))


async def measure(seed: MeshNode, newcomers: int, window_s: float) -> dict[str, float]:
    process, line = psutil.Process(seed.pid), parse_seed(seed.ask("id")["seed"])
    await asyncio.sleep(SETTLE_S)
    before_mb, before_s = rss_mb(process), cpu_s(process)
    peers = list[Peer]()
    for first in range(0, newcomers, CROWD):
        peers += await asyncio.gather(*(join(number, line) for number in range(first, min(first + CROWD, newcomers))))
    joined_s = cpu_s(process)
    await asyncio.sleep(SETTLE_S)
    idle_s = cpu_s(process)
    await asyncio.sleep(window_s)
    figures = {
        "join_cpu_ms": (joined_s - before_s) * 1_000 / newcomers,
        "idle_percent": (cpu_s(process) - idle_s) * 100 / window_s,
        "rss_mb_alone": before_mb,
        "rss_mb": rss_mb(process),
    }
    for peer in peers:
        peer.close()
    return figures


async def join(number: int, seed: Contact) -> Peer:
    """A newcomer that has found its place."""
    peer = Peer(number)
    await peer.open()
    peer.join(seed)
    async with asyncio.timeout(JOIN_WAIT_S):
        await peer.ready
    return peer


def cpu_s(process: Any) -> float:
    times = process.cpu_times()
    return times.user + times.system


def rss_mb(process: Any) -> float:
    return process.memory_info().rss / 1024**2


if __name__ == "__main__":
    main()
