"""Directed lives of the DHT: what random dice rarely make, or what a scenario of the design names."""

from collections.abc import Callable

import pytest

from ioa_p2p.effects import Send
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Ping
from tests.dht.frames import sealed
from tests.sim.dht import CLOCK_S, Plant, Watched
from tests.sim.scenario import Violation
from tests.sim.world import World
from tests.wire.samples import MALLORY, record


def seeds_start_last(life: Watched) -> None:
    """T03: eight nodes start at once with the same two seeds, which start last: one mesh within 30 s."""
    seeds, others = life.mesh.contacts[:2], life.mesh.contacts[2:]
    for seed in seeds:
        life.world.crash(seed)
    for contact in others:
        life.mesh.join(contact, seeds)
    life.publish(others[0], "early", 600)
    life.world.run(20)
    for seed in seeds:
        life.restart(seed)
    life.world.run(30)
    life.check_progress()


def seeds_die(life: Watched) -> None:
    """T02: all seeds die for good, half of the others restart from disk: all back within 60 s."""
    life.mesh.join_all()
    seeds, others = life.mesh.contacts[:2], life.mesh.contacts[2:]
    life.publish(others[-1], "stays", 600)
    life.world.run(2 * limits.DHT_SAVE_PEERS_S)
    for seed in seeds:
        life.world.crash(seed)
    life.mesh.contacts = others
    for contact in others[::2]:
        life.world.crash(contact)
    for contact in others[::2]:
        life.world.restart(contact)
        life.mesh.join(contact, seeds)
    life.world.run(60)
    life.check_progress()


def two_islands(life: Watched) -> None:
    """The halves are parted for half an hour, each with a seed, and both publish: then one mesh again."""
    life.mesh.join_all()
    left, right = life.mesh.contacts[::2], life.mesh.contacts[1::2]
    life.world.split(list(left), list(right))
    life.publish(left[-1], "left", 600)
    life.publish(right[-1], "right", 600)
    life.world.run(1_800)
    life.world.mend()
    life.world.run(240)
    life.check_progress()


def owner_dies(life: Watched) -> None:
    """A dead owner's record is read to its end and never after, however often Mallory puts it again."""
    life.mesh.join_all()
    owner = life.mesh.contacts[-1]
    life.publish(owner, "mortal", 60)
    life.world.run(10)
    life.crash(owner, lose_disk=False)
    for _ in range(60):
        life.world.run(20)
        for contact in life.mesh.alive():
            life.world.command(life.lair, Send(contact, Ping(1, True)))
        for raw in list(life.frames):
            for contact in life.mesh.alive():
                if contact in life.mallory.tokens:
                    life.store(contact, raw)
        life.search()


def clock_set_back(life: Watched) -> None:
    """A publisher restarts from its disk with its clock in the past, thrice; all others restart too, so that nobody
    can tell it what it issued."""
    life.mesh.join_all()
    owner = life.mesh.contacts[-1]
    life.publish(owner, "past", 600)
    life.world.run(10)
    for _ in range(3):
        life.crash(owner, lose_disk=False)
        life.world.hosts[owner].wall_offset_s -= CLOCK_S / 3
        for contact in life.mesh.contacts:
            life.restart(contact)
        life.world.run(10)
    life.check_progress()


def versions_replayed(life: Watched) -> None:
    """Mallory puts every older version of an agent again and again, while everybody reads."""
    life.mesh.join_all()
    for _ in range(4):
        life.publish(life.mesh.contacts[-1], "changing", 600)
        life.world.run(5)
        for contact in life.mesh.alive():
            life.world.command(life.lair, Send(contact, Ping(1, True)))
        life.world.run(1)
        for raw in list(life.frames):
            for contact in life.mallory.tokens:
                life.store(contact, raw)
        life.world.run(1)
        for _ in range(20):
            life.search()
        life.world.run(5)
    life.check_progress()


def flood(life: Watched) -> None:
    """One node puts more valid records on one holder than it may; its neighbour's are still kept."""
    life.mesh.join_all()
    victim = life.mesh.contacts[3]
    for number in range(limits.STORE_NODE_ITEMS_MAX + 100):
        if number % 40 == 0:
            life.world.command(life.lair, Send(victim, Ping(1, True)))
            life.world.run(1)
        body = record(MALLORY, agent=f"flood-{number}", issued=int(life.wall_s), ttl=3_600)
        life.store(victim, sealed(body, MALLORY))
    life.world.run(1)
    life.check_holdings()
    life.publish(life.mesh.contacts[4], "honest", 600)
    life.world.run(10)
    if "honest" not in [held.body.agent for held in life.mesh.machine(victim).held]:
        raise Violation("D5", "an honest record was shut out")


def generations(life: Watched) -> None:
    """The owner dies, a new generation joins, the old one dies one by one: the record goes on to its end."""
    old, new = life.mesh.contacts[:8], life.mesh.contacts[8:]
    for contact in old:
        life.mesh.join(contact, old[:2])
    life.world.run(10)
    life.publish(old[-1], "heritage", 7_200)
    life.world.run(10)
    life.world.crash(old[-1])
    for contact in new:
        life.mesh.join(contact, old[:2])
    life.world.run(60)
    for contact in old[:-1]:
        life.world.crash(contact)
        life.world.run(200)
    if life.mesh.find(new[0], old[-1], "heritage").record is None:
        raise Violation("D7", "the record died with those who first held it")


def life_of(seed: int, size: int, act: Callable[[Watched], None]) -> Callable[[Plant], World]:
    def play(plant: Plant) -> World:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            life = Watched(seed, size)
            act(life)
            return life.world

    return play


SCHEDULES = {
    "seeds-start-last": life_of(1, 10, seeds_start_last),
    "seeds-die": life_of(2, 16, seeds_die),
    "two-islands": life_of(3, 14, two_islands),
    "owner-dies": life_of(4, 12, owner_dies),
    "clock-set-back": life_of(5, 10, clock_set_back),
    "versions-replayed": life_of(6, 10, versions_replayed),
    "generations": life_of(8, 16, generations),
    "flood": life_of(7, 8, flood),
}
