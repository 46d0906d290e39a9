"""A small mesh: joining, publishing, finding."""

from ioa_p2p.dht import events
from ioa_p2p.dht.commands import Publish
from ioa_p2p.wire import limits
from tests.dht.mesh import Mesh, card


def test_every_node_of_a_small_mesh_becomes_ready_and_knows_all_others():
    mesh = Mesh(1, 7)
    mesh.join_all()
    assert all(len(mesh.events_of(contact, events.Ready)) == 1 for contact in mesh.contacts)
    assert all(len(mesh.machine(contact).contacts) == 6 for contact in mesh.contacts)


def test_a_published_agent_is_found_by_record_and_by_pointer():
    mesh = Mesh(2, 7)
    mesh.join_all()
    published = mesh.publish(mesh.contacts[3], card("stat", "stats.outliers"))
    assert published.holders == 6
    assert published.confirmed >= 5
    assert published.keys == 4
    found = mesh.find(mesh.contacts[6], mesh.contacts[3], "stat")
    assert found.record is not None
    assert found.record.skills == ("stats.outliers",)
    pointers = mesh.pointers(mesh.contacts[5], "skill:stats.outliers").pointers
    assert [pointer.node for pointer in pointers] == [mesh.contacts[3].key]


def test_publishing_at_once_with_no_peers_is_queued_and_done_when_somebody_comes():
    mesh = Mesh(3, 2)
    mesh.world.command(mesh.contacts[1], Publish(card("early", "x.y")))
    assert mesh.events_of(mesh.contacts[1], events.Queued) == [events.Queued("early", "no-peers")]
    mesh.join(mesh.contacts[1], mesh.contacts[:1])
    assert mesh.world.run(10, until=lambda: bool(mesh.events_of(mesh.contacts[1], events.Published)))
    assert mesh.find(mesh.contacts[0], mesh.contacts[1], "early").record is not None


def test_a_lookup_ends_in_time_when_all_others_take_the_request_and_say_nothing():
    """Public failure 3."""
    mesh = Mesh(4, 7)
    mesh.join_all()
    mesh.publish(mesh.contacts[3], card("stat", "stats.outliers"))
    for contact in mesh.contacts[1:]:
        mesh.world.freeze(contact)
    began_s = mesh.world.time_s
    assert mesh.find(mesh.contacts[0], mesh.contacts[5], "nobody").record is None
    assert mesh.pointers(mesh.contacts[0], "word:nothing").pointers == ()
    assert mesh.world.time_s - began_s <= 2 * limits.DHT_LOOKUP_S


def test_one_silent_holder_does_not_hide_what_the_others_hold():
    """Public failure 3."""
    for silent in range(1, 7):
        mesh = Mesh(5, 8)
        mesh.join_all()
        mesh.publish(mesh.contacts[7], card("stat", "stats.outliers"))
        mesh.world.freeze(mesh.contacts[silent])
        asker = mesh.contacts[0]
        assert mesh.find(asker, mesh.contacts[7], "stat").record is not None
        assert [one.node for one in mesh.pointers(asker, "skill:stats.outliers").pointers] == [mesh.contacts[7].key]
