"""The rule planner in markets drawn at random: it ends, gives no part without its inputs, and repeats no ONCE."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ioa_p2p.mind.rules import next_step, wants
from ioa_p2p.steps import Assign, Await, Conclude, FoundAgent, LineView, Speak, Step, TaskView, View
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card, EffectClass, Skill
from tests.mind.market import member, node, view

TYPES = ("ore", "iron", "nail", "board", "house")
VERBS = ("dig ore", "melt iron", "forge nails", "saw boards", "build house")
GOALS = (
    "Build house",
    "Forge nails and saw boards",
    "Dig ore, then melt iron. Also build house",
    "Saw boards and sing",
)
STEPS_MAX = 200

effects: st.SearchStrategy[EffectClass] = st.sampled_from(("pure", "idempotent", "once"))
inputs = st.lists(st.sampled_from([*TYPES, *(f"{each}*" for each in TYPES)]), max_size=2, unique=True).map(tuple)
skills = st.builds(
    Skill,
    st.integers(0, 9).map("skill.s{}".format),
    st.sampled_from(VERBS),
    inputs,
    st.lists(st.sampled_from(TYPES), max_size=2, unique=True).map(tuple),
    effect=effects,
)
cards = st.lists(st.lists(skills, min_size=1, max_size=3, unique_by=lambda skill: skill.name), min_size=1, max_size=8)
states = st.sampled_from(("succeeded", "succeeded", "failed", "cancelled", "expired", "dead-letter", "unknown"))


def market(drawn: list[list[Skill]]) -> tuple[FoundAgent, ...]:
    return tuple(
        FoundAgent(node(number), Card(f"agent-{number}", "", "1", tuple(each)), (f"/memory/{number}",))
        for number, each in enumerate(drawn, 1)
    )


class Play:
    """A team whose tasks end as drawn, in drawn order: `end = Play(view, draw).end()`."""

    def __init__(self, seen: View, data: st.DataObject, *, fails: bool = False) -> None:
        self.seen = seen
        self.fails = fails
        self._data = data
        self._skills = {(one.node, one.agent, skill.name): skill for one in seen.members for skill in one.skills}

    def end(self) -> Conclude:
        for _ in range(STEPS_MAX):
            step = next_step(self.seen)
            assert step == next_step(self.seen)
            if isinstance(step, Conclude):
                assert self.seen.phase == "discussion"
                return step
            self._take(step)
        raise AssertionError("no end")

    def _take(self, step: Step) -> None:
        match step:
            case Speak():
                lines = (*self.seen.lines, LineView(step.node, step.agent, step.text))
                self.seen = replace(self.seen, lines=lines, phase="discussion")
            case Assign():
                self._assign(step)
            case Await():
                self._await(step)
            case _:
                raise AssertionError(step)

    def _assign(self, step: Assign) -> None:
        assert step.mode == "async" or self.seen.phase == "discussion"
        assert 1 <= len(step.orders) <= (limits.STEP_TASKS_MAX if step.mode == "async" else 1)
        self._check_inputs(step)
        new = [
            TaskView((len(self.seen.tasks) + place).to_bytes(16), order.node, order.agent, order.skill, "offered",
                     inputs=tuple(task for source in order.inputs for task in source.tasks))
            for place, order in enumerate(step.orders)
        ]  # fmt: skip
        done = [self._ended(task) for task in new] if step.mode == "sync" else new
        phase = "discussion" if step.mode == "sync" else "async-assign"
        self.seen = replace(self.seen, tasks=(*self.seen.tasks, *done), phase=phase)

    def _check_inputs(self, step: Assign) -> None:
        """Each input of a skill has something, from tasks that succeeded at a skill that gives it."""
        tasks = {task.id: task for task in self.seen.tasks}
        for order in step.orders:
            skill = self._skills[order.node, order.agent, order.skill]
            assert [source.type for source in order.inputs] == [each.rstrip("*") for each in skill.inputs]
            for source, wanted in zip(order.inputs, skill.inputs, strict=True):
                assert len(source.tasks) == 1 or (source.tasks and wanted.endswith("*"))
                for task in (tasks[each] for each in source.tasks):
                    assert task.state == "succeeded"
                    assert source.type in self._skills[task.node, task.agent, task.skill].outputs

    def _await(self, step: Await) -> None:
        """All of them end, or one."""
        waited = {task.id for task in self.seen.tasks if task.id in step.tasks and not task.final}
        assert waited, "to wait for nothing is refused"
        ends = waited if step.mode == "all" else {self._data.draw(st.sampled_from(sorted(waited)))}
        tasks = tuple(self._ended(task) if task.id in ends else task for task in self.seen.tasks)
        self.seen = replace(self.seen, tasks=tasks, phase="discussion")

    def _ended(self, task: TaskView) -> TaskView:
        state = "failed" if self.fails else self._data.draw(states)
        said = f"{task.skill} at {task.agent}" if state == "succeeded" else ""
        return replace(task, state=state, summary=said, reason="broken", retry=self._data.draw(st.booleans()))


def team(drawn: list[list[Skill]], goal: str) -> View:
    base = view((), goal)
    costs = (sum(map(len, drawn)) * number % 3 for number in range(len(drawn)))
    members = (member(found, cost) for found, cost in zip(market(drawn), costs, strict=True))
    return replace(base, members=(*base.members, *members))


@settings(max_examples=60, deadline=None)
@given(cards, st.sampled_from(GOALS), st.data())
def test_whatever_is_offered_and_fails_it_ends(drawn: list[list[Skill]], goal: str, data: st.DataObject) -> None:
    play = Play(team(drawn, goal), data)
    end = play.end()
    succeeded = {task.id for task in play.seen.tasks if task.state == "succeeded"}
    assert set(end.results) <= succeeded
    assert (end.outcome == "failed") == (not end.results)
    assert all(task.final for task in play.seen.tasks)
    assert len(end.answer) <= limits.ANSWER_CHARS_MAX


@settings(max_examples=60, deadline=None)
@given(cards, st.sampled_from(GOALS), st.data())
def test_what_happens_once_is_given_once(drawn: list[list[Skill]], goal: str, data: st.DataObject) -> None:
    play = Play(team(drawn, goal), data)
    play.end()
    effect = {(one.node, one.agent, skill.name): skill.effect for one in play.seen.members for skill in one.skills}
    given_out = Counter((task.node, task.agent, task.skill) for task in play.seen.tasks)
    assert all(count == 1 for task, count in given_out.items() if effect[task] == "once")
    for task in play.seen.tasks:
        if task.state != "succeeded" and effect[task.node, task.agent, task.skill] == "once":
            later = play.seen.tasks[play.seen.tasks.index(task) + 1 :]
            assert not any(_repeats(play, task, other) for other in later)


def _repeats(play: Play, task: TaskView, other: TaskView) -> bool:
    """The same inputs again, for an effect that may be there already; to each of all members at once is none."""
    skill = {(one.node, one.agent, each.name): each for one in play.seen.members for each in one.skills}
    mine, theirs = (skill[each.node, each.agent, each.skill] for each in (task, other))
    same = (mine.name, mine.inputs, mine.outputs) == (theirs.name, theirs.inputs, theirs.outputs)
    taken = {each for one in play.seen.members for each_skill in one.skills for each in each_skill.inputs}
    return same and not any(f"{each}*" in taken for each in mine.outputs)


@settings(max_examples=40, deadline=None)
@given(cards, st.sampled_from(GOALS), st.data())
def test_with_everything_failing_it_says_failed(drawn: list[list[Skill]], goal: str, data: st.DataObject) -> None:
    end = Play(team(drawn, goal), data, fails=True).end()
    assert (end.outcome, end.results, end.evidence) == ("failed", (), ())
    assert end.answer.startswith("The goal could not be met")


@settings(max_examples=40, deadline=None)
@given(cards, st.sampled_from(GOALS))
def test_a_search_ends_and_its_roles_are_filled_from_what_was_found(drawn: list[list[Skill]], goal: str) -> None:
    found, searched = market(drawn), frozenset[str]()
    wanted = wants(goal, found, searched)
    for _ in range(4):
        searched |= set(wanted.queries)
        wanted = wants(goal, found, searched)
    assert searched.issuperset(wanted.queries)
    assert wanted.done == (not wanted.unserved)
    known = {(each.node, each.card.name, skill.name) for each in found for skill in each.card.skills}
    hired = {(one.node, one.agent, role.name) for role in wanted.roles for one in role.candidates}
    assert hired <= known
