"""Measures the device it runs on: the CPU, memory, disk and connections of its own node."""

import asyncio
import json
import os
import socket
from pathlib import Path

import psutil
from sampler import UNITS, Sampler

from ioa_p2p.adapters.agent import Result, skill

SECONDS = float(os.environ.get("DEVICE_SECONDS", "6"))
INTERVAL_S = float(os.environ.get("DEVICE_INTERVAL_S", "0.3"))
LOOKS_MIN = 5
NODE = psutil.Process(os.getppid())  # whoever runs this agent


@skill(
    "device.measure",
    outputs=["metrics.samples"],
    description="Measure this device for some seconds: CPU, memory, disk, network and open connections over time.",
    tags=["device", "health", "metrics"],
)
async def measure(task, progress):
    """Samples of one device: {"device", "node_pid", "seconds": [s, ...], "metrics": {name: [value, ...]}, "units"}."""
    sampler = Sampler(NODE, folder())
    loop = asyncio.get_running_loop()
    start, looks = loop.time(), []
    while len(looks) < LOOKS_MIN or looks[-1][0] < SECONDS:  # on a busy device a look takes long: then fewer of them
        await asyncio.sleep(INTERVAL_S)
        looks.append((round(loop.time() - start, 3), sampler.look()))
        progress(min(1.0, looks[-1][0] / SECONDS), f"{len(looks)} samples")
    samples = {
        "device": device(),
        "node_pid": NODE.pid,
        "seconds": [at for at, _ in looks],
        "metrics": {name: [look[name] for _, look in looks] for name in UNITS},
        "units": UNITS,
    }
    keep(samples, f"samples-{task.key.hex()[:8]}-{task.attempt}.json")
    return Result({"metrics.samples": samples}, summary=f"{len(looks)} samples of {device()} over {looks[-1][0]:.1f} s")


def folder() -> Path:
    """The node's own folder, with all it keeps; `ioa-p2p up` tells it."""
    return Path(os.environ.get("NODE_FOLDER") or ".").absolute()


def device() -> str:
    """What people call this device: the name of the node's folder, unless that says nothing."""
    name = os.environ.get("DEVICE_NAME") or folder().name
    return socket.gethostname() if name in ("", "default") else name


def keep(samples: dict, name: str) -> None:
    """A copy that stays here, so that anyone can compare what was reported with what was measured."""
    (folder() / name).write_text(json.dumps(samples))
