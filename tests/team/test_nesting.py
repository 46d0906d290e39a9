"""How a task is tied to the team that does it: full lists of what follows, at the child's launcher."""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ioa_p2p import steps
from ioa_p2p.effects import Effect, Emit, Now, Save
from ioa_p2p.errors import UsageError
from ioa_p2p.team.commands import CancelTeam, Launch, Policy, TaskDone, TaskFailed, TaskProgress
from ioa_p2p.team.events import (
    CancelTask,
    Concluded,
    LaunchFailed,
    NestDropped,
    NestEnded,
    NestWanted,
    StartTask,
    TaskChanged,
)
from ioa_p2p.team.leases import Leases
from ioa_p2p.team.nesting import SPACE, Link, Nesting
from ioa_p2p.team.plan import log_step
from ioa_p2p.team.queue import Queue
from ioa_p2p.team.state import TeamState
from ioa_p2p.team.supervision import Supervision
from ioa_p2p.team.tasks import LAN, WAN
from ioa_p2p.team.worker import Job, Worker
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import nested_team
from ioa_p2p.wire.roster import Caps, SkillBrief
from ioa_p2p.wire.spending import NOTHING, Allowance, Spent
from ioa_p2p.wire.step import Assign, Blob, Cancel, Conclude, Discuss, Outcome, Reassign
from ioa_p2p.wire.team import Report
from tests.team.people import ANN, BOB, COUNT, CY, DEE, NOW, ROSTER, TEAM, WALL, Log, later, member, spec

SURVEY = SkillBrief("site.survey", (), ("site.total",), nests=True)
BROKER = member(BOB, "bob", SURVEY, COUNT)
ABOVE = codec.replace(ROSTER, members=(ROSTER.members[0], BROKER, *ROSTER.members[2:]))
TASK = codec.replace(spec(1, skill=SURVEY), budget=Allowance(100, None, 10, 5))
CHILD = nested_team(TASK.key, BOB.node, 1)
LINK = Link(TEAM, TASK.id, 1, "bob", (TEAM,), TASK.budget, WALL + 90)
START = StartTask(TEAM, TASK, (), 100.0)
WANTED = NestWanted(CHILD, TEAM, TASK.id, 1, "bob", "count", 90.0)
BELOW = codec.replace(ROSTER, team=CHILD, ancestors=(TEAM,), launcher=BOB.node, caps=Caps(budget=TASK.budget))
FILE = Blob("trees", "text/plain", b"h" * 32, 7)


@dataclass
class Known:
    """A team as far as nesting looks at it."""

    state: TeamState
    running: bool = True

    def runs(self, task: bytes, attempt: int) -> bool:
        return self.running


class Node:
    """Bob's, with the team above and perhaps the child; commands are kept, not carried out."""

    def __init__(self, *links: tuple[bytes, Link], child: TeamState | None = None, ancestors: Any = ()) -> None:
        above = Log()
        above.state = TeamState(codec.replace(ABOVE, ancestors=ancestors))
        above.add(Assign("async", (TASK,)))
        self.above = above
        self.teams: dict[bytes, Any] = {TEAM: Known(above.state)}
        if child is not None:
            self.teams[CHILD] = Known(child)
        self.commands: list[Any] = []
        rows = [(key, codec.encode(link)) for key, link in links]
        self.nesting = Nesting(lambda space: rows if space == SPACE else [], self.teams, self._command)

    def _command(self, now: Now, command: Any) -> list[Effect]:
        self.commands.append(command)
        if command.team not in self.teams:
            raise UsageError("no-such-team")
        return []

    def hear(self, event: Any) -> list[Effect]:
        _, effects = self.nesting.on_event(NOW, event)
        return effects


def below(*ended: Any, used: Spent = NOTHING) -> TeamState:
    """A child's state with one task of its own, that put out a list and a file."""
    log = Log(by=BOB)
    log.state = TeamState(BELOW)
    one = codec.replace(spec(9, CY), budget=Allowance(40, None, 2))
    log.add(Assign("async", (one,)))
    outputs = codec.encode({"tree.list": [1, 2]})
    log.add(Outcome(one.id, 1, "succeeded", outputs, (FILE,), "two trees", spent=used))
    log.add(Discuss(BOB.node, "bob", "done"))
    log.add(*ended)
    return log.state


# -- the task begins


def test_what_ties_a_child_to_its_task_is_saved_before_anybody_searches_for_it() -> None:
    node = Node()
    assert node.nesting.on_event(NOW, START) == (True, [Save(SPACE, CHILD, codec.encode(LINK)), Emit(WANTED)])
    assert node.commands == [TaskProgress(TEAM, TASK.id, 1, None, f"forms team {CHILD.hex()[:8]}", NOTHING)]


def test_a_task_of_an_ordinary_skill_goes_to_its_agent() -> None:
    node = Node()
    plain = codec.replace(TASK, skill="words.count")
    assert node.nesting.on_event(NOW, StartTask(TEAM, plain, (), 100.0)) == (False, [])


@pytest.mark.parametrize(
    ("links", "ancestors", "budget", "reason", "retry"),
    [
        ((), (b"1" * 16, b"2" * 16, b"3" * 16), TASK.budget, "too-deep: 3 teams stand above already", False),
        ((), (), Allowance(100), "no-agents: the goal has none left for another team", False),
        (
            ((TEAM, Link(b"1" * 16, b"t" * 16, 1, "bob", (b"1" * 16,), TASK.budget, WALL)),), (b"1" * 16,), TASK.budget,
            "cycle: bob waits already for a team that this one would work for", True,
        ),
    ],
)  # fmt: skip
def test_a_team_that_may_not_be_is_refused_with_a_reason(
    links: Any, ancestors: Any, budget: Allowance, reason: str, retry: bool
) -> None:
    node = Node(*links, ancestors=ancestors)
    assert node.hear(replace(START, spec=codec.replace(TASK, budget=budget))) == []
    assert node.commands == [TaskFailed(TEAM, TASK.id, 1, reason, retry)]


def test_a_start_that_is_repeated_after_a_crash_finds_the_same_child() -> None:
    node = Node((CHILD, LINK))
    assert node.hear(START) == [Emit(WANTED)]
    node = Node((CHILD, LINK), child=below())
    assert node.hear(START) == []
    assert node.commands == [
        TaskProgress(TEAM, TASK.id, 1, 0.5, f"team {CHILD.hex()[:8]}: 1 of 1 tasks over", Spent(calls=1))
    ]


def test_the_launch_of_a_child_is_held_to_its_tasks_terms() -> None:
    node = Node((CHILD, LINK))
    asked = Launch(CHILD, "count trees", BROKER, (), Policy(goal_s=9_000, caps=Caps(turns=7, budget=Allowance())))
    held = node.nesting.on_terms(NOW, asked)
    assert (held.ancestors, held.policy.goal_s, held.policy.caps) == ((TEAM,), 90, Caps(turns=7, budget=TASK.budget))
    assert [skill.name for skill in held.me.skills] == ["words.count"]
    other = replace(asked, team=b"another team 16B")
    assert node.nesting.on_terms(NOW, other) is other


@pytest.mark.parametrize(("link", "now"), [(codec.replace(LINK, cancelled=True), NOW), (LINK, later(90))])
def test_a_child_that_nobody_waits_for_any_more_is_not_launched(link: Link, now: Now) -> None:
    with pytest.raises(UsageError, match="the task ended") as refused:
        Node((CHILD, link)).nesting.on_terms(now, Launch(CHILD, "count trees", BROKER, ()))
    assert refused.value.code == "not-wanted"


# -- the child goes on, and ends


def test_the_childs_tasks_are_the_progress_of_the_task_above() -> None:
    node = Node((CHILD, LINK), child=below(used=Spent(30, 0, 2)))
    node.hear(TaskChanged(CHILD, spec(9, CY), "succeeded", decided=True))
    assert node.commands == [
        TaskProgress(TEAM, TASK.id, 1, 0.5, f"team {CHILD.hex()[:8]}: 1 of 1 tasks over", Spent(30, 0, 2))
    ]
    node.hear(TaskChanged(CHILD, spec(9, CY), "running", decided=False))
    assert len(node.commands) == 1


def test_the_childs_conclusion_is_the_tasks_result_with_its_outputs_files_and_costs() -> None:
    end = Conclude("done", "all counted", (spec(9, CY).id,))
    node = Node((CHILD, LINK), child=below(end, used=Spent(30, 0, 2)))
    outputs = codec.encode({"tree.list": [1, 2], "site.total": "all counted"})
    done = TaskDone(TEAM, TASK.id, 1, outputs, (FILE,), "all counted", Spent(30, 0, 2))
    assert node.hear(Concluded(CHILD, end)) == [Emit(NestEnded(CHILD, done))]


@pytest.mark.parametrize(
    ("outcome", "retry"), [("failed", True), ("cancelled", True), ("cap", False), ("deadline", False)]
)
def test_a_child_that_did_not_get_there_fails_its_task_and_says_why(outcome: Any, retry: bool) -> None:
    end = Conclude(outcome, "no way")
    node = Node((CHILD, LINK), child=below(end))
    failed = TaskFailed(TEAM, TASK.id, 1, f"its team ended as {outcome}: no way", retry, Spent(calls=1))
    assert node.hear(Concluded(CHILD, end)) == [Emit(NestEnded(CHILD, failed))]


def test_a_reason_is_what_happened_and_not_what_a_person_could_do() -> None:
    end = Conclude("failed", "The goal could not be met.\nNot done: soup: the pot leaks.\nSee who else could.")
    (told,) = Node((CHILD, LINK), child=below(end)).hear(Concluded(CHILD, end))
    assert isinstance(told, Emit)
    assert told.event.end.reason == "its team ended as failed: Not done: soup: the pot leaks."


def test_outputs_that_a_report_has_no_room_for_are_left_out_from_the_end() -> None:
    state = below(Conclude("done", "long " * 100, (spec(9, CY).id,)))
    row = state.tasks[spec(9, CY).id]
    large = codec.encode({"tree.list": [1, 2], "tree.text": "x" * (limits.TASK_VALUE_BYTES_MAX - 64)})
    assert row.outcome is not None
    state.tasks[row.spec.id] = replace(row, outcome=codec.replace(row.outcome, outputs=large))
    assert state.conclusion is not None
    (told,) = Node((CHILD, LINK), child=state).hear(Concluded(CHILD, state.conclusion))
    assert isinstance(told, Emit)
    assert set(codec.read_any(told.event.end.outputs)) == {"tree.list", "tree.text"}


def test_a_long_reason_keeps_its_end_where_the_first_cause_stands() -> None:
    end = Conclude("failed", "so it is. " * 30 + "The bridge is out.")
    (told,) = Node((CHILD, LINK), child=below(end)).hear(Concluded(CHILD, end))
    assert isinstance(told, Emit)
    assert len(told.event.end.reason) == 200
    assert told.event.end.reason.endswith("The bridge is out.")


def test_a_launch_in_vain_fails_the_task() -> None:
    node = Node((CHILD, LINK))
    node.hear(LaunchFailed(CHILD, "nobody-fits", ("count",)))
    assert node.commands == [TaskFailed(TEAM, TASK.id, 1, "no team: nobody-fits", True)]


def test_the_end_of_a_child_whose_task_has_its_result_already_is_not_told_again() -> None:
    end = Conclude("done", "all counted")
    node = Node((CHILD, LINK), child=below(end))
    node.teams[TEAM].running = False
    assert node.hear(Concluded(CHILD, end)) == []


# -- nobody waits any more


def test_a_cancelled_task_cancels_its_team_and_that_is_remembered() -> None:
    node = Node((CHILD, LINK), child=below())
    gone = Save(SPACE, CHILD, codec.encode(codec.replace(LINK, cancelled=True)))
    assert node.nesting.on_event(NOW, CancelTask(TEAM, TASK.id, 1, "stop")) == (True, [gone])
    assert node.commands == [CancelTeam(CHILD, reason="the task above it ended")]


def test_a_task_cancelled_while_its_team_is_searched_for_ends_the_search() -> None:
    node = Node((CHILD, LINK))
    gone = Save(SPACE, CHILD, codec.encode(codec.replace(LINK, cancelled=True)))
    assert node.hear(CancelTask(TEAM, TASK.id, 1, "stop")) == [gone, Emit(NestDropped(CHILD))]


@pytest.mark.parametrize(
    "step", [Cancel((TASK.id,), "stop"), Reassign(TASK.id, 2, BOB.node, "bob", "busy", begun=False)]
)
def test_after_a_restart_a_child_whose_task_is_over_or_anothers_is_cancelled(step: Any) -> None:
    node = Node((CHILD, LINK), child=below())
    assert node.nesting.start(NOW) == []
    node.above.add(step)
    node.nesting.start(NOW)
    assert node.commands == [CancelTeam(CHILD, reason="the task above it ended")]


def test_a_link_stays_as_long_as_the_team_above_is_remembered() -> None:
    node = Node((CHILD, LINK), child=below())
    assert node.nesting.forget() == []
    del node.teams[TEAM]
    assert node.nesting.forget() == [Save(SPACE, CHILD, None)]
    assert node.nesting.waiting((CHILD,)) == frozenset()


# -- what the team above gives out


def test_an_order_for_a_team_takes_agents_along_and_any_other_none() -> None:
    state = TeamState(ABOVE)
    survey = steps.Order(BOB.node, "bob", "site.survey", "survey it")
    count = steps.Order(CY.node, "cy", "words.count", "count")
    formed = log_step(steps.FormTeam(survey, "sync"), state, (ANN.node, "ann"), NOW, random.Random(1))
    assert isinstance(formed, Assign)
    assert (formed.mode, formed.tasks[0].budget.agents) == ("sync", (64 - 3) // 2)
    both = log_step(steps.Assign("async", (survey, count)), state, (ANN.node, "ann"), NOW, random.Random(1))
    assert isinstance(both, Assign)
    assert [task.budget.agents for task in both.tasks] == [(64 - 3) // 3, 0]


# -- the worker and the lease of such a task


def worker(*jobs: tuple[bytes, Job]) -> Worker:
    rows = [(task, codec.encode(job)) for task, job in jobs]
    return Worker(BOB.node, TEAM, ANN.node, lambda space: rows if space.startswith("task/") else [], LAN, Queue())


@pytest.mark.parametrize("effect", ["pure", "once"])
def test_after_a_restart_it_is_started_again_whatever_its_effect_with_all_of_its_budget(effect: Any) -> None:
    """The team that it formed went on: nothing is repeated, and what that spent is told anew."""
    skill = codec.replace(SURVEY, effect=effect)
    task = codec.replace(TASK, effect=effect)
    log = Log()
    log.state = TeamState(codec.replace(ABOVE, members=(ABOVE.members[0], member(BOB, "bob", skill))))
    log.add(Assign("async", (task,)))
    again = worker((task.id, Job(1, 1, task, spent=Spent(30, 0, 4))))
    deeds = again.reconcile(NOW, log.state, new=True)
    (start,) = [deed.event for deed in deeds if isinstance(deed, Emit)]
    assert start == StartTask(TEAM, task, (), 600.0)
    again.progress(NOW, TaskProgress(TEAM, task.id, 1, 0.5, spent=Spent(40, 0, 5)))
    (report,) = [deed for deed in again.beat(NOW) if isinstance(deed, Report)]
    assert report.spent == Spent(40, 0, 5)


@pytest.mark.parametrize(("roster", "own"), [(codec.replace(ROSTER, launcher=BOB.node), True), (BELOW, False)])
def test_work_for_a_team_that_was_formed_for_another_does_not_come_before_the_owners(roster: Any, own: bool) -> None:
    log = Log()
    log.state = TeamState(roster)
    log.add(Assign("async", (codec.replace(spec(2), budget=Allowance(10, None, 1)),)))
    bob = Worker(BOB.node, roster.team, BOB.node, lambda space: [], LAN, Queue())
    (start,) = [deed.event for deed in bob.reconcile(NOW, log.state, new=True) if isinstance(deed, Emit)]
    assert start.own is own


def test_it_is_another_members_only_after_its_lease_however_many_lost_the_link_to_its_worker() -> None:
    log = Log()
    log.state = TeamState(
        codec.replace(ABOVE, members=(*ABOVE.members[:2], member(CY, "cy", SURVEY), ABOVE.members[3]))
    )
    log.add(Assign("async", (TASK,)))
    leases = Leases(log.state, LAN, ANN.node, NOW)
    for reporter in (ANN, CY, DEE):
        leases.on_lost(reporter.node, frozenset({BOB.node}))
    (row,) = log.state.open_tasks
    assert leases.due(later(LAN.lease_s), row) is None
    assert leases.due(later(LAN.lease_s + 0.1), row) == Reassign(TASK.id, 2, CY.node, "cy", "worker lost")


# -- the orphan


@pytest.mark.parametrize(("profile", "patience_s"), [(LAN, 5.0), (WAN, 30.0)])
def test_a_nested_team_is_an_orphan_once_its_launcher_is_silent(profile: Any, patience_s: float) -> None:
    watch = Supervision(BELOW, CY.node, profile)
    watch.lead(NOW)
    watch.hear(NOW, BOB.node)
    assert not watch.is_orphaned(later(patience_s))
    watch.hear(later(3), ANN.node)
    assert watch.is_orphaned(later(patience_s + 0.1))
    watch.hear(later(3), BOB.node)
    assert not watch.is_orphaned(later(patience_s + 3))


def test_a_new_coordinator_starts_nothing_before_the_launcher_spoke_to_it() -> None:
    watch = Supervision(BELOW, CY.node, LAN)
    watch.hear(NOW, BOB.node)  # it led, and died
    watch.lead(later(3))
    assert not watch.may_start
    assert not watch.is_orphaned(later(3 + LAN.beat_s / 2))
    assert watch.is_orphaned(later(3 + LAN.beat_s + 0.1))
    watch.hear(later(4), BOB.node)
    assert watch.may_start


@pytest.mark.parametrize(("roster", "me"), [(ROSTER, CY.node), (BELOW, BOB.node)])
def test_a_goal_of_its_own_and_a_launcher_that_leads_are_no_orphans(roster: Any, me: bytes) -> None:
    watch = Supervision(roster, me, LAN)
    watch.lead(NOW)
    assert watch.may_start
    assert not watch.is_orphaned(later(1_000))
