"""One goal, whole teams: what comes out when all is well, and when it is not."""

from collections import Counter

from ioa_p2p.team.events import Concluded
from tests.sim.jobs import Jobs


def test_a_team_forms_elects_works_and_concludes_everywhere() -> None:
    jobs = Jobs(1)
    jobs.start()
    jobs.launch()
    assert jobs.world.run(120, until=jobs.concluded)
    assert {end.conclusion.outcome for end in jobs.told(Concluded)} == {"done"}
    assert Counter(run.spec.agent for run in jobs.effects) == Counter(list(jobs.agents)[1:])
