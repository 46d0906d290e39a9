"""All scenarios of `./dev sim core`. A part of the product registers here what it simulates."""

from pathlib import Path

from ioa_p2p.team.election import Election
from ioa_p2p.team.machine import Teams
from tests.sim import (
    dht,
    dht_mutants,
    dht_schedules,
    election,
    gossip,
    gossip_mutants,
    gossip_schedules,
    mutants,
    nested,
    nested_mutants,
    nested_schedules,
    reform,
    reform_mutants,
    roster_schedules,
    schedules,
    team,
    team_mutants,
    team_schedules,
    turnover,
)
from tests.sim.scenario import Scenario

SCENARIOS = (
    Scenario("election", Election, election.play, schedules.SCHEDULES, mutants.MUTANTS),
    Scenario("roster", Election, turnover.play, roster_schedules.SCHEDULES, roster_schedules.MUTANTS),
    Scenario("chat", gossip.sound, gossip.play, gossip_schedules.SCHEDULES, gossip_mutants.MUTANTS),
    Scenario("dht", dht.sound, dht.play, dht_schedules.SCHEDULES, dht_mutants.MUTANTS),
    Scenario("team", Teams, team.play, team_schedules.SCHEDULES, team_mutants.MUTANTS),
    Scenario("reform", Teams, reform.play, reform.SCHEDULES, reform_mutants.MUTANTS),
    Scenario("nested", Teams, nested.play, nested_schedules.SCHEDULES, nested_mutants.MUTANTS),
)


REGRESSIONS = Path(__file__).with_name("regressions.txt")


def regressions(scenario: str) -> list[int]:
    """Kept seeds of a scenario: lines "scenario seed reason" of regressions.txt."""
    text = REGRESSIONS.read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [int(seed) for name, seed, *_ in lines if name == scenario]
