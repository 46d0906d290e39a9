"""What a simulated scenario is: one seed gives one run, a mutant must be caught, directed schedules help.

    Scenario ── play(seed, part) ──> World | Violation        part: the sound class, or a mutant of it
             └─ schedules: named worlds that random dice rarely make

A part of the product registers its scenario in `tests/sim/core.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ioa_p2p.errors import IoaError
from tests.sim.world import World


class Violation(AssertionError):  # noqa: N818 - the word of the field
    """An invariant did not hold. `rule` is its name in docs/invariants.md ("I1", "L1")."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


@dataclass(frozen=True)
class Mutant:
    """A planted fault: `part` in place of the sound one. rules: those that it may be caught by."""

    name: str
    part: Any
    rules: frozenset[str]


@dataclass(frozen=True)
class Scenario:
    """play: one seeded run, to the end or to a Violation. schedules: directed runs, by name."""

    name: str
    sound: Any
    play: Callable[[int, Any], World]
    schedules: dict[str, Callable[[Any], World]]
    mutants: tuple[Mutant, ...]


@dataclass(frozen=True)
class Run:
    """What became of one run. violation: empty when all held; rule: of the invariant that did not."""

    label: str
    trace: str = ""
    violation: str = ""
    rule: str = ""


def run(label: str, play: Callable[[], World]) -> Run:
    """Play to the end. A broken assert or an error that nobody caught is a violation of no named rule."""
    try:
        return Run(label, play().trace)
    except Violation as broken:
        return Run(label, violation=str(broken), rule=broken.rule)
    except (AssertionError, IoaError) as broken:
        return Run(label, violation=f"{type(broken).__name__}: {broken}", rule="assert")


def catch(scenario: Scenario, mutant: Mutant, seeds: range) -> Run | None:
    """The first run that catches `mutant` by one of its rules: schedules first, then seeds. None: missed."""
    plays = [(name, lambda schedule=schedule: schedule(mutant.part)) for name, schedule in scenario.schedules.items()]
    plays += [(f"seed {seed}", lambda seed=seed: scenario.play(seed, mutant.part)) for seed in seeds]
    for label, play in plays:
        caught = run(f"{scenario.name} {label}", play)
        if caught.rule in mutant.rules:
            return caught
    return None
