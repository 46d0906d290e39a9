"""Larger meshes in virtual time: silent nodes, churn, and vanished crowds. `IOA_SIM_NODES` sets the size."""

import os
import random

import pytest

from ioa_p2p.dht import events
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from tests.dht.mesh import Mesh, card
from tests.sim.world import Weather

NODES = int(os.environ.get("IOA_SIM_NODES", "150"))
WEATHER = Weather(loss=0.02, duplicate=0.01, delay_s=(0.005, 0.08))


@pytest.fixture(scope="module")
def silent() -> Mesh:
    """A mesh whose agents are published before 30 % of its nodes, no owner or seed among them, fall silent."""
    mesh = Mesh(21, NODES, WEATHER)
    mesh.join_all(seeds=3, over_s=10)
    for number, owner in enumerate(owners(mesh)):
        assert mesh.publish(owner, card(f"agent-{number}", f"skill-{number}.x")) is not None
    others = [contact for contact in mesh.contacts[3:] if contact not in owners(mesh)]
    for contact in mesh.world.rng.sample(others, int(0.3 * NODES)):
        mesh.world.crash(contact)
    return mesh


def owners(mesh: Mesh) -> list[Contact]:
    return mesh.contacts[10:20]


def p95(seconds: list[float]) -> float:
    return sorted(seconds)[int(0.95 * (len(seconds) - 1))]


def test_everybody_gets_ready_and_into_one_mesh(silent: Mesh):
    assert all(silent.events_of(contact, events.Ready) for contact in silent.contacts)
    reached, fresh = set[Contact](), [silent.contacts[0]]
    while fresh:
        reached.update(fresh)
        fresh = [one for contact in fresh for one in silent.machine(contact).contacts if one not in reached]
        fresh = [contact for contact in dict.fromkeys(fresh) if contact in silent.alive()]
    assert reached == set(silent.alive())


def test_every_agent_is_found_by_record_and_by_skill_past_the_silent_ones(silent: Mesh):
    dice, seconds = random.Random(1), list[float]()
    for number, owner in enumerate(owners(silent)):
        for asker in dice.sample(silent.alive(), 6):
            began_s = silent.world.time_s
            assert silent.find(asker, owner, f"agent-{number}").record is not None
            seconds.append(silent.world.time_s - began_s)
            assert [one.node for one in silent.pointers(asker, f"skill:skill-{number}").pointers] == [owner.key]
    assert p95(seconds) <= 1.5


def test_new_agents_are_published_past_the_silent_ones(silent: Mesh):
    for number, owner in enumerate(random.Random(2).sample(silent.alive(), 8)):
        published = silent.publish(owner, card(f"late-{number}"))
        assert published is not None
        assert published.confirmed >= 0.75 * published.holders


def test_under_churn_agents_that_stay_are_found_and_none_past_its_time():
    """T01 in short: exponential lives, 30 % of the nodes replaced a minute, ttl 10 min."""
    mesh = Mesh(22, 60, WEATHER)
    mesh.join_all(seeds=3)
    stays = mesh.contacts[3:8]
    for number, owner in enumerate(stays):
        mesh.publish(owner, card(f"agent-{number}"), ttl=600)
    dice, found, seconds = random.Random(3), list[bool](), list[float]()
    for _ in range(60):
        for contact in dice.sample(mesh.contacts[8:], 3):
            mesh.world.crash(contact, lose_disk=True)
            mesh.world.restart(contact)
            mesh.join(contact, mesh.contacts[:3])
        mesh.world.run(10)
        number, asker = dice.randrange(5), dice.choice(mesh.contacts)
        began_s = mesh.world.time_s
        record = mesh.find(asker, stays[number], f"agent-{number}").record
        found.append(record is not None)
        wall_s = mesh.world.now(mesh.world.hosts[asker]).wall
        assert record is None or record.issued + record.ttl + limits.CLOCK_SKEW_S > wall_s
        seconds.append(mesh.world.time_s - began_s)
    assert sum(found) >= 0.99 * len(found)
    assert p95(seconds) <= 5.0


def test_a_newcomer_joins_after_three_hundred_came_and_vanished():
    """Public failure 11, alive: the seeds' tables are full of the dead."""
    mesh = Mesh(23, 104)
    for contact in mesh.contacts[:4]:
        mesh.join(contact, mesh.contacts[:2])
    mesh.world.run(10)
    for _ in range(3):
        for contact in mesh.contacts[4:103]:
            mesh.world.restart(contact)
            mesh.join(contact, mesh.contacts[:2])
        mesh.world.run(10)
        for contact in mesh.contacts[4:103]:
            mesh.world.crash(contact, lose_disk=True)
    newcomer = mesh.contacts[-1]
    mesh.join(newcomer, mesh.contacts[:2])
    mesh.world.run(60)
    assert mesh.events_of(newcomer, events.Ready)
    published = mesh.publish(newcomer, card("late"))
    assert published is not None
    assert mesh.find(mesh.contacts[2], newcomer, "late").record is not None
