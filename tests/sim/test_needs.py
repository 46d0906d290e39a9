"""Goals of several needs over whole teams: the real coordinator takes the steps of the rule planner."""

import pytest

from ioa_p2p.team.commands import Policy
from ioa_p2p.team.events import Concluded, PlanRefused
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.step import Conclude, TaskSpec
from tests.mind.market import DEVICE
from tests.sim.jobs import Jobs

LETTER = Skill("letter.read", "Read the letter from the scanner", (), ("letter.text",))
PHOTO = Skill("letter.photograph", "Photograph the letter", (), ("letter.text",))
GERMAN = Skill("letter.translate", "Translate the letter to German", ("letter.text",), ("letter.german",))
TWO = "Measure my disks and translate the letter to German"
OFFICE: dict[str, tuple[Skill, ...]] = {
    "asker": (), "device": (DEVICE,), "scanner": (LETTER,), "camera": (PHOTO,), "linguist": (GERMAN,)
}  # fmt: skip


def end(jobs: Jobs) -> Conclude:
    """Of a whole run; every step of the planner was one that could be taken."""
    jobs.start()
    jobs.launch()
    assert jobs.world.run(400, until=jobs.concluded)
    assert not jobs.told(PlanRefused)
    (conclusion,) = {event.conclusion for event in jobs.told(Concluded)}
    return conclusion


def test_two_needs_run_side_by_side_and_both_results_are_the_answer() -> None:
    jobs = Jobs(1, agents=OFFICE, goal=TWO, run_s=lambda spec: 20.0 if spec.skill == "device.measure" else 2.0)
    conclusion = end(jobs)
    assert (conclusion.outcome, len(conclusion.result)) == ("done", 2)
    assert [run.spec.skill for run in jobs.effects][-1] == "device.measure", "the letter did not wait for it"


def test_an_answer_is_told_before_the_deadline_though_another_task_never_ends() -> None:
    def run_s(spec: TaskSpec) -> float:
        return 9_999.0 if spec.skill == "letter.translate" else 2.0

    conclusion = end(Jobs(2, agents=OFFICE, goal=TWO, policy=Policy(goal_s=60), run_s=run_s))
    assert (conclusion.outcome, len(conclusion.result)) == ("partial", 1)
    assert "Nothing more was tried: the time is over" in conclusion.answer


def test_another_way_is_taken_where_a_worker_keeps_dying() -> None:
    jobs = Jobs(3, agents=OFFICE, goal=TWO, dies=lambda spec: spec.skill == "letter.read")
    conclusion = end(jobs)
    assert conclusion.outcome == "done"
    assert {run.spec.skill for run in jobs.effects} == {"device.measure", "letter.photograph", "letter.translate"}


@pytest.mark.parametrize("seed", range(4, 8))
def test_a_need_without_any_way_left_leaves_the_other_done(seed: int) -> None:
    conclusion = end(Jobs(seed, agents=OFFICE, goal=TWO, dies=lambda spec: spec.skill.startswith("letter")))
    assert (conclusion.outcome, len(conclusion.result)) == ("partial", 1)
    assert "Not done: translate the letter to German: letter." in conclusion.answer
