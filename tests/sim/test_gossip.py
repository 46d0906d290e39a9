"""The team channel in the seeded world. `run(seed)` and the directed runs: tests/sim/gossip.py."""

import pytest

from tests.sim import gossip

SEEDS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_member_ends_with_the_same_lines_whatever_the_weather(seed: int) -> None:
    gossip.run(seed)


@pytest.mark.parametrize("name", [name for name in gossip.RUNS if name != "random"])
@pytest.mark.parametrize("seed", range(3))
def test_directed_runs_hold(name: str, seed: int) -> None:
    gossip.RUNS[name](seed)


@pytest.mark.parametrize("name", gossip.MUTANTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    assert gossip.caught(name, range(SEEDS)) is not None, f"no run noticed: {name}"


def test_the_same_seed_gives_the_same_run() -> None:
    assert gossip.run(8).world.trace == gossip.run(8).world.trace
