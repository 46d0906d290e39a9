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
    checks = [check._replace(hint=here.spelt(check.hint)) for check in _all(here)]
    width = max(len(check.name) for check in checks)
    for check in checks:
        here.out.line(f"{'ok   ' if check.ok else 'WRONG'}  {check.name:{width}}  {check.detail}")
        if check.hint and not check.ok:
            here.out.line(f"{'':{width + 9}}-> {check.hint}")
    healthy = all(check.ok for check in checks)
    here.out.result({"healthy": healthy, "checks": [check._asdict() for check in checks]})
    return 0 if healthy else 1


def _all(here: Here) -> list[Check]:
    try:
        here.home.read_key()
    except IoaError as fault:
        if fault.code == "not-initialised" and here.home.holder() is None:
            return [Check("node", False, str(fault), fault.hint)]
    running = list(_running(here))
    return list(_once([*_at_rest(here, {check.name for check in running}), *running]))


def _at_rest(here: Here, told: set[str]) -> Iterator[Check]:
    """What can be seen without the node. told: names of what it tells itself."""
    from ioa_p2p.node.config import load

    yield _clock()
    yield _disk(here)
    yield _guarded("key", lambda: (here.home.read_key(), str(here.home.key))[1])
    try:
        config = load(here.home, {}, os.environ)
    except IoaError as fault:
        goes_on = "; the node that runs goes on with what it read before" if here.home.holder() is not None else ""
        yield Check("config", False, f"{fault}{goes_on}", fault.hint)
        return
    yield Check("config", True, str(here.home.config))
    is_running = here.home.holder() is not None
    yield from (check for check in _agents(config, is_running) if check.name not in told)
    yield from (_name(seed.host) for seed in config.seeds)
    if not is_running:
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


def _agents(config: "Config", is_running: bool) -> Iterator[Check]:
    """Each agent's adapter must be known by name, and its file be there; loading it is the node's matter. A node that
    runs has looked for the files itself, from the folder in which it was started."""
    from importlib.metadata import entry_points

    from ioa_p2p.adapters.python import missing_file

    known = {entry.name for entry in entry_points(group="ioa_p2p.adapters")} | {"python", "process"}
    for agent in config.agents.values():
        name = f"agent {agent.name}"
        missing = missing_file(agent.options) if agent.adapter == "python" and not is_running else None
        if agent.adapter not in known:
            hint = "known here: " + ", ".join(sorted(known))
            yield Check(name, False, f"unknown adapter {agent.adapter!r}", hint)
        elif missing is not None:
            yield Check(name, False, f"no such file: {missing}", f"correct target in [agents.{agent.name}]")
        else:
            yield Check(name, True, f"by adapter {agent.adapter!r}")


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
