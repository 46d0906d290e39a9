"""All scenarios of `./dev sim core`. A part of the product registers here what it simulates."""

from ioa_p2p.team.election import Election
from tests.sim import election
from tests.sim.mutants import MUTANTS
from tests.sim.scenario import Scenario
from tests.sim.schedules import SCHEDULES

SCENARIOS = (Scenario("election", Election, election.play, SCHEDULES, MUTANTS),)
