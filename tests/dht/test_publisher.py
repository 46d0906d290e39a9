"""Publishing in a small mesh: kept alive, kept unique, kept on enough nodes, and ended."""

from typing import Any

import pytest

from ioa_p2p.dht import commands, events
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Have, Store
from ioa_p2p.wire.records import AgentRecord, Skill
from tests.dht.mesh import Mesh, card

STATS = card("stat", "stats.outliers")
TTL = 600


@pytest.fixture
def mesh() -> Mesh:
    made = Mesh(11, 8)
    made.join_all()
    return made


def held_by(mesh: Mesh, contact: Any, owner: Any, agent: str) -> AgentRecord | None:
    key = ids.record_key(owner.key, agent)
    bodies = [one.body for one in mesh.machine(contact).held if one.slot == key]
    assert all(isinstance(body, AgentRecord) for body in bodies)
    return bodies[0] if bodies else None


def copies(mesh: Mesh, owner: Any, agent: str, seq: int) -> int:
    """Nodes that hold this seq or a newer one, the owner not counted."""
    held = (held_by(mesh, contact, owner, agent) for contact in mesh.alive() if contact != owner)
    return sum(record is not None and record.seq >= seq for record in held)


def test_a_record_is_issued_anew_well_before_it_ends_and_never_missing(mesh: Mesh):
    owner, reader = mesh.contacts[1], mesh.contacts[5]
    mesh.publish(owner, STATS, ttl=TTL)
    start_s, seqs = mesh.world.time_s, set[int]()
    for _ in range(40):
        mesh.world.run(60)
        found = mesh.find(reader, owner, "stat")
        assert found.record is not None
        assert found.age_s <= limits.REPUBLISH_TTL_FRACTION * TTL * (1 + limits.REPUBLISH_SPREAD) + 5
        seqs.add(found.record.seq)
    expected = (mesh.world.time_s - start_s) / (limits.REPUBLISH_TTL_FRACTION * TTL)
    assert 0.7 * expected <= len(seqs) <= 1.3 * expected


def test_a_change_is_out_at_once_and_the_old_version_is_nowhere(mesh: Mesh):
    """Public failure 7: read from each holder."""
    owner = mesh.contacts[1]
    mesh.publish(owner, STATS, addresses=("/ip4/127.0.0.1/tcp/1",))
    changed = mesh.publish(owner, STATS, addresses=("/ip4/127.0.0.1/tcp/2",))
    mesh.world.run(2)
    held = [held_by(mesh, contact, owner, "stat") for contact in mesh.contacts]
    assert {record.addresses for record in held if record} == {("/ip4/127.0.0.1/tcp/2",)}
    assert copies(mesh, owner, "stat", changed.seq) == 7


def test_twenty_moves_leave_one_record_and_one_pointer_a_key_with_the_last_endpoint(mesh: Mesh):
    """Public failure 10."""
    owner = mesh.contacts[1]
    for number in range(20):
        mesh.publish(owner, STATS, endpoint=f"127.0.0.1:{5_000 + number}")
    mesh.world.run(2)
    pointers = mesh.pointers(mesh.contacts[4], "skill:stats").pointers
    assert [pointer.endpoint[-2:] for pointer in pointers] == [(5_019).to_bytes(2)]
    assert mesh.find(mesh.contacts[4], owner, "stat").record.endpoint == "127.0.0.1:5019"


def test_a_withdrawn_agent_is_found_gone_and_then_not_at_all(mesh: Mesh):
    owner, reader = mesh.contacts[1], mesh.contacts[5]
    mesh.publish(owner, STATS, ttl=TTL)
    mesh.world.command(owner, commands.Withdraw("stat"))
    mesh.world.run(10)
    found = mesh.find(reader, owner, "stat").record
    assert found.gone
    assert found.ttl == TTL + limits.GONE_EXTRA_TTL_S
    mesh.world.run(TTL)
    assert mesh.pointers(reader, "skill:stats").pointers == ()
    assert mesh.find(reader, owner, "stat").record.gone
    mesh.world.run(limits.GONE_EXTRA_TTL_S + limits.CLOCK_SKEW_S)
    assert mesh.find(reader, owner, "stat").record is None


def test_whoever_leaves_tells_those_who_answer_and_waits_for_nobody_silent(mesh: Mesh):
    owner, silent = mesh.contacts[1], mesh.contacts[4:]
    mesh.publish(owner, STATS)
    for contact in silent:
        mesh.world.crash(contact)
    mesh.world.command(owner, commands.Leave())
    mesh.world.run(limits.DHT_CALL_S / 2)
    assert [event.gone for event in mesh.events_of(owner, events.Published)] == [False, True]
    assert all(held_by(mesh, contact, owner, "stat").gone for contact in mesh.alive())


def test_whoever_leaves_when_all_have_fallen_silent_is_done_once_all_are_slow(mesh: Mesh):
    owner = mesh.contacts[1]
    mesh.publish(owner, STATS)
    mesh.world.weather.loss = 1.0
    for number in range(limits.DHT_PUTS_MAX):
        mesh.world.command(owner, commands.Publish(card(f"late-{number}", "late")))
    mesh.world.command(owner, commands.Leave())
    mesh.world.run(limits.DHT_CALL_S / 2)
    assert {event.agent: event.reason for event in mesh.events_of(owner, events.Queued)}["stat"] == "no-peers"


@pytest.mark.parametrize("lose_disk", [False, True], ids=["with its disk", "without its disk"])
def test_a_restarted_publisher_goes_on_from_a_larger_seq(mesh: Mesh, lose_disk: bool):
    owner = mesh.contacts[1]
    before = mesh.publish(owner, STATS)
    # The wall clock of a device without a battery starts in the past.
    mesh.world.crash(owner, lose_disk=lose_disk)
    mesh.world.hosts[owner].wall_offset_s = -500.0
    mesh.world.restart(owner)
    mesh.join(owner, mesh.contacts[:2])
    mesh.world.run(10)
    after = mesh.publish(owner, STATS)
    assert after.seq > before.seq
    mesh.world.run(5)
    assert copies(mesh, owner, "stat", after.seq) == 7
    assert mesh.events_of(owner, events.CloneAlarm) == [] or lose_disk


def test_too_few_holders_is_said_and_mended_by_itself(mesh: Mesh):
    owner = mesh.contacts[1]
    mesh.world.weather.loss = 1.0
    mesh.world.command(owner, commands.Publish(STATS))
    mesh.world.run(30)
    queued = mesh.events_of(owner, events.Queued)
    assert queued[0].reason == "no-peers"
    assert mesh.events_of(owner, events.Published) == []
    mesh.world.weather.loss = 0.0
    assert mesh.world.run(180, until=lambda: bool(mesh.events_of(owner, events.Published)))
    assert mesh.find(mesh.contacts[6], owner, "stat").record is not None


def test_what_holders_refuse_counts_as_not_put(mesh: Mesh, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "STORE_ITEMS_MAX", 0)
    mesh.world.command(mesh.contacts[1], commands.Publish(STATS))
    mesh.world.run(5)
    queued = mesh.events_of(mesh.contacts[1], events.Queued)
    assert (queued[0].reason, queued[0].confirmed, queued[0].holders) == ("too-few-holders", 0, 7)


def test_index_keys_beyond_the_limit_are_named(mesh: Mesh):
    words = " ".join(f"word{number}" for number in range(40))
    published = mesh.publish(mesh.contacts[1], card("wordy", "x.y", description=words))
    assert published.keys == limits.INDEX_KEYS_MAX
    assert published.cut[-1] == "word:word39"


def test_a_record_too_large_for_a_datagram_loses_skill_names_not_its_life(mesh: Mesh):
    skills = tuple(Skill(f"{'long' * 14}.n{number}") for number in range(12))
    addresses = tuple(f"/ip4/127.0.0.1/tcp/{number}/{'x' * 120}" for number in range(4))
    published = mesh.publish(mesh.contacts[1], card("big").__class__("big", skills=skills), addresses=addresses)
    assert published is not None
    record = mesh.find(mesh.contacts[5], mesh.contacts[1], "big").record
    assert record.addresses == addresses
    assert 0 < len(record.skills) < limits.RECORD_SKILLS_MAX


def test_a_newcomer_nearer_to_a_key_is_handed_what_belongs_there():
    mesh = Mesh(12, 30)
    for contact in mesh.contacts[:25]:
        mesh.join(contact, mesh.contacts[:2])
    mesh.world.run(15)
    for number in range(6):
        mesh.publish(mesh.contacts[number], card(f"agent-{number}"))
    for contact in mesh.contacts[25:]:
        mesh.join(contact, mesh.contacts[:2])
    mesh.world.run(20)
    for number in range(6):
        key = int.from_bytes(ids.record_key(mesh.contacts[number].key, f"agent-{number}"))
        nearest = min(mesh.contacts, key=lambda contact: int.from_bytes(ids.dht_id(contact.key)) ^ key)
        assert held_by(mesh, nearest, mesh.contacts[number], f"agent-{number}") is not None, number


def test_copies_are_made_anew_while_the_publisher_is_gone():
    """Most holders vanish, the publisher too; those left bring the copies back."""
    mesh = Mesh(13, 60)
    mesh.join_all()
    owner = mesh.contacts[1]
    seq = mesh.publish(owner, STATS, ttl=7_200).seq
    mesh.world.run(5)
    key = int.from_bytes(ids.record_key(owner.key, "stat"))
    holders = [contact for contact in mesh.contacts if contact != owner and held_by(mesh, contact, owner, "stat")]
    holders.sort(key=lambda contact: int.from_bytes(ids.dht_id(contact.key)) ^ key)
    for contact in (owner, *holders[4:]):
        mesh.world.crash(contact)
    assert copies(mesh, owner, "stat", seq) == 4
    mesh.world.run(2.5 * limits.DHT_REFRESH_S)
    assert copies(mesh, owner, "stat", seq) >= 10


def test_handing_on_sends_only_what_is_lacking():
    """In a mesh where all have all, five minutes bring no Store."""
    mesh = Mesh(14, 8)
    mesh.join_all()
    mesh.publish(mesh.contacts[1], STATS)
    mesh.world.run(10)
    sent: list[Any] = []
    mesh.world.on_send.append(lambda world, source, target, message: sent.append(message))
    mesh.world.run(2 * limits.DHT_REFRESH_S)
    assert [message for message in sent if isinstance(message, Store)] == []
    assert [message for message in sent if isinstance(message, Have)] != []


def test_pointers_for_which_no_holder_has_room_are_told_and_tried_again(mesh: Mesh, monkeypatch: pytest.MonkeyPatch):
    owner = mesh.contacts[1]
    with monkeypatch.context() as patch:
        patch.setattr(limits, "STORE_NODE_ITEMS_MAX", 1)
        told = mesh.publish(owner, STATS)
        assert (told.keys, told.waiting > 0) == (0, True)
    mesh.world.run(limits.PUBLISH_RETRY_S[1])
    assert mesh.pointers(mesh.contacts[5], "skill:stats.outliers").pointers
    assert mesh.publish(owner, STATS).waiting == 0
