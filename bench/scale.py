"""How a lookup grows with the mesh: `python -m bench.scale [--json] [--runs N] [--small]`.

    500 .. 10,000 real machines with filled tables, virtual time ── records put over 8 paths ── reads over 4, walks
        ──> hops, RPCs, success a size; CPU of all, askers and holders together; docs/figures/lookup_scale.svg

A read ends when two holders on different paths agree; its hops are the round trips that it lasted (every datagram
takes the same time). A walk goes on until the k nearest have answered: what a put or a read of nothing costs. Neither
boxes nor the reading of bytes are in these figures (bench.dht measures those); the tables' filling is not either.
"""

import math
import random
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._measure import Figures, arguments, combine, report, say
from ioa_p2p.dht import commands, space
from ioa_p2p.dht.search import Search
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from tests.dht.frames import sealed
from tests.sim.crowd import WALL_S, Crowd
from tests.wire.samples import record

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "lookup_scale.svg"
TRIP_S = 0.08  # below the patience of a node that knows nothing yet
SUCCESS_BAR, SPEED_BAR, RSS_BAR_MB = 0.99, 400, 1_536


@dataclass(frozen=True)
class Size:
    nodes: tuple[int, ...] = (500, 1_500, 5_000, 10_000)
    records: int = 50
    reads: int = 500
    walks: int = 100


SMALL = Size((100, 300), 10, 40, 10)


def main() -> None:
    wanted = arguments("How a lookup grows with the mesh.")
    size = SMALL if wanted.small else Size()
    figures: Figures = {}
    for nodes in size.nodes:
        say(f"{nodes} nodes")
        mesh = Mesh(nodes, size.records)
        runs = [measure(mesh, size) for _ in range(wanted.runs)]
        figures |= {f"{name}_{nodes}": value for name, value in combine(runs, {"success": min}).items()}
    largest = size.nodes[-1]
    figures["success"] = min(figures[f"success_{nodes}"] for nodes in size.nodes)
    for name in ("lookups_per_cpu_s", "walks_per_cpu_s"):
        figures[name] = figures[f"{name}_{largest}"]
    figures["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if not wanted.small:
        draw(figures, size.nodes)
    bars = {
        f"success >= {SUCCESS_BAR}": figures["success"] >= SUCCESS_BAR,
        f"lookups_per_cpu_s >= {SPEED_BAR}": figures["lookups_per_cpu_s"] >= SPEED_BAR,
        f"rss_mb <= {RSS_BAR_MB}": figures["rss_mb"] <= RSS_BAR_MB,
    }
    report(figures, bars, runs=wanted.runs, as_json=wanted.json)


class Mesh:
    """A crowd whose every node is made, and the records put into it: (owner's contact, agent)."""

    def __init__(self, nodes: int, records: int) -> None:
        self.crowd = Crowd(nodes, nodes, delay_s=(TRIP_S / 2, TRIP_S / 2))
        self.dice = random.Random(nodes)
        for contact in self.crowd.contacts:
            self.crowd.node(contact)
        self.agents = [self._publish(f"agent-{number}") for number in range(records)]

    def _publish(self, agent: str) -> tuple[Contact, str]:
        owner = self.dice.randrange(len(self.crowd.contacts))
        key = self.crowd.keys[owner]
        raw = sealed(record(key, agent=agent, issued=int(WALL_S), ttl=7_200), key)
        put = self.crowd.ask(self.crowd.contacts[owner], lambda request: commands.PutFrame(request, raw))
        assert put.ok, "every put in a healthy mesh succeeds"
        return self.crowd.contacts[owner], agent

    def read(self) -> tuple[bool, int]:
        """Found or not, and RPCs."""
        asker, (owner, agent) = self.dice.choice(self.crowd.contacts), self.dice.choice(self.agents)
        found = self.crowd.ask(asker, lambda request: commands.SearchRecord(request, owner.key, agent))
        return found.record is not None, found.asked

    def walk(self) -> tuple[bool, int]:
        """Whether it found all of the nearest, as many as one answer can name, and RPCs."""
        ended: list[Search] = []
        asker = self.dice.choice(self.crowd.contacts)
        machine = self.crowd.node(asker)
        key = self.dice.randbytes(limits.DHT_ID_BYTES)
        search = Search(machine._means, key, lambda now, search: ended.append(search), limits.DHT_PATHS_READ)
        search.start(self.crowd.now)
        self.crowd.carry_out(asker, machine._effects())
        self.crowd.run_until(lambda: bool(ended))
        nearest = {*self.crowd.places.nearest(space.at(key), limits.DHT_CONTACTS_MAX)} - {asker}
        return nearest <= {*search.holders}, search.lookup.calls


def measure(mesh: Mesh, size: Size) -> Figures:
    reads, walks = repeat(mesh, mesh.read, size.reads), repeat(mesh, mesh.walk, size.walks)
    return {
        "hops": reads.trips,
        "rpcs": reads.rpcs,
        "success": min(reads.success, walks.success),
        "lookups_per_cpu_s": reads.per_cpu_s,
        "walk_hops": walks.trips,
        "walk_rpcs": walks.rpcs,
        "walks_per_cpu_s": walks.per_cpu_s,
    }


@dataclass(frozen=True)
class Repeated:
    """Means, a lookup. trips: round trips it lasted."""

    success: float
    rpcs: float
    trips: float
    per_cpu_s: float


def repeat(mesh: Mesh, look: Callable[[], tuple[bool, int]], times: int) -> Repeated:
    began_s, cpu_s = mesh.crowd.time_s, time.process_time()
    found = [look() for _ in range(times)]
    trips = (mesh.crowd.time_s - began_s) / TRIP_S / times
    cpu_s = time.process_time() - cpu_s
    success = sum(good for good, _ in found) / times
    return Repeated(success, statistics.mean(rpcs for _, rpcs in found), trips, times / cpu_s)


def draw(figures: Figures, nodes: tuple[int, ...]) -> None:
    """Hops and RPCs against the number of nodes, and the line a log N + b through each."""
    from matplotlib import pyplot, rcParams

    rcParams["svg.hashsalt"] = "lookup_scale"  # the same figures give the same file
    _, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axes, unit, parts in (
        (left, "round trips", {"read": "hops", "walk": "walk_hops"}),
        (right, "requests", {"read": "rpcs", "walk": "walk_rpcs"}),
    ):
        for name, field in parts.items():
            _curve(axes, name, nodes, [figures[f"{field}_{count}"] for count in nodes])
        axes.set(xscale="log", xlabel="nodes", ylabel=f"{unit} a lookup", ylim=(0, None))
        axes.set_xticks(nodes, [f"{count:,}" for count in nodes], minor=False)
        axes.minorticks_off()
        axes.legend()
    FIGURE.parent.mkdir(exist_ok=True)
    pyplot.savefig(FIGURE, metadata={"Date": None})


def _curve(axes: Any, name: str, nodes: tuple[int, ...], values: list[float]) -> None:
    slope, start = statistics.linear_regression([math.log2(count) for count in nodes], values)
    (dots,) = axes.plot(nodes, values, "o", label=f"{name}: {slope:.2f} log2 N {start:+.1f}")
    axes.plot(nodes, [slope * math.log2(count) + start for count in nodes], color=dots.get_color())


if __name__ == "__main__":
    main()
