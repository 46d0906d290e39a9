"""A node that is elsewhere: within a minute nobody is given its old place, whatever they ask and whom."""

from collections.abc import Iterator

import pytest

from ioa_p2p.dht import commands, events
from ioa_p2p.dht.records import item_of
from ioa_p2p.effects import Send
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact, DialBack, Found, Ping, Pong, Records, pack_contact, pack_endpoint, unpack_contact
from ioa_p2p.wire.records import AgentRecord
from tests.dht.mesh import Mesh, card
from tests.dht.test_machine import Driven, contact, emitted, sends
from tests.wire.samples import BOB, MALLORY

STATS = card("stat", "stats.outliers")
NEW_ADDRESSES = ("/ip4/127.0.0.1/tcp/2",)
SIZE = 40


class Given:
    """Every old place of a node that anybody hands to anybody, and when."""

    def __init__(self, mesh: Mesh, moved: Contact) -> None:
        self.moved = moved
        self.times: list[float] = []
        mesh.world.on_send.append(self._look)

    def _look(self, world, source, target, message) -> None:
        if isinstance(message, Found) and any(unpack_contact(one) == self.moved for one in message.contacts):
            self.times.append(world.time_s)
        if isinstance(message, Found | Records):
            for raw in message.frames:
                body = item_of(raw).body
                if body.node != self.moved.key:
                    continue
                endpoint = body.endpoint if isinstance(body, AgentRecord) else body.endpoint[-2:]
                if endpoint in (f"127.0.0.1:{self.moved.port}", self.moved.port.to_bytes(2)):
                    self.times.append(world.time_s)


def everybody_asks(mesh: Mesh, owner: Contact) -> Iterator[tuple[events.RecordFound, events.PointersFound]]:
    for asker in mesh.contacts:
        yield mesh.find(asker, owner, "stat"), mesh.pointers(asker, "skill:stats.outliers")


def knowers(mesh: Mesh, key: bytes) -> set[Contact]:
    """The endpoints under which anybody knows this node."""
    return {one for other in mesh.contacts for one in mesh.machine(other).contacts if one.key == key}


@pytest.fixture
def mesh() -> Mesh:
    """Linked in a ring, so that directories are compared too."""
    made = Mesh(41, SIZE)
    made.join_all()
    for number, one in enumerate(made.contacts):
        made.link(one, made.contacts[(number + 1) % SIZE])
    return made


@pytest.mark.parametrize("told", [True, False], ids=["told", "noticed by itself"])
def test_a_minute_after_a_move_nobody_is_given_the_old_place(mesh: Mesh, told: bool):
    """Public failure 7. With the second network its addresses are new too, if its own side notices."""
    owner = mesh.contacts[9]
    mesh.publish(owner, STATS, addresses=("/ip4/127.0.0.1/tcp/1",))
    mesh.world.run(20)
    before = mesh.find(mesh.contacts[3], owner, "stat").record
    there = mesh.move(owner, owner._replace(port=5_000))
    given = Given(mesh, owner)
    if told:
        mesh.world.command(there, commands.Moved(NEW_ADDRESSES))
    else:
        mesh.world.command(there, commands.Refresh())
    mesh.world.run(60)
    moved_s = mesh.world.time_s
    for found, pointers in everybody_asks(mesh, there):
        assert found.record is not None
        assert before is not None
        assert found.record.seq > before.seq
        assert found.record.endpoint == "127.0.0.1:5000"
        assert found.record.addresses == (NEW_ADDRESSES if told else ("/ip4/127.0.0.1/tcp/1",))
        assert [one.endpoint[-2:] for one in pointers.pointers] == [(5_000).to_bytes(2)]
    assert knowers(mesh, owner.key) == {there}
    assert [second for second in given.times if second >= moved_s] == []


def test_no_holder_and_no_neighbours_directory_keeps_the_old_place_a_minute_after_a_move(mesh: Mesh):
    """Public failure 7: read from each of the holders, and from who only compared directories with one."""
    owner = mesh.contacts[9]
    mesh.publish(owner, STATS)
    mesh.world.run(limits.DHT_REFRESH_S)  # by now directories were compared, and many besides the holders have it
    slot = ids.record_key(owner.key, "stat")
    copies = [item for one in mesh.contacts for item in mesh.machine(one).held if item.slot == slot]
    assert len(copies) > limits.DHT_K + 1
    there = mesh.move(owner, owner._replace(port=5_000))
    mesh.world.command(there, commands.Moved(()))
    mesh.world.run(60)
    for one in mesh.contacts:
        for item in mesh.machine(one).held:
            if item.slot == slot:
                assert isinstance(item.body, AgentRecord)
                assert item.body.endpoint == "127.0.0.1:5000"


def test_lookups_do_not_end_with_those_who_held_the_old_place_before_others_came_nearer():
    """A mesh grows threefold: newer versions pass the former holders by. Who looked afar when it came begins nearer."""
    mesh = Mesh(1, 90)
    old, new = mesh.contacts[:30], mesh.contacts[30:]
    for one in old:
        mesh.join(one, old[:2])
    mesh.world.run(20)
    owner = old[9]
    mesh.publish(owner, STATS)
    for one in new:
        mesh.join(one, old[:2])
    mesh.world.run(40)
    there = mesh.move(owner, owner._replace(port=5_000))
    mesh.world.command(there, commands.Moved(()))
    mesh.world.run(40)
    slot = ids.record_key(owner.key, "stat")
    held = [item.body for one in mesh.contacts for item in mesh.machine(one).held if item.slot == slot]
    assert len({body.seq for body in held}) > 1
    given = [mesh.find(asker, there, "stat").record for asker in mesh.contacts[::6]]
    assert {record and record.endpoint for record in given} == {"127.0.0.1:5000"}


def test_after_twenty_moves_a_stranger_reaches_the_node_where_it_is():
    """Public failure 10."""
    mesh = Mesh(42, 25)
    mesh.join_all()
    there = mesh.contacts[9]
    mesh.publish(there, STATS)
    for number in range(20):
        there = mesh.move(there, there._replace(port=5_000 + number))
        mesh.world.command(there, commands.Moved(()))
        mesh.world.run(20)
    mesh.world.run(40)
    assert knowers(mesh, there.key) == {there}
    record = mesh.find(mesh.contacts[3], there, "stat").record
    assert record is not None
    host, _, port = record.endpoint.rpartition(":")
    dialled = mesh.ask(mesh.contacts[3], lambda r: commands.Probe(r, Contact(there.key, host, int(port))))
    assert dialled.there


def test_after_eight_hours_of_sleep_a_node_is_found_at_its_new_address():
    """Public failure 8."""
    mesh = Mesh(43, 5)
    mesh.join_all()
    owner = mesh.contacts[4]
    mesh.publish(owner, STATS)
    mesh.world.freeze(owner)
    mesh.world.run(8 * 3_600)
    assert mesh.find(mesh.contacts[3], owner, "stat").record is None
    there = mesh.move(owner, owner._replace(port=5_000))
    mesh.world.thaw(there)
    mesh.world.run(60)
    record = mesh.find(mesh.contacts[3], there, "stat").record
    assert record is not None
    assert record.endpoint == "127.0.0.1:5000"
    assert knowers(mesh, owner.key) == {there}


# -- where we are, as others see it


def seen_at(alice: Driven, port: int, *numbers: int) -> list[events.Published | events.Queued]:
    """So many peers, asked, say that we are there. What our side is told."""
    told = []
    for number in numbers:
        peer = Contact(bytes([number]) * 32, "127.0.0.1", 4001)
        ping = sends(alice.command(commands.Probe(number, peer)), Ping)[0].message
        told += emitted(alice.hear(peer, Pong(ping.id, False, bytes(8), pack_endpoint("127.0.0.1", port))))
    return told


def test_one_liar_does_not_move_us_and_two_who_agree_do():
    alice = Driven()
    seen_at(alice, 4_001, 7, 8, 9, 10)
    seen_at(alice, 666, 11)
    assert alice.machine.seen_endpoint == ("127.0.0.1", 4_001)
    seen_at(alice, 4_001, 7, 8)
    seen_at(alice, 666, 11)
    assert alice.machine.seen_endpoint == ("127.0.0.1", 4_001)
    alice.run(limits.REACH_DOUBT_S)
    seen_at(alice, 5_000, 7, 8)
    assert alice.machine.seen_endpoint == ("127.0.0.1", 5_000)


def test_behind_a_router_that_shows_each_peer_another_port_we_stay_where_we_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "REACH_DOUBT_S", 0.0)
    alice = Driven().met().met(contact(MALLORY))
    for number in range(7, 60):
        seen_at(alice, 5_000 + number, number)
    assert alice.machine.seen_endpoint == ("127.0.0.1", 4_001)


def test_one_disagreement_has_others_asked_at_once():
    alice = Driven()
    for number in range(7, 17):
        alice.met(Contact(bytes([number]) * 32, "127.0.0.1", 4001))
    peer = Contact(bytes([7]) * 32, "127.0.0.1", 4001)
    ping = sends(alice.command(commands.Probe(1, peer)), Ping)[0].message
    effects = alice.hear(peer, Pong(ping.id, False, bytes(8), pack_endpoint("127.0.0.1", 5_000)))
    assert len({effect.to for effect in sends(effects, Ping)}) == limits.CLOCK_ASKED


def test_elsewhere_on_the_public_net_we_are_a_client_until_it_is_proven_anew():
    alice = Driven()
    peers = [contact(key, "93.184.216.34") for key in (BOB, MALLORY)]
    stranger = Contact(bytes(32), "93.184.216.35", 4_001)

    def say(host: str) -> list[Send]:
        effects = []
        for peer in peers:
            ping = sends(alice.command(commands.Probe(1, peer)), Ping)[0].message
            effects += alice.hear(peer, Pong(ping.id, False, bytes(8), pack_endpoint(host, 4_001)))
        return effects

    say("81.2.69.142")
    assert not alice.answer(Ping(1, True), stranger).client
    alice.run(limits.REACH_DOUBT_S)
    assert len(sends(say("81.2.69.143"), DialBack)) >= 1
    assert alice.answer(Ping(1, True), peers[0]).client


def test_a_request_from_elsewhere_is_pinged_there_and_only_the_answer_moves_the_entry():
    alice = Driven().met()
    old, new = contact(BOB), contact(BOB)._replace(port=5_000)
    ping = sends(alice.hear(new, Ping(1, False)), Ping)[0]
    assert ping.to == new
    assert alice.machine.contacts == [old]
    alice.hear(new, Pong(ping.message.id, False, bytes(8), pack_endpoint("127.0.0.1", 1)))
    assert alice.machine.contacts == [new]


def test_a_node_lost_at_one_place_is_tried_where_somebody_else_names_it():
    alice = Driven().met().met(contact(MALLORY))
    alice.machine._peers.table.missed(next(iter(alice.machine._peers.table)).long_id)
    find = sends(alice.command(commands.SearchRecord(1, bytes(32), "x")), object)
    (asked,) = [one for one in find if not isinstance(one.message, Ping)]
    new = contact(BOB)._replace(port=5_000)
    effects = alice.hear(asked.to, Found(asked.message.id, False, bytes(8), (), (pack_contact(new),)))
    assert new in [effect.to for effect in sends(effects, Ping)]


def test_who_wakes_or_moves_is_heard_by_all_it_knows_and_all_who_asked_it_of_late():
    alice = Driven().met()
    caller = Contact(bytes([7]) * 32, "127.0.0.1", 4001)
    alice.hear(caller, Ping(1, False))
    alice.run(limits.DHT_CALL_S)  # it never answered, so it is in no table
    assert alice.machine.contacts == [contact(BOB)]
    pinged = {effect.to for effect in sends(alice.command(commands.Refresh()), Ping)}
    assert pinged == {contact(BOB), caller}
