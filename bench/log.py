"""`./dev bench log [--json] [--runs N] [--small]`: what a team's talk costs as it grows, and who was away gets it.

    ten processes say 10,000 lines of 1 KiB ──> CPU of the first and of the last thousand     cpu_growth
    one goes away, nine say 5,000 ──> it comes back: seconds, bytes over bytes of entries     catch_up_*
    three real nodes, one long task, nobody talks ──> what the busiest disk is given          idle_disk_mb_day

A line is said, signed, chained, durable at ten members and told to nine; CPU is that of all processes. A spell before
the first thousand lets imports and caches settle.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench._fleet import Fleet
from bench._log_member import LogMember
from bench._measure import Figures, arguments, combine, report, say
from bench.failover import allow_each_other
from examples.mesh import ROOT, Mesh, MeshNode, free_ports, ready, wait_until

DAY_S = 86_400.0
STILL_S = 10.0  # without a delivery for so long a spell has ended short
GOAL = "wait and rest for an hour"
WAIT_S = 60.0


@dataclass(frozen=True)
class Size:
    """lines: of one of ten equal spells, by all members together. missed: lines that one member was away for."""

    members: int = 10
    lines: int = 1_000
    missed: int = 5_000
    rest_s: float = 60.0


SMALL = Size(members=4, lines=80, missed=300, rest_s=5.0)


def run(size: Size) -> Figures:
    with Fleet(LogMember, size.members) as fleet:
        everyone = fleet.all("open")
        fleet.all("join", everyone)
        figures = _growth(fleet, size) | _away(fleet, size, everyone)
    return figures | {"idle_disk_mb_day": _idle_disk_mb_day(size.rest_s)}


def _growth(fleet: Fleet, size: Size) -> Figures:
    everybody = list(range(size.members))
    _spell(fleet, everybody, size.lines // 5)
    cpu_s = [_spell(fleet, everybody, size.lines) for _ in range(10)]
    say("CPU-s of each tenth:", *(f"{one:.2f}" for one in cpu_s))
    return {"cpu_growth": cpu_s[-1] / cpu_s[0], "first_cpu_s": cpu_s[0], "last_cpu_s": cpu_s[-1]}


def _away(fleet: Fleet, size: Size, everyone: list[tuple[bytes, str]]) -> Figures:
    *others, away = range(size.members)
    fleet.one(away, "go_away")
    fleet.some(others, "expect_absent", 1)
    _spell(fleet, others, size.missed)
    missed = size.missed // len(others) * len(others)
    seconds, came_bytes, kept_bytes = fleet.one(away, "come_back", everyone, missed)
    say(f"caught up with {missed} lines in {seconds:.2f} s: {came_bytes} bytes came, {kept_bytes} were kept")
    return {"catch_up_s": seconds, "catch_up_bytes_ratio": came_bytes / max(kept_bytes, 1)}


def _spell(fleet: Fleet, talkers: list[int], lines: int) -> float:
    """So many lines, all talkers at once, as fast as they go; CPU-s until each has told all."""
    each = lines // len(talkers)
    expected = each * len(talkers) * (len(talkers) - 1)
    fleet.some(talkers, "take_figures")
    before = sum(fleet.some(talkers, "cpu_s"))
    fleet.some(talkers, "say", each, 0.0)
    _wait_for(fleet, talkers, expected)
    return sum(fleet.some(talkers, "cpu_s")) - before


def _wait_for(fleet: Fleet, talkers: list[int], expected: int) -> None:
    last, moved = -1, time.monotonic()
    while (delivered := sum(fleet.some(talkers, "delivered_so_far"))) < expected:
        if delivered != last:
            last, moved = delivered, time.monotonic()
        if time.monotonic() - moved > STILL_S:
            raise RuntimeError(f"{delivered} of {expected} deliveries, then nothing for {STILL_S:g} s")
        time.sleep(0.05)


# -- a team at rest


def _idle_disk_mb_day(rest_s: float) -> float:
    """Of three nodes whose team waits for a task: what the one that writes most would write in a day, in MB."""
    with tempfile.TemporaryDirectory(prefix="ioa-") as folder, Mesh(Path(folder), "log") as mesh:
        nodes = _resting_team(mesh, Path(folder))
        before = [_written_bytes(node.pid) for node in nodes]
        time.sleep(rest_s)
        written = [_written_bytes(node.pid) - one for node, one in zip(nodes, before, strict=True)]
    say(f"written in {rest_s:g} s of rest:", *(f"{one} B" for one in written))
    return max(written) / rest_s * DAY_S / 1e6


def _resting_team(mesh: Mesh, folder: Path) -> list[MeshNode]:
    table = folder / "sleeper.toml"
    target = json.dumps(str(ROOT / "bench" / "_sleeper.py"))
    table.write_text(f'[agents.sleeper]\nadapter = "python"\ntarget = {target}\n', encoding="utf-8")
    agent, ports = ["--agent", str(table)], free_ports(2)
    port = [["--set", f"dht.port={number}"] for number in ports]
    mesh.make({"asker": port[0], "one": [*agent, *port[1]], "two": agent})
    allow_each_other(mesh)
    mesh.introduce(["asker", "one"])
    nodes = list(mesh.nodes.values())
    for node in nodes:
        node.start()
    ready(nodes)
    team = nodes[0].ask("ask", GOAL, "--detach", "--timeout", "3600")["team"]
    if not wait_until(lambda: _is_running(nodes[0], team), WAIT_S):
        raise RuntimeError("the team did not begin its task")
    time.sleep(5.0)  # what follows a start ends
    return nodes


def _is_running(node: MeshNode, team: str) -> bool:
    return any(task["state"] == "running" for task in node.ask("task", "list", "--team", team)["tasks"])


def _written_bytes(pid: int) -> int:
    """Given to the disk by a process so far, as the kernel counts it."""
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def main() -> None:
    options = arguments(__doc__.splitlines()[0])
    size = SMALL if options.small else Size()
    f = combine([run(size) for _ in range(options.runs)], {})
    bars = {
        "cpu_growth <= 1.2": f["cpu_growth"] <= 1.2,
        "catch_up_s <= 10": f["catch_up_s"] <= 10.0,
        "catch_up_bytes_ratio <= 1.3": f["catch_up_bytes_ratio"] <= 1.3,
        "idle_disk_mb_day <= 50": f["idle_disk_mb_day"] <= 50.0,
    }
    report(f, bars, runs=options.runs, as_json=options.json)


if __name__ == "__main__":
    main()
