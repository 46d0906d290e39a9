"""The first node of a mesh knows no seed; others come to it at any time."""

from ioa_p2p.dht import events
from ioa_p2p.dht.commands import Join, Publish
from tests.dht.mesh import Mesh, card


def test_a_first_node_that_is_heard_of_before_it_joins_becomes_ready_all_the_same():
    mesh = Mesh(4, 2)
    first, second = mesh.contacts
    mesh.join(second, [first])
    mesh.world.run(5)
    assert mesh.events_of(first, events.Ready) == []
    mesh.world.command(first, Join(()))
    assert mesh.world.run(15, until=lambda: bool(mesh.events_of(first, events.Ready)))


def test_a_node_that_was_alone_publishes_as_soon_as_the_first_peer_comes():
    mesh = Mesh(4, 2)
    first, second = mesh.contacts
    mesh.world.command(first, Publish(card("stat", "stats.outliers")))
    mesh.join(first, [])
    mesh.world.run(60)
    assert mesh.events_of(first, events.Published) == []
    mesh.join(second, [first])
    assert mesh.world.run(5, until=lambda: bool(mesh.events_of(first, events.Published)))


def test_a_put_that_waits_for_its_next_try_is_tried_as_soon_as_somebody_comes_back():
    mesh = Mesh(5, 3)
    first, second, third = mesh.contacts
    mesh.join(first, [])
    mesh.join(second, [first])
    mesh.world.run(20)
    mesh.world.weather.loss = 1.0
    mesh.world.command(first, Publish(card("stat", "stats.outliers")))
    mesh.world.run(200)
    mesh.world.weather.loss = 0.0
    mesh.join(third, [first])
    assert mesh.world.run(5, until=lambda: bool(mesh.events_of(first, events.Published)))
