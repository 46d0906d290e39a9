"""How dense the mesh is, as a node learns it: whom nobody can fool by ids close to one key."""

from ioa_p2p.dht import space
from ioa_p2p.dht.region import Density
from ioa_p2p.dht.table import Table
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact

OWN = space.position(b"own" + bytes(29))
FAR = 1 << 155


def filled(count: int) -> Table:
    table = Table(OWN)
    for number in range(count):
        table.enter(Contact(ids.blake(b"peer %d" % number), "127.0.0.1", 1_000), 0.0)
    return table


def test_with_fewer_nodes_than_copies_nothing_is_known():
    density = Density(filled(limits.DHT_K - 1))
    density.note(b"key", None)
    assert density.radius == 0


def test_our_own_neighbours_are_a_first_guess_and_close_to_the_truth():
    """1,000 nodes: 20 of them should be in a fiftieth of the space."""
    table = filled(1_000)
    truth = (1 << 160) // 50
    assert truth / 2 < Density(table).radius < 2 * truth
    nearest = table.closest(OWN, limits.DHT_K)
    assert Density(table).radius == nearest[-1].long_id ^ OWN


def test_a_crowd_at_one_key_does_not_move_it():
    density = Density(filled(0))
    for number in range(5):
        density.note(b"key %d" % number, FAR + number)
    before = density.radius
    for _ in range(2 * limits.DHT_REGION_SAMPLES):
        density.note(b"besieged", 1)
    assert FAR <= density.radius <= before


def test_old_samples_are_forgotten():
    density = Density(filled(0))
    for number in range(limits.DHT_REGION_SAMPLES):
        density.note(b"old %d" % number, FAR)
    for number in range(limits.DHT_REGION_SAMPLES):
        density.note(b"new %d" % number, 7)
    assert density.radius == 7


def test_of_two_the_smaller_counts_for_a_mesh_that_grew_since():
    density = Density(filled(0))
    density.note(b"early", FAR)
    density.note(b"late", 9)
    assert density.radius == 9
