"""Popular keys and search by sketch in a small mesh: what publishers do, and what readers find."""

import random
from typing import Any

import pytest

from ioa_p2p.dht import commands, events, ranking
from ioa_p2p.dht.index import cell_key
from ioa_p2p.dht.records import item_of
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact, FindPointers, Store
from ioa_p2p.wire.records import Pointer
from tests.dht.mesh import Mesh, card
from tests.sim.world import Weather

CELL = cell_key("model-1", 7)
DICE = random.Random(1)
QUERY = DICE.randbytes(64)


def crowded_mesh(publishers: int, most: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Mesh, list[events.Published]]:
    """A mesh whose holders keep `most` pointers a key, and what its publishers were told."""
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", most)
    mesh = Mesh(31, 30)
    mesh.join_all()
    told = [mesh.publish(mesh.contacts[number], card(f"a{number}", "chart.x")) for number in range(publishers)]
    mesh.world.run(10)
    return mesh, told


def publishers_of(found: events.PointersFound) -> set[bytes]:
    return {pointer.node for pointer in found.pointers}


def stored_depths(sent: list[Any], owner: Contact, key: str) -> set[int]:
    bodies = [item_of(message.frame).body for message in sent if isinstance(message, Store)]
    mine = [body for body in bodies if isinstance(body, Pointer) and body.node == owner.key]
    return {body.depth for body in mine if body.index == ids.index_key(key)}


def test_who_publishes_under_a_crowded_key_is_in_its_shard_too_and_is_told(monkeypatch: pytest.MonkeyPatch):
    mesh, told = crowded_mesh(24, 8, monkeypatch)
    early, late = told[0], told[-1]
    assert early.split == ()
    assert set(late.split) == {"skill:chart.x", "skill:chart", "word:chart", "word:x"}
    assert late.keys == 5
    found = mesh.pointers(mesh.contacts[-1], "skill:chart")
    assert len(found.pointers) > 8
    assert publishers_of(found) <= {contact.key for contact in mesh.contacts[:24]}


def test_a_reader_sees_publishers_of_all_times(monkeypatch: pytest.MonkeyPatch):
    mesh, _ = crowded_mesh(24, 8, monkeypatch)
    found = set[bytes]().union(*(publishers_of(mesh.pointers(asker, "skill:chart")) for asker in mesh.contacts[-3:]))
    for quarter in range(4):
        assert found & {contact.key for contact in mesh.contacts[6 * quarter : 6 * quarter + 6]}


def test_the_depth_once_learned_is_kept_over_re_issues(monkeypatch: pytest.MonkeyPatch):
    mesh, _ = crowded_mesh(12, 8, monkeypatch)
    sent: list[Any] = []
    mesh.world.on_send.append(lambda world, source, target, message: sent.append(message))
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 100)
    told = mesh.publish(mesh.contacts[11], card("a11", "chart.x"))
    assert stored_depths(sent, mesh.contacts[11], "skill:chart") == {0, 4}
    assert "skill:chart" in told.split


def test_a_shard_that_is_crowded_too_is_split_again(monkeypatch: pytest.MonkeyPatch):
    mesh, _ = crowded_mesh(14, 1, monkeypatch)
    depths = set[int]()
    for contact in mesh.contacts:
        bodies = [one.body for one in mesh.machine(contact).held]
        depths |= {body.depth for body in bodies if isinstance(body, Pointer)}
    assert depths == {0, 4, 8}
    assert len(mesh.pointers(mesh.contacts[-1], "skill:chart").pointers) > 2


@pytest.mark.parametrize(("liars", "depths"), [(2, {0}), (4, {0, 4})], ids=["a third", "most"])
def test_a_publisher_goes_deeper_when_most_holders_say_so(liars: int, depths: set[int]):
    mesh = Mesh(32, 7)
    mesh.join_all()
    for contact in mesh.contacts[1 : 1 + liars]:
        mesh.machine(contact)._store.crowded = _first_page_of("skill:chart").key.__eq__
    sent: list[Any] = []
    mesh.world.on_send.append(lambda world, source, target, message: sent.append(message))
    mesh.publish(mesh.contacts[0], card("a", "chart.x"))
    mesh.world.run(5)
    assert stored_depths(sent, mesh.contacts[0], "skill:chart") == depths


@pytest.mark.parametrize(("liars", "deeper"), [(2, False), (3, True)], ids=["a third", "half"])
def test_a_reader_looks_at_shards_when_half_of_the_holders_say_so(liars: int, deeper: bool):
    mesh = Mesh(32, 7)
    mesh.join_all()
    mesh.publish(mesh.contacts[0], card("a", "chart.x"))
    for contact in mesh.contacts[1 : 1 + liars]:
        mesh.machine(contact)._store.crowded = lambda key: True
    keys = set[bytes]()

    def note(world: Any, source: Any, target: Any, message: Any) -> None:
        if isinstance(message, FindPointers):
            keys.add(message.key)

    mesh.world.on_send.append(note)
    found = mesh.pointers(mesh.contacts[0], "skill:chart")
    assert len(keys) == (1 + limits.POINTERS_SHARDS if deeper else 1)
    assert found.holders == (7,)


def test_shards_are_read_beside_their_crowded_key(monkeypatch: pytest.MonkeyPatch):
    mesh, _ = crowded_mesh(24, 8, monkeypatch)
    keys: list[bytes] = []

    def note(world: Any, source: Any, target: Any, message: Any) -> None:
        if isinstance(message, FindPointers):
            keys.append(message.key)

    mesh.world.on_send.append(note)
    mesh.pointers(mesh.contacts[-1], "skill:chart")
    first_of_shard = next(number for number, key in enumerate(keys) if key != keys[0])
    assert limits.DHT_K / 2 <= first_of_shard < limits.DHT_K
    assert keys[0] in keys[first_of_shard:]


def test_what_a_sample_left_out_is_not_handed_on_every_five_minutes(monkeypatch: pytest.MonkeyPatch):
    mesh, _ = crowded_mesh(16, 8, monkeypatch)
    passed_on: list[Pointer] = []

    def note(world: Any, source: Any, target: Any, message: Any) -> None:
        body = item_of(message.frame).body if isinstance(message, Store) else None
        if isinstance(body, Pointer) and body.node != source.key and body.depth == 0:
            passed_on.append(body)

    mesh.world.on_send.append(note)
    mesh.world.run(2 * limits.DHT_REFRESH_S)
    assert ids.index_key("skill:chart") not in [body.index for body in passed_on]


def test_a_publisher_sees_to_the_copies_of_its_deepest_pointers(monkeypatch: pytest.MonkeyPatch):
    mesh, _ = crowded_mesh(12, 8, monkeypatch)
    bodies = [one.body for one in mesh.machine(mesh.contacts[11])._publisher.own]
    depths = {body.index: body.depth for body in bodies if isinstance(body, Pointer)}
    assert len(depths) == len(bodies) - 1
    assert depths[ids.index_key("skill:chart")] == 4
    assert depths[ids.index_key("word:a11")] == 0


# -- by sketch


@pytest.fixture(scope="module")
def cell() -> tuple[Mesh, dict[bytes, Contact]]:
    """60 agents of 30 nodes in one cell, by their sketches."""
    mesh = Mesh(33, 60, Weather(delay_s=(0.01, 0.05)))
    mesh.join_all()
    owners = dict[bytes, Contact]()
    for number in range(60):
        sketch, owner = DICE.randbytes(64), mesh.contacts[number % 30]
        owners[sketch] = owner
        order = commands.Publish(card(f"a{number}"), cells=(7,), sketch=sketch, index_model="model-1")
        mesh.world.command(owner, order)
        mesh.world.run(1)
    mesh.world.run(10)
    return mesh, owners


def by_sketch(mesh: Mesh, asker: Contact, key: str = CELL, **options: Any) -> events.PointersFound:
    return mesh.ask(asker, lambda request: commands.SearchPointers(request, key, sketch=QUERY, **options))


def nearest(sketches: Any, count: int) -> list[bytes]:
    found = list(sketches)
    products = dict(zip(found, ranking.dot_products(QUERY, found), strict=True))
    return sorted(found, key=products.__getitem__, reverse=True)[:count]


def test_by_sketch_a_few_requests_bring_the_nearest(cell: tuple[Mesh, dict[bytes, Contact]]):
    mesh, owners = cell
    for asker in mesh.contacts[30:40]:
        found = by_sketch(mesh, asker, wanted=8)
        assert [pointer.sketch for pointer in found.pointers[:6]] == nearest(owners, 6)
        assert found.rpcs <= 8
        assert found.size_bytes <= found.rpcs * (limits.DATAGRAM_BYTES_MAX + 520)
        assert len(found.pointers) == len(found.holders) == 8


def test_more_are_had_by_turning_pages(cell: tuple[Mesh, dict[bytes, Contact]]):
    mesh, owners = cell
    found = by_sketch(mesh, mesh.contacts[40], wanted=24)
    assert len(found.pointers) == 24
    assert {pointer.sketch for pointer in found.pointers} >= set(nearest(owners, 15))
    assert found.rpcs <= 14


def test_nobody_reads_a_whole_cell_by_sketch(cell: tuple[Mesh, dict[bytes, Contact]]):
    mesh, _ = cell
    found = by_sketch(mesh, mesh.contacts[42])
    assert (
        0 <= limits.POINTERS_RANKED_MAX - len(found.pointers) <= limits.POINTERS_LOT
    )  # one by lot may be a near one too
    assert found.rpcs <= 14


def test_a_thorough_read_hears_every_holder(cell: tuple[Mesh, dict[bytes, Contact]]):
    mesh, owners = cell
    found = by_sketch(mesh, mesh.contacts[41], wanted=8, thorough=True)
    assert found.answered >= limits.DHT_K
    assert [pointer.sketch for pointer in found.pointers[:6]] == nearest(owners, 6)
    assert min(found.holders[:3]) >= 15


def test_everybody_is_found_by_who_wants_all(cell: tuple[Mesh, dict[bytes, Contact]]):
    mesh, owners = cell
    assert len(mesh.pointers(mesh.contacts[42], CELL).pointers) == len(owners)


def test_lost_datagrams_hide_nothing_near(cell: tuple[Mesh, dict[bytes, Contact]], monkeypatch: pytest.MonkeyPatch):
    mesh, owners = cell
    monkeypatch.setattr(mesh.world.weather, "loss", 0.2)
    for asker in mesh.contacts[43:48]:
        found = by_sketch(mesh, asker, wanted=8)
        assert [pointer.sketch for pointer in found.pointers[:3]] == nearest(owners, 3)


def test_a_holder_that_gives_the_same_page_for_ever_is_not_read_for_ever(
    cell: tuple[Mesh, dict[bytes, Contact]], monkeypatch: pytest.MonkeyPatch
):
    mesh, _ = cell
    asker = mesh.contacts[48]
    for contact in mesh.contacts[:48]:
        holder = mesh.machine(contact)._holder
        first = holder._page(mesh.world.now(mesh.world.hosts[contact]), _first_page_of(CELL))
        monkeypatch.setattr(holder, "_page", lambda now, find, first=first: first)
    for sketch in (b"", QUERY):
        began_s = mesh.world.time_s
        found = mesh.ask(asker, lambda request, sketch=sketch: commands.SearchPointers(request, CELL, sketch=sketch))
        assert mesh.world.time_s - began_s <= limits.DHT_LOOKUP_S
        turns_max = limits.POINTERS_PAGED_HOLDERS * limits.POINTERS_READ_MAX / limits.POINTERS_PAGE
        assert found.rpcs <= turns_max + limits.DHT_LOOKUP_CALLS_MAX


def _first_page_of(key: str) -> FindPointers:
    return FindPointers(1, True, ids.pointer_key(ids.index_key(key), 0, b""))


def test_sketches_of_two_models_never_meet(cell: tuple[Mesh, dict[bytes, Contact]]):
    mesh, _ = cell
    sent: list[Any] = []
    mesh.world.on_send.append(lambda world, source, target, message: sent.append(message))
    assert by_sketch(mesh, mesh.contacts[50], cell_key("model-2", 7)).pointers == ()
    found = by_sketch(mesh, mesh.contacts[50], "word:a7")
    assert [pointer.sketch for pointer in found.pointers] == [b""]
    asked = [message for message in sent if isinstance(message, FindPointers)]
    assert {message.sketch for message in asked} == {QUERY, b""}
