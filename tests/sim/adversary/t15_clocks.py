"""T15, the DHT's part: 30 % of the clocks ten minutes off either way, one a day ahead, one in 1970.

all publish ── ten minutes are borne ── who is far off says so and publishes nothing ── set right: published
"""

from ioa_p2p.dht import commands, events
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from tests.dht.mesh import Mesh, card

BARS = {
    "clock_usable": ">= 1",
    "clock_refusals": "== 2",
    "clock_said_s": "<= 30",
    "clock_bad_held": "== 0",
    "clock_false_alarms": "== 0",
    "clock_healed": "== 2",
}

WORST = {
    "clock_usable": min,
    "clock_refusals": min,
    "clock_said_s": max,
    "clock_bad_held": max,
    "clock_false_alarms": max,
    "clock_healed": min,
}

NODES = 40
FAR_OFF_S = (86_400.0, -1_800_000_000.0 + 100.0)
SETTLE_S = 40.0


def run(short: bool) -> dict[str, float]:
    """The worst of all worlds."""
    plays = [_play(seed) for seed in range(1 if short else 20)]
    return {name: worst(play[name] for play in plays) for name, worst in WORST.items()}


def _play(seed: int) -> dict[str, float]:
    mesh = Mesh(seed, NODES)
    far, late, early = mesh.contacts[-2:], mesh.contacts[5:11], mesh.contacts[11:17]
    for contacts, offset_s in ((late, -limits.CLOCK_SKEW_S), (early, limits.CLOCK_SKEW_S)):
        for contact in contacts:
            mesh.world.hosts[contact].wall_offset_s = offset_s
    for contact, offset_s in zip(far, FAR_OFF_S, strict=True):
        mesh.world.hosts[contact].wall_offset_s = offset_s
    began_s = mesh.world.time_s
    mesh.join_all(settle_s=0)
    for contact in mesh.contacts:
        mesh.world.command(contact, commands.Publish(card("worker")))
    mesh.world.run(SETTLE_S)
    said_s = [at_s - began_s for at_s, _, event in mesh.world.events if isinstance(event, events.ClockDoubted)]
    refused = [one for one in far if events.Queued("worker", "clock") in mesh.events_of(one, events.Queued)]
    held = [item for one in mesh.contacts if one not in far for item in mesh.machine(one).held]
    borne = [(asker, owner) for asker in mesh.contacts[:3] for owner in late + early]
    usable = [mesh.find(asker, owner, "worker").record is not None for asker, owner in borne]
    return {
        "clock_usable": sum(usable) / len(usable),
        "clock_refusals": len(refused),
        "clock_said_s": max(said_s),
        "clock_bad_held": sum(item.body.node in {one.key for one in far} for item in held),
        "clock_false_alarms": len(said_s) - len(far),
        "clock_healed": sum(_healed(mesh, contact) for contact in far),
    }


def _healed(mesh: Mesh, contact: Contact) -> bool:
    """Whether it publishes by itself once its clock is right."""
    mesh.world.hosts[contact].wall_offset_s = 0.0
    mesh.world.run(SETTLE_S)
    return mesh.find(mesh.contacts[1], contact, "worker").record is not None
