"""The short form of `./dev sim core`: a few seeds of every scenario, all schedules, all planted faults."""

import os
import subprocess
import sys

import pytest

from tests.sim.core import SCENARIOS, regressions
from tests.sim.scenario import Mutant, Scenario, catch, run

SEEDS = 8
WORLDS = [(scenario, seed) for scenario in SCENARIOS for seed in sorted({*range(SEEDS), *regressions(scenario.name)})]
CASES = [(scenario, name) for scenario in SCENARIOS for name in scenario.schedules]
FAULTS = [(scenario, mutant) for scenario in SCENARIOS for mutant in scenario.mutants]


@pytest.mark.parametrize(("scenario", "seed"), WORLDS, ids=lambda case: getattr(case, "name", case))
def test_invariants_hold_in_random_worlds_and_work_goes_on_after_the_faults(scenario: Scenario, seed: int) -> None:
    result = run(f"seed {seed}", lambda: scenario.play(seed, scenario.sound))
    assert not result.violation, f"./dev sim core --scenario {scenario.name} --replay {seed}"


@pytest.mark.parametrize(("scenario", "name"), CASES, ids=lambda case: getattr(case, "name", case))
def test_invariants_hold_in_directed_worlds(scenario: Scenario, name: str) -> None:
    assert run(name, lambda: scenario.schedules[name](scenario.sound)).violation == ""


@pytest.mark.parametrize(("scenario", "mutant"), FAULTS, ids=lambda case: case.name)
def test_a_planted_fault_is_caught_by_a_rule_that_it_breaks(scenario: Scenario, mutant: Mutant) -> None:
    assert catch(scenario, mutant, range(SEEDS)) is not None


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_one_seed_leaves_one_trace(scenario: Scenario) -> None:
    traces = {scenario.play(seed, scenario.sound).trace for seed in (1, 1, 2)}
    assert len(traces) == 2


def test_a_replay_in_another_process_leaves_the_same_trace() -> None:
    """Where sets lie in another order: a failing seed must fail again wherever its line is typed."""
    play = (
        "from tests.sim.core import SCENARIOS\n"
        "for one in SCENARIOS: print(one.play(1, one.sound).trace)\n"
        "chat = next(one for one in SCENARIOS if one.name == 'chat')\n"
        "print(chat.schedules['blob through bad weather'](chat.sound).trace)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", play], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        for seed in ("0", "1", "2")
    ]
    assert len({run.stdout for run in runs}) == 1
