"""T08: poison. Ten thousand fake pointers from twenty subnets against five hundred honest ones under one keyword.

    a mesh of machines <── half of the flood, then the honest, then the other half
                       ── readers ──> short lists: how much of them is honest
                       ── the record of an agent on the allow-list ──> always found

A fake names any address it likes; only who holds it knew where it came from. That trusted agents come first and that
nobody is tasked before a probe is shown where agents are ranked.
"""

import random
import statistics
from collections.abc import Iterator

from ioa_p2p.dht import commands
from ioa_p2p.dht.index import cell_key
from tests.dht.mesh import Mesh, card
from tests.sim.adversary.crowd import Crowd, Publisher
from tests.sim.world import Weather

BARS = {
    "poison_honest_share": ">= 0.5",
    "poison_small_honest_share": ">= 0.5",
    "poison_allowed_found": ">= 1",
}

SUBNETS = 20
WANTED = 32  # a short list
READERS = 5
FAKE = 1_000_000  # fakes are numbered from here on


def run(short: bool) -> dict[str, float]:
    nodes, fakes, honest = (40, 1_000, 125) if short else (500, 10_000, 500)
    mesh = Mesh(8, nodes, Weather(loss=0.01, delay_s=(0.01, 0.08)))
    mesh.join_all(seeds=3, over_s=10)
    allowed = mesh.contacts[5]
    assert mesh.publish(allowed, card("allowed", description="chart")) is not None
    dice = random.Random(8)
    query = dice.randbytes(64)
    cell = cell_key("model-1", 7)
    _poison(Crowd(mesh, "word:chart"), fakes, honest, dice)
    _poison(Crowd(mesh, "word:rare"), fakes // 8, honest // 2, dice)
    _poison(Crowd(mesh, cell), fakes // 8, honest // 2, dice, query)
    readers = dice.sample(mesh.contacts, READERS)
    found = [mesh.find(reader, allowed, "allowed").record for reader in readers]
    return {
        "poison_honest_share": _honest_share(mesh, readers, "word:chart"),
        "poison_small_honest_share": _honest_share(mesh, readers, "word:rare"),
        "poison_sketch_honest_share": _honest_share(mesh, readers, cell, query),
        "poison_allowed_found": sum(record is not None for record in found) / len(found),
    }


def _poison(crowd: Crowd, fakes: int, honest: int, dice: random.Random, query: bytes = b"") -> None:
    """query: what the fakes' sketches are made for; honest ones have any."""
    flood = list(_fakes(fakes, dice, query))
    for publisher in flood[::2]:
        crowd.publish(publisher)
    for number in range(honest):
        host = f"{30 + number % 150}.{number // 150}.7.1"
        crowd.publish(Publisher(number, host, host, dice.randbytes(64) if query else b""))
    for publisher in flood[1::2]:
        crowd.publish(publisher)


def _fakes(count: int, dice: random.Random, query: bytes) -> Iterator[Publisher]:
    for number in range(count):
        named = f"{dice.randrange(11, 100)}.{dice.randrange(256)}.{dice.randrange(256)}.9"
        yield Publisher(FAKE + number, f"8.8.{number % SUBNETS}.{1 + number // SUBNETS % 250}", named, query)


def _honest_share(mesh: Mesh, readers, text: str, query: bytes = b"") -> float:
    """Median over the readers' short lists."""
    fakes = {Publisher(FAKE + number, "", "").key.node for number in range(10_000)}
    shares = list[float]()
    for reader in readers:
        found = mesh.ask(reader, lambda request: commands.SearchPointers(request, text, False, WANTED, query))
        assert found.pointers
        shares.append(sum(pointer.node not in fakes for pointer in found.pointers) / len(found.pointers))
    return statistics.median(shares)
