"""T04: of 1,500 nodes a part are liars who know each other. Is a record that honest nodes hold still found?

    writer ── put over 8 paths ──> the nearest: the honest keep it, liars drop it ── reader ── 4 or 8 paths ──> found?

Each record meets one kind of liars, in turn: they name their own who are nearest to the target (16 of their 24
nearest, so that many liars fill a shortlist), name the honest at a wrong address, add a forged record, answer nothing
useful, are silent, or mix all that.
Reach is the share of reads that got the record; at most one of 1,000 may fail at 20 %. `stale_20_*` is what liars
gain who replay an older record that its owner signed: a read that ends early may believe two of them, a thorough one
does not.
"""

import random
from collections.abc import Callable

from ioa_p2p.dht import commands, space
from ioa_p2p.wire.dht import pack_contact
from tests.dht.frames import forged, sealed
from tests.sim.crowd import WALL_S, Crowd, Places
from tests.sim.liar import Liar, Search, Told
from tests.wire.samples import MALLORY, record

BARS = {"reach_20_d4": ">= 0.999", "reach_40_d4": ">= 0.97", "reach_40_d8": ">= 0.995"}
KINDS = ("closer", "elsewhere", "forged", "empty", "silent", "mixed")
NEAREST = 24


class Plot:
    """What all liars of a crowd do now: kind, and an older record that they may replay."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(f"plot {seed}")
        self.kind = "closer"
        self.old = b""
        self.forged = b""
        self.places = Places(())
        self.everybody = Places(())

    def answer(self, target: int) -> Told | None:
        """(frames, contacts), or None for silence."""
        kind = self.dice.choice(KINDS[:-1]) if self.kind == "mixed" else self.kind
        if kind == "silent":
            return None
        if kind == "empty":
            return (), ()
        named = self.dice.sample(self.places.nearest(target, NEAREST), 16)
        if kind == "elsewhere":
            named = [one._replace(host=named[0].host) for one in self.everybody.nearest(target, 16)]
        frames = {"forged": (self.forged,), "stale": (self.old,)}.get(kind, ())
        return frames, tuple(pack_contact(contact) for contact in named[: 8 if frames else 16])


class Router(Liar):
    """Answers as the plot wants it, proves its address like anybody, and keeps nothing."""

    def __init__(self, plot: Plot) -> None:
        self._plot = plot

    def answer(self, search: Search) -> Told | None:
        return self._plot.answer(space.at(search.key))


class Mesh:
    """A crowd of `size` with a `share` of liars, drawn by chance."""

    def __init__(self, seed: int, size: int, share: float) -> None:
        self.plot = Plot(seed)
        self.dice = random.Random(f"reads {seed}")
        self.crowd = Crowd(seed, size, liars=lambda contact: Router(self.plot) if contact in self._liars else None)
        chosen = self.dice.sample(self.crowd.contacts, int(share * size))
        self._liars = set(chosen)
        self.plot.places, self.plot.everybody = Places(chosen), self.crowd.places
        self.honest = [number for number, contact in enumerate(self.crowd.contacts) if contact not in self._liars]

    def publish(self, agent: str) -> tuple[int, bytes, bytes]:
        """An honest owner puts a record. Its number, the frame, and an older one."""
        owner = self.dice.choice(self.honest)
        key = self.crowd.keys[owner]
        old, new = (sealed(record(key, agent=agent, seq=seq, issued=int(WALL_S), ttl=7_200), key) for seq in (7, 8))
        self.plot.forged = forged(record(key, agent=agent, seq=9, issued=int(WALL_S), ttl=7_200), key, MALLORY)
        self.plot.old = old
        self.crowd.ask(self.crowd.contacts[owner], lambda request: commands.PutFrame(request, new))
        return owner, new, old

    def read(self, owner: int, agent: str, thorough: bool) -> int | None:
        """The seq that a random honest node finds."""
        asker = self.crowd.contacts[self.dice.choice(self.honest)]
        node = self.crowd.contacts[owner].key
        found = self.crowd.ask(asker, lambda request: commands.SearchRecord(request, node, agent, thorough))
        return found.record.seq if found.record is not None else None


def run(short: bool) -> dict[str, float]:
    size, records, reads = (700, 12, 8) if short else (1_500, 150, 20)
    figures: dict[str, float] = {}
    for share in (20, 40):
        mesh = Mesh(share, size, share / 100)
        for name, thorough in (("d4", False), ("d8", True)):
            figures[f"reach_{share}_{name}"] = reach(
                mesh, records, reads, thorough, lambda number: KINDS[number % len(KINDS)]
            )
        if share == 20:
            for name, thorough in (("d4", False), ("d8", True)):
                newest = reach(mesh, max(10, records // 10), reads, thorough, lambda _: "stale")
                figures[f"stale_{share}_{name}"] = 1 - newest
    return figures


def reach(mesh: Mesh, records: int, reads: int, thorough: bool, kind_of: Callable[[int], str]) -> float:
    """The share of reads that found the newest record."""
    good = 0
    for number in range(records):
        mesh.plot.kind = kind_of(number)
        agent = f"agent-{number}-{mesh.plot.kind}-{'d8' if thorough else 'd4'}"
        owner, _, _ = mesh.publish(agent)
        good += sum(mesh.read(owner, agent, thorough) == 8 for _ in range(reads))
    return good / (records * reads)
