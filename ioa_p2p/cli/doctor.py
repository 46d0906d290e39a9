"""`ioa-p2p doctor`: what is wrong here, and the way out."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.errors import IoaError

if TYPE_CHECKING:
    from ioa_p2p.node.config import Config

DISK_BYTES_MIN = 100 * 1024 * 1024  # below, a database may fail to grow
WALL_S_MIN = 1_750_000_000  # this program did not exist before: an earlier clock is wrong

SHARED = ("disk",)  # checks that command and node both make


class Check(NamedTuple):
    """One finding. hint: the way out, when not ok."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


@node_command()
def command(here: Here) -> int:
    """Look for what is wrong. Configuration, key, lock, ports, clock, disk, agents, seeds, neighbours."""
    checks = list(_once([*_at_rest(here), *_running(here)]))
    for check in checks:
        here.out.line(f"{'ok   ' if check.ok else 'WRONG'}  {check.name:8}  {check.detail}")
        if check.hint and not check.ok:
            here.out.line(f"                 -> {check.hint}")
    healthy = all(check.ok for check in checks)
    here.out.result({"healthy": healthy, "checks": [check._asdict() for check in checks]})
    return 0 if healthy else 1


def _at_rest(here: Here) -> Iterator[Check]:
    """What can be seen without the node."""
    from ioa_p2p.node.config import load

    yield _clock()
    yield _disk(here)
    yield _guarded("key", lambda: (here.home.read_key(), str(here.home.key))[1])
    try:
        config = load(here.home, {}, os.environ)
    except IoaError as fault:
        yield Check("config", False, str(fault), fault.hint)
        return
    yield Check("config", True, str(here.home.config))
    yield from _agents(config)
    yield from (_name(seed.host) for seed in config.seeds)
    if here.home.holder() is None:
        yield from _ports(config)


def _running(here: Here) -> Iterator[Check]:
    """What the running node itself finds."""
    holder = here.home.holder()
    if holder is None:
        yield Check("node", False, "does not run", "start it: `ioa-p2p up --detach`")
        return
    try:
        answer = here.ask("doctor", wait_s=20.0)
    except IoaError as fault:
        yield Check("node", False, f"process {holder} does not answer: {fault}", "see `ioa-p2p logs`")
        return
    yield Check("node", True, f"runs as process {holder}")
    yield from (_heard(check) for check in answer["checks"])


def _once(checks: list[Check]) -> Iterator[Check]:
    """What both of us looked at, such as the disk, is told once unless we differ."""
    told = set[tuple[str, bool]]()
    for check in checks:
        if check.name not in SHARED or (check.name, check.ok) not in told:
            yield check
        told.add((check.name, check.ok))


def _heard(check: dict[str, Any]) -> Check:
    return Check(check["name"], check["ok"], check["detail"], check.get("hint", ""))


def _guarded(name: str, find: Callable[[], str]) -> Check:
    try:
        return Check(name, True, find())
    except IoaError as fault:
        return Check(name, False, str(fault), fault.hint)


def _clock() -> Check:
    now = time.time()
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    return Check("clock", now > WALL_S_MIN, text, "set the clock: records of a wrong time are refused by others")


def _disk(here: Here) -> Check:
    folder = here.home.data_folder
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    return Check("disk", free > DISK_BYTES_MIN, f"{free // 1024**2} MiB free at {folder}", "make room")


def _agents(config: "Config") -> Iterator[Check]:
    """Each agent's adapter must be known by name; loading it is the node's matter."""
    from importlib.metadata import entry_points

    known = {entry.name for entry in entry_points(group="ioa_p2p.adapters")} | {"python", "process"}
    for agent in config.agents.values():
        hint = "known here: " + ", ".join(sorted(known))
        yield Check("agent", agent.adapter in known, f"{agent.name} by adapter {agent.adapter!r}", hint)


def _name(host: str) -> Check:
    """A seed's host must have an address."""
    import socket

    try:
        socket.getaddrinfo(host, None)
    except OSError as fault:
        return Check("seed", False, f"{host}: {fault}", "correct the seed, or the name service")
    return Check("seed", True, f"{host} has an address")


def _ports(config: "Config") -> Iterator[Check]:
    """Ports the node will want must be free while it does not run."""
    import socket

    for key, kind, host, port in (
        ("dht", socket.SOCK_DGRAM, config.dht_host, config.dht_port),
        ("link", socket.SOCK_STREAM, config.link_host, config.link_port),
    ):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(kind is socket.SOCK_STREAM))
            try:
                probe.bind((host, port))
            except OSError as fault:
                origin = config.origins[f"{key}.port"]
                yield Check("port", False, f"{key} {host}:{port}: {fault.strerror}", f"change {key}.port ({origin})")
            else:
                yield Check("port", True, f"{key} {host}:{port or 'any'} can be had")
