"""All scenarios of `./dev sim core`. A part of the product registers here what it simulates."""

from pathlib import Path

from ioa_p2p.team.election import Election
from tests.sim import election, gossip, gossip_mutants, gossip_schedules
from tests.sim.mutants import MUTANTS
from tests.sim.scenario import Scenario
from tests.sim.schedules import SCHEDULES

SCENARIOS = (
    Scenario("election", Election, election.play, SCHEDULES, MUTANTS),
    Scenario("chat", gossip.sound, gossip.play, gossip_schedules.SCHEDULES, gossip_mutants.MUTANTS),
)


def regressions(scenario: str) -> list[int]:
    """Kept seeds of a scenario: lines "scenario seed reason" of regressions.txt."""
    text = Path(__file__).with_name("regressions.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [int(seed) for name, seed, *_ in lines if name == scenario]
