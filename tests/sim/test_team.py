"""One goal, whole teams: what comes out when all is well, and when it is not."""

from tests.sim.jobs import Jobs


def test_a_team_forms_elects_works_and_concludes_everywhere() -> None:
    jobs = Jobs(1)
    jobs.launch()
    assert jobs.world.run(120, until=jobs.concluded)
    outcomes = {end.conclusion.outcome for end in jobs.ends()}
    assert outcomes == {"done"}
    assert len(jobs.effects) == 6
    assert set(jobs.effects.values()) == {1}
