"""T03: eight nodes start at once, all with the same two seeds, and the seeds start last. 100 worlds.

8 nodes ping silent seeds, ever less often ── seeds start ──> one mesh within 30 s
"""

import random

from tests.dht.mesh import Mesh
from tests.sim.adversary.islands import islands

BARS = {"islands_t03": "== 0", "cold_start_s_max": "<= 30"}

NODES, SEEDS = 8, 2
LAST_S = 20.0  # the longest that the seeds are behind
ONE_S = 30


def run(short: bool) -> dict[str, float]:
    plays = [_play(seed) for seed in range(10 if short else 100)]
    return {"islands_t03": sum(apart for apart, _ in plays), "cold_start_s_max": max(second for _, second in plays)}


def _play(seed: int) -> tuple[int, float]:
    """(islands 30 s after the seeds' start, seconds until there was none)."""
    mesh, dice = Mesh(seed, SEEDS + NODES), random.Random(f"t03 {seed}")
    seeds = mesh.contacts[:SEEDS]
    for contact in seeds:
        mesh.world.crash(contact)
    for contact in mesh.contacts[SEEDS:]:
        mesh.join(contact, seeds)
    mesh.world.run(dice.uniform(0, LAST_S))
    for contact in seeds:
        mesh.world.restart(contact)
        mesh.join(contact, seeds)
    began_s, one_s = mesh.world.time_s, float("inf")
    while mesh.world.time_s < began_s + ONE_S:
        mesh.world.run(0.5)
        if one_s == float("inf") and not islands(mesh):
            one_s = mesh.world.time_s - began_s
    return islands(mesh), one_s
