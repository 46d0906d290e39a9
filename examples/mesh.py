"""Real nodes on this machine, through the command line only: each a process with a folder of its own.

with Mesh(folder) as mesh:                          IOA_P2P_HOME=folder/nodes, IOA_P2P_NAME=kitchen, ...
    mesh.make({"birch": [...], "kitchen": [...]})   ioa-p2p init, with these arguments
    mesh.introduce(["birch"])                       who knows whom: each node one seed, seeds one another
    node.start()                                    ioa-p2p up
"""

import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from ioa_p2p.cli import client
from ioa_p2p.errors import IoaError
from ioa_p2p.node.home import Home

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "ioa_p2p.cli"]
READY_WAIT_S = 60.0
STOP_WAIT_S = 8.0
CALL_WAIT_S = 5.0
T = TypeVar("T")


class CommandError(Exception):
    """A command of the CLI failed; its own words."""


@dataclass
class MeshNode:
    """One node: its folder, its key, and, while it runs, its process. place: words before every command that starts it
    (`ip netns exec ...`, see hosts.py); the others find it by its folder from anywhere."""

    name: str
    home: Path
    id: str = ""
    place: Sequence[str] = ()
    process: "subprocess.Popen[bytes] | None" = None
    past: list[psutil.Process] = field(default_factory=list[psutil.Process])

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} does not run"
        return self.process.pid

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def write(self, key: str, value: list[str]) -> None:
        """Put a value where the first config.toml has the commented, empty default. Before `start`."""
        config = self.home / "config.toml"
        config.write_text(config.read_text().replace(f"# {key} = []", f"{key} = {json.dumps(value)}", 1))

    def ask(self, *arguments: str, timeout_s: float = 90.0) -> dict[str, Any]:
        """One command of `ioa-p2p`; its result. Raises CommandError."""
        done = subprocess.run(
            [*COMMAND, *arguments, "--json"], capture_output=True, text=True, cwd=ROOT, env=self.environment,
            timeout=timeout_s, check=False,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        result = json.loads(lines[-1]) if lines else {"message": done.stderr[-500:]}
        if done.returncode:
            why = result.get("message") or result.get("answer") or result
            raise CommandError(f"{self.name}: ioa-p2p {arguments[0]}: {why}")
        return result

    def call(self, verb: str, **args: str) -> dict[str, Any]:
        """What its control socket answers to a verb, without a process for it; empty while it does not."""
        try:
            return client.ask(Home(self.name, self.home, self.home).socket, verb, args, CALL_WAIT_S)
        except IoaError:
            return {}

    def start(self, wrapper: Sequence[str] = ()) -> None:
        """`ioa-p2p up` as a child of ours. wrapper: words before it, which must end as that process."""
        with open(self.home / "output", "ab") as output:
            self.process = subprocess.Popen(
                [*self.place, *wrapper, *COMMAND, "up", "--quiet"], cwd=ROOT, env=self.environment,
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL, now. What it leaves behind is ended by `end`."""
        assert self.process is not None
        self.past += family(self.process.pid)
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """TERM, then KILL, for the node and everything it started; only processes of ours, by pid."""
        mine = self.past + (family(self.process.pid) if self.runs and self.process else [])
        if self.runs and self.process:
            self.process.terminate()
            try:
                self.process.wait(STOP_WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for process in mine:
            if process.is_running():  # the same process still, not one that got its number
                process.kill()

    @property
    def environment(self) -> dict[str, str]:
        bare = {key: value for key, value in os.environ.items() if not key.startswith("IOA_P2P_")}
        return {**bare, "IOA_P2P_HOME": str(self.home.parent), "IOA_P2P_NAME": self.name, "PYTHONPATH": str(ROOT)}


class Mesh:
    """Nodes by name, in the order they were made. Leaving the block ends them all."""

    def __init__(self, folder: Path, name: str = "demo") -> None:
        self.folder = folder
        self.nodes: dict[str, MeshNode] = {}
        self._name = name

    def __enter__(self) -> "Mesh":
        return self

    def __exit__(self, *_: object) -> None:
        together(MeshNode.end, self.nodes.values())

    def make(self, nodes: Mapping[str, Sequence[str]]) -> None:
        """`ioa-p2p init` for each node: name -> arguments."""
        for name in nodes:
            self.nodes[name] = MeshNode(name, self.folder / "nodes" / name)

        def init(name: str) -> None:
            self.nodes[name].id = self.nodes[name].ask("init", "--mesh", self._name, *nodes[name])["node"]

        together(init, nodes)

    def introduce(self, seeds: Sequence[str]) -> None:
        """Write into each config whom it asks first: seeds one another, other nodes one of them, in turns.

        seeds: names of nodes made with a fixed dht.port.
        """
        lines = {name: self.nodes[name].ask("id")["seed"] for name in seeds}
        turns = itertools.cycle(seeds)
        for name, node in self.nodes.items():
            others = [line for seed, line in lines.items() if seed != name]
            node.write("seeds", others if name in seeds else [lines[next(turns)]])

    def by_id(self, node: str) -> MeshNode:
        return next(each for each in self.nodes.values() if each.id == node)

    @property
    def running(self) -> list[MeshNode]:
        return [node for node in self.nodes.values() if node.runs]


def ready(nodes: Iterable[MeshNode]) -> list[dict[str, Any]]:
    """Wait until each says it is ready; their status. Raises CommandError."""
    return together(lambda node: node.ask("status", "--wait", f"{READY_WAIT_S:.0f}"), nodes)


def together(call: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    """`call` for each item, some at a time; results in order; the first error after all are done."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(call, list(items)))


def family(pid: int) -> list[psutil.Process]:
    """A process and everything below it."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def free_ports(count: int) -> list[int]:
    """UDP ports that are free now."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def wait_until(holds: Callable[[], bool], wait_s: float) -> bool:
    """Whether it held before the time was over."""
    deadline = time.monotonic() + wait_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
