"""Records straight from their node: one request where it lives, the holders' word where it does not."""

import pytest

from ioa_p2p.dht import commands, events
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import Contact, FindRecord, pack_endpoint
from ioa_p2p.wire.records import AgentRecord
from tests.dht.mesh import Mesh, card


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    mesh = Mesh(7, 12)
    mesh.join_all()
    assert mesh.publish(mesh.contacts[3], card("meter", "device.measure")) is not None
    return mesh


def fetch(mesh: Mesh, asker: Contact, owner: Contact, endpoint: bytes | None = None) -> events.RecordFound:
    there = pack_endpoint(owner.host, owner.port) if endpoint is None else endpoint
    return mesh.ask(asker, lambda request: commands.FetchRecord(request, owner.key, "meter", there))


def test_a_record_comes_from_its_own_node_with_one_request(mesh: Mesh) -> None:
    found = fetch(mesh, mesh.contacts[9], mesh.contacts[3])
    assert found.record is not None
    assert (found.record.agent, found.direct, found.asked) == ("meter", True, 1)


def test_a_small_card_comes_along(mesh: Mesh) -> None:
    asker = mesh.contacts[8]
    found = fetch(mesh, asker, mesh.contacts[3])
    assert found.record is not None
    assert mesh.machine(asker).kept_card(found.record.card) == card("meter", "device.measure")


def test_a_card_that_does_not_fit_beside_its_record_stays_at_home(mesh: Mesh) -> None:
    owner, asker = mesh.contacts[2], mesh.contacts[8]
    large = codec.replace(card("meter", "device.measure"), description="x" * limits.DATAGRAM_BODY_BYTES_MAX)
    mesh.publish(owner, large)
    found = fetch(mesh, asker, owner)
    assert found.record is not None
    assert found.direct
    assert mesh.machine(asker).kept_card(found.record.card) is None


def test_a_record_with_a_wrong_card_is_not_taken_from_its_node(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, asker = mesh.contacts[3], mesh.contacts[7]
    wrong = codec.encode(card("meter", "text.greet"))
    monkeypatch.setattr(mesh.machine(owner)._cards, "ours", lambda hash_: wrong)
    found = fetch(mesh, asker, owner)
    assert found.record is not None
    assert not found.direct
    assert mesh.machine(asker).faults["wrong-card"] == 1
    assert mesh.machine(asker).kept_card(ids.blake(wrong)) is None


def test_no_card_however_long_makes_an_answer_too_large(mesh: Mesh) -> None:
    owner = mesh.contacts[1]
    held = next(each for each in mesh.machine(mesh.contacts[3]).held if isinstance(each.body, AgentRecord))
    holder = mesh.machine(owner)._holder
    sizes = set[bool]()
    for length in range(limits.DATAGRAM_BODY_BYTES_MAX):
        holder._cards._own["meter"] = (held.body.card, bytes(length))
        found = holder.found(mesh.world.now(mesh.world.hosts[owner]), owner, FindRecord(1, False, held.key), False)
        assert len(codec.encode(found)) <= limits.DATAGRAM_BODY_BYTES_MAX
        sizes.add(found.card == bytes(length))
    assert sizes == {True, False}
    del holder._cards._own["meter"]


def test_without_an_endpoint_the_holders_are_asked_and_nobody_is_said_to_live(mesh: Mesh) -> None:
    found = fetch(mesh, mesh.contacts[9], mesh.contacts[3], b"")
    assert found.record is not None
    assert not found.direct


def test_another_node_at_the_endpoint_cannot_answer_for_the_agents_node(mesh: Mesh) -> None:
    other = mesh.contacts[5]
    found = fetch(mesh, mesh.contacts[9], mesh.contacts[3], pack_endpoint(other.host, other.port))
    assert found.record is not None
    assert not found.direct


def test_an_agent_that_its_node_does_not_have_is_not_found(mesh: Mesh) -> None:
    there = pack_endpoint(mesh.contacts[4].host, mesh.contacts[4].port)
    found = mesh.ask(
        mesh.contacts[9], lambda request: commands.FetchRecord(request, mesh.contacts[4].key, "meter", there)
    )
    assert (found.record, found.direct) == (None, False)


def test_the_record_of_a_crashed_node_comes_from_holders_and_counts_the_request_in_vain(mesh: Mesh) -> None:
    mesh.world.crash(mesh.contacts[3])
    found = fetch(mesh, mesh.contacts[9], mesh.contacts[3])
    plain = mesh.find(mesh.contacts[9], mesh.contacts[3], "meter")
    assert found.record is not None
    assert (found.record, found.direct) == (plain.record, False)
    assert found.asked > 1
    mesh.world.restart(mesh.contacts[3])


def test_nobody_sends_us_into_our_own_machine_from_outside() -> None:
    mesh = Mesh(8, 6, host="198.51.100.7")
    mesh.join_all()
    owner, asker = mesh.contacts[2], mesh.contacts[4]
    before = mesh.world.sent
    asked: list[Contact] = []
    mesh.world.on_send.append(lambda world, source, target, message: asked.append(target))
    fetch(mesh, asker, owner, pack_endpoint("127.0.0.1", 22))
    assert mesh.world.sent > before
    assert Contact(owner.key, "127.0.0.1", 22) not in asked


def test_a_node_that_does_not_answer_is_said_to_be_silent_and_its_record_comes_from_holders(mesh: Mesh) -> None:
    mesh.world.crash(mesh.contacts[3])
    first = fetch(mesh, mesh.contacts[8], mesh.contacts[3])
    mesh.world.restart(mesh.contacts[3])
    assert first.record is not None
    assert (first.silent, first.direct) == (True, False)
    assert not fetch(mesh, mesh.contacts[7], mesh.contacts[3]).silent


def test_a_node_that_was_silent_a_moment_ago_is_not_waited_for_again(mesh: Mesh) -> None:
    mesh.world.crash(mesh.contacts[3])
    asker, took = mesh.contacts[8], list[float]()
    for _ in range(2):
        began = mesh.world.time_s
        assert fetch(mesh, asker, mesh.contacts[3]).silent
        took.append(mesh.world.time_s - began)
    mesh.world.restart(mesh.contacts[3])
    assert took[0] <= 2 * limits.DHT_CALL_S
    assert took[1] < limits.DHT_CALL_S / 2


def test_one_lost_datagram_is_no_silence() -> None:
    mesh = Mesh(9, 8)
    mesh.join_all()
    owner, asker = mesh.contacts[2], mesh.contacts[5]
    assert mesh.publish(owner, card("meter", "device.measure")) is not None
    mesh.world.cut(asker, owner)
    mesh.world.at(mesh.world.time_s + 0.05, mesh.world.mend)
    assert fetch(mesh, asker, owner).direct


def test_whoever_left_is_known_to_be_gone_without_waiting_for_it() -> None:
    mesh = Mesh(10, 8)
    mesh.join_all()
    owner, asker = mesh.contacts[2], mesh.contacts[5]
    assert mesh.publish(owner, card("meter", "device.measure")) is not None
    mesh.world.command(owner, commands.Leave())
    mesh.world.run(2.0)
    mesh.world.crash(owner)
    began = mesh.world.time_s
    found = fetch(mesh, asker, owner)
    assert found.record is not None
    assert found.record.gone
    assert mesh.world.time_s - began < limits.DHT_CALL_S / 2
