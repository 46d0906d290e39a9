"""The election and its log, by members that talk through a simulated world."""

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.team.election import Role
from ioa_p2p.team.election_events import Committed, Propose
from tests.sim.teams import Cast, coordinator, members
from tests.sim.world import World


def started(size: int, seed: int = 1) -> tuple[World, Cast]:
    world, cast = World(seed), Cast(size)
    for node in cast.nodes:
        world.add(node, cast.make)
    assert world.run(5, until=lambda: coordinator(world) is not None)
    world.run(0.1)
    return world, cast


def leader(world: World) -> bytes:
    found = coordinator(world)
    assert found is not None
    assert found.coordinator is not None
    return found.coordinator


def steps(world: World, node: bytes) -> list[bytes]:
    """The committed steps that `node` told, without the terms' first entries."""
    told = [event for _, address, event in world.events if address == node and isinstance(event, Committed)]
    return [event.entry.step for event in told if event.entry.step]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_members_elect_one_coordinator_and_decide_in_the_order_of_proposals(size: int) -> None:
    world, cast = started(size)
    for number in range(5):
        world.command(leader(world), Propose(b"step %d" % number, b"%d" % number))
    world.run(1)
    for node in cast.nodes:
        assert steps(world, node) == [b"step %d" % number for number in range(5)]


@pytest.mark.parametrize("size", [3, 4, 7])
def test_a_killed_coordinator_is_replaced_within_three_seconds(size: int) -> None:
    for seed in range(10):
        world, _ = started(size, seed)
        killed = leader(world)
        world.crash(killed)
        assert world.run(3, until=lambda world=world: coordinator(world) is not None)


def test_a_member_that_comes_back_is_caught_up() -> None:
    world, _ = started(3)
    away = leader(world)
    world.crash(away)
    assert world.run(3, until=lambda: coordinator(world) is not None)
    world.command(leader(world), Propose(b"while away", b"k"))
    world.restart(away)
    world.run(2)
    assert steps(world, away) == [b"while away"]


def test_two_members_decide_nothing_unless_both_agree() -> None:
    world, cast = started(2)
    lead = leader(world)
    other = next(node for node in cast.nodes if node != lead)
    world.crash(other)
    world.command(lead, Propose(b"alone", b"k"))
    world.run(5)
    assert steps(world, lead) == []
    assert members(world)[lead].role is not Role.COORDINATOR


def test_a_follower_refuses_proposals() -> None:
    world, cast = started(3)
    other = next(node for node in cast.nodes if node != leader(world))
    with pytest.raises(UsageError) as refused:
        world.command(other, Propose(b"step", b"k"))
    assert refused.value.code == "not-coordinator"
