"""The election and its log: transcripts in full, and what members do in a quiet simulated world."""

from pathlib import Path

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.team.election_events import Committed, Propose
from ioa_p2p.team.role import Role
from ioa_p2p.team.timing import PROFILES
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Append, Entry
from tests.sim.teams import Cast, coordinator, members
from tests.sim.world import World
from tests.team.stage import FOLDER, replay


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


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_every_effect_of_a_transcript_comes_again(path: Path) -> None:
    assert replay(path.read_text()) == path.read_text()


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


def test_the_higher_rank_stands_first() -> None:
    """Rank only shortens timers, so it wins most first elections, not all."""
    won = 0
    for seed in range(40):
        world, cast = World(seed), Cast(3)
        cast.rank = {cast.nodes[0]: 1.0, cast.nodes[1]: 0.0, cast.nodes[2]: 0.0}
        for node in cast.nodes:
            world.add(node, cast.make)
        assert world.run(5, until=lambda world=world: coordinator(world) is not None)
        won += leader(world) == cast.nodes[0]
    assert 25 <= won < 40


def test_who_may_not_coordinate_votes_and_never_stands() -> None:
    for seed in range(10):
        world, cast = World(seed), Cast(5, leads=2)
        for node in cast.nodes:
            world.add(node, cast.make)
        assert world.run(5, until=lambda world=world: coordinator(world) is not None)
        first = leader(world)
        world.crash(first)
        assert world.run(6, until=lambda world=world: coordinator(world) is not None)
        assert {first, leader(world)} == set(cast.nodes[:2])


def test_a_backlog_larger_than_one_batch_is_caught_up_in_pieces() -> None:
    world, cast = started(3)
    lead = leader(world)
    away = next(node for node in cast.nodes if node != lead)
    world.crash(away)
    for number in range(3 * limits.APPEND_ENTRIES_MAX):
        world.command(lead, Propose(bytes(2_000), b"%d" % number))
        world.run(0.01)
    world.restart(away)
    world.run(2)
    assert len(steps(world, away)) == 3 * limits.APPEND_ENTRIES_MAX


def test_a_proposal_named_twice_is_decided_once() -> None:
    world, _ = started(3)
    lead = leader(world)
    world.command(lead, Propose(b"pay", b"key"))
    world.command(lead, Propose(b"pay", b"key"))
    world.run(1)
    assert steps(world, lead) == [b"pay"]


def test_open_proposals_and_the_size_of_a_step_are_bounded() -> None:
    world, _ = started(3)
    lead = leader(world)
    with pytest.raises(UsageError) as refused:
        world.command(lead, Propose(bytes(limits.DECISION_STEP_BYTES_MAX + 1), b"large"))
    assert refused.value.code == "step-too-large"
    for number in range(limits.DECISION_OPEN_MAX):
        world.command(lead, Propose(b"step", b"%d" % number))
    with pytest.raises(UsageError) as refused:
        world.command(lead, Propose(b"step", b"one more"))
    assert refused.value.code == "busy"
    world.run(0.5)
    world.command(lead, Propose(b"step", b"one more"))


def test_a_full_step_with_a_full_certificate_fits_a_link_frame() -> None:
    """The largest Append there can be: the bounds of wire/limits.py agree with each other."""
    certificate = (bytes(limits.VOTE_FRAME_BYTES_MAX),) * limits.TEAM_VOTERS_MAX
    frames = (bytes(limits.APPEND_BYTES_MAX // limits.APPEND_ENTRIES_MAX),) * limits.APPEND_ENTRIES_MAX
    large = Append(bytes(16), 1, 1 << 40, 1 << 19, 1 << 40, frames, 1 << 19, 1 << 60, certificate)
    assert len(codec.encode(large)) + limits.LINK_HEADER_BYTES <= limits.LINK_FRAME_BYTES_MAX
    entry = Entry(
        bytes(32), bytes(16), 1, 1 << 40, 1, bytes(32), 1 << 31, certificate, bytes(limits.DECISION_STEP_BYTES_MAX)
    )
    assert len(codec.encode(entry)) <= limits.FRAME_BODY_BYTES_MAX


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_elects_within_its_longest_wait(profile: str) -> None:
    world, cast = World(3), Cast(4, timing=PROFILES[profile])
    for node in cast.nodes:
        world.add(node, cast.make)
    assert world.run(PROFILES[profile].wait_s_max, until=lambda: coordinator(world) is not None)
    world.crash(leader(world))
    assert world.run(2 * PROFILES[profile].wait_s_max, until=lambda: coordinator(world) is not None)
