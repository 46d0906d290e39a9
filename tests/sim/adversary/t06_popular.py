"""T06: ten thousand providers of one keyword. Nobody holds too much, and a reader sees some of all of them.

a mesh of machines <── a crowd publishes, in four quarters, each publisher in a subnet of its own
                   <── a few nodes of the mesh publish too      ── readers ──> distinct, live, of every quarter
"""

import random
import statistics
from collections import Counter

from ioa_p2p.dht import events
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.records import Pointer
from tests.dht.mesh import Mesh, card
from tests.sim.adversary.crowd import Crowd, Publisher
from tests.sim.world import Weather

BARS = {
    "popular_key_items_max": "<= 1024",
    "popular_key_bytes_max": "<= 393216",
    "popular_max_median_load": "<= 4",
    "popular_distinct": ">= 32",
    "popular_read_s": "<= 3",
    "popular_quartiles": "== 4",
    "popular_quartile_share_min": ">= 0.1",
    "popular_told_split": ">= 1",
}

TEXT = "word:chart"
DEAD_SHARE = 0.3  # of the publishers have crashed since: their pointers live on for a while
OWN = 3  # nodes of the mesh that publish under the keyword as well, as real machines
READERS = 5


def run(short: bool) -> dict[str, float]:
    nodes, providers = (70, 1_100) if short else (600, 10_000)
    mesh = Mesh(6, nodes, Weather(loss=0.01, delay_s=(0.01, 0.08)))
    mesh.join_all(seeds=3, over_s=10)
    crowd, publishers = Crowd(mesh, TEXT), [_publisher(number) for number in range(providers)]
    for publisher in publishers:
        crowd.publish(publisher)
    # Those who came before the key was crowded learn of it when they issue anew.
    for publisher in publishers[: limits.STORE_KEY_ITEMS_MAX : 4 if short else 1]:
        crowd.publish(publisher, issue=1)
    told = [mesh.publish(owner, card("own", description="chart"), wait_s=60) for owner in mesh.contacts[10 : 10 + OWN]]
    return {
        **_holdings(mesh),
        **_reads(mesh, publishers),
        "popular_told_split": float(all(each is not None and TEXT in each.split for each in told)),
    }


def _publisher(number: int) -> Publisher:
    host = f"{20 + number // 62_500}.{number // 250 % 250}.{number % 250}.1"
    return Publisher(number, host, host)


def _holdings(mesh: Mesh) -> dict[str, float]:
    """What the fullest holder has under one DHT key, and how the shards' load is spread over those who have any."""
    items, sizes, loads = Counter[bytes](), Counter[bytes](), list[int]()
    for contact in mesh.contacts:
        held = [one for one in mesh.machine(contact).held if isinstance(one.body, Pointer)]
        ours = [one for one in held if one.body.index == ids.index_key(TEXT)]
        loads.append(sum(one.body.depth == 4 for one in ours))
        for one in ours:
            items[contact.key + one.key] += 1
            sizes[contact.key + one.key] += len(one.raw)
    return {
        "popular_key_items_max": max(items.values()),
        "popular_key_bytes_max": max(sizes.values()),
        "popular_max_median_load": max(loads) / statistics.median(load for load in loads if load),
    }


def _reads(mesh: Mesh, publishers: list[Publisher]) -> dict[str, float]:
    """The worst of some readers."""
    dice = random.Random(6)
    numbers = {publisher.key.node: publisher.number for publisher in publishers}
    alive = {node for node in numbers if dice.random() >= DEAD_SHARE}
    distinct, seconds, shares, rpcs = list[int](), list[float](), list[list[float]](), list[int]()
    for reader in dice.sample(mesh.contacts, READERS):
        began_s = mesh.world.time_s
        found: events.PointersFound = mesh.pointers(reader, TEXT)
        seconds.append(mesh.world.time_s - began_s)
        live = [numbers[pointer.node] for pointer in found.pointers if pointer.node in alive]
        distinct.append(len(set(live)))
        rpcs.append(found.rpcs)
        quarters = Counter(4 * number // len(publishers) for number in live)
        shares.append([quarters[quarter] / max(1, len(live)) for quarter in range(4)])
    return {
        "popular_distinct": min(distinct),
        "popular_read_s": max(seconds),
        "popular_read_rpcs": statistics.median(rpcs),
        "popular_quartiles": min(sum(share > 0 for share in each) for each in shares),
        "popular_quartile_share_min": min(min(each) for each in shares),
    }
