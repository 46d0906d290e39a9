"""T02: all seeds die after the join, then half of the nodes start again from their disks. 100 worlds.

join ── peers saved ── seeds crash ── half restart at once ──> each is in the mesh again
"""

import random

from ioa_p2p.wire import limits
from tests.dht.mesh import Mesh
from tests.sim.adversary.islands import islands

BARS = {"islands_t02": "== 0", "rejoined": ">= 1", "rejoin_s_max": "<= 60"}

NODES, SEEDS = 24, 3
REJOIN_S = 60


def run(short: bool) -> dict[str, float]:
    apart, times = 0, list[float]()
    for seed in range(4 if short else 100):
        more, found = _play(seed)
        apart += more
        times += found
    back = [second for second in times if second <= REJOIN_S]
    return {
        "islands_t02": apart,
        "rejoined": len(back) / len(times),
        "rejoin_s_max": max(times),
    }


def _play(seed: int) -> tuple[int, list[float]]:
    """(islands at the end, seconds until each restarted node knew somebody who lives)."""
    mesh = Mesh(seed, NODES)
    mesh.join_all(seeds=SEEDS, settle_s=2 * limits.DHT_SAVE_PEERS_S)
    for contact in mesh.contacts[:SEEDS]:
        mesh.world.crash(contact)
    others = mesh.contacts[SEEDS:]
    restarted = random.Random(f"t02 {seed}").sample(others, len(others) // 2)
    began_s, back = mesh.world.time_s, dict[bytes, float]()
    for contact in restarted:
        mesh.world.restart(contact)
        mesh.join(contact, mesh.contacts[:SEEDS])
    alive = {contact.key for contact in mesh.alive()}
    while mesh.world.time_s < began_s + REJOIN_S:
        mesh.world.run(0.5)
        for contact in restarted:
            if contact.key not in back and alive & {one.key for one in mesh.machine(contact).contacts}:
                back[contact.key] = mesh.world.time_s - began_s
    return islands(mesh), [back.get(contact.key, float("inf")) for contact in restarted]
