"""The first node of a mesh knows no seed; others come to it at any time."""

from ioa_p2p.dht import events
from ioa_p2p.dht.commands import Join
from tests.dht.mesh import Mesh


def test_a_first_node_that_is_heard_of_before_it_joins_becomes_ready_all_the_same():
    mesh = Mesh(4, 2)
    first, second = mesh.contacts
    mesh.join(second, [first])
    mesh.world.run(5)
    assert mesh.events_of(first, events.Ready) == []
    mesh.world.command(first, Join(()))
    assert mesh.world.run(15, until=lambda: bool(mesh.events_of(first, events.Ready)))
