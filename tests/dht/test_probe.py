"""The dial check: who is there says so, and who is not is not offered."""

import pytest

from ioa_p2p.dht import commands, events
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Ping, Pong
from tests.dht.mesh import Mesh
from tests.dht.test_machine import BOBS, HOME, Driven, emitted, sends
from tests.wire.samples import fault_of


def test_a_node_that_answers_is_there():
    alice = Driven()
    ping = sends(alice.command(commands.Probe(7, BOBS)), Ping)[0].message
    assert emitted(alice.hear(BOBS, Pong(ping.id, False, bytes(8), HOME))) == [events.Probed(7, True)]
    assert [effect for _, effect in alice.run(5) if emitted([effect])] != [events.Probed(7, False)]


def test_a_lost_ping_is_no_proof_and_silence_to_three_is():
    alice = Driven()
    alice.command(commands.Probe(7, BOBS))
    happened = alice.run(10)
    assert len([1 for _, effect in happened if sends([effect], Ping)]) == limits.DHT_STORE_TRIES - 1
    assert [(event, second <= 3) for second, effect in happened for event in emitted([effect])] == [
        (events.Probed(7, False), True)
    ]


@pytest.mark.parametrize("there", [True, False])
def test_a_late_answer_is_told_once(there: bool):
    alice = Driven()
    first = sends(alice.command(commands.Probe(7, BOBS)), Ping)[0].message
    alice.run(0.3)
    effects = alice.hear(BOBS, Pong(first.id, False, bytes(8), HOME)) if there else []
    told = emitted(effects) + [event for _, effect in alice.run(10) for event in emitted([effect])]
    assert [event for event in told if isinstance(event, events.Probed)] == [events.Probed(7, there)]


def test_in_a_mesh_the_crashed_are_told_from_the_living():
    mesh = Mesh(33, 4)
    mesh.join_all()
    mesh.world.crash(mesh.contacts[2])
    asked = [mesh.ask(mesh.contacts[0], lambda request, to=to: commands.Probe(request, to)) for to in mesh.contacts[2:]]
    assert [one.there for one in asked] == [False, True]


@pytest.mark.parametrize("seen", [bytes(6), bytes(7), b"\xe0\0\0\x01\x10\x00"], ids=["port 0", "odd size", "multicast"])
def test_a_pong_that_sees_us_nowhere_is_none_and_nobody_waits_for_ever(seen: bytes):
    alice = Driven()
    ping = sends(alice.command(commands.Probe(7, BOBS)), Ping)[0].message
    assert fault_of(alice.hear, BOBS, Pong(ping.id, False, bytes(8), seen)) == "bad-endpoint"
    told = [event for _, effect in alice.run(10) for event in emitted([effect])]
    assert [event for event in told if isinstance(event, events.Probed)] == [events.Probed(7, False)]
