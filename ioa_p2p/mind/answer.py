"""A model's answer ──> one Step, or what is wrong with it in words that the model can use.

    text ── JSON, mended ──> {"step": {"do": ...}} ── known? allowed? not done already? proven? ──> Step | PeerError

Whatever is sure to fail is found here, while the model can still be asked again. What it left out and there is only
one right way to fill in (inputs, evidence) is filled in. The coordinator checks every Step anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from ioa_p2p.errors import PeerError
from ioa_p2p.llm.port import Reply
from ioa_p2p.llm.reading import is_object, read_object
from ioa_p2p.mind.labels import Labels
from ioa_p2p.mind.prompt import allowed, nests
from ioa_p2p.steps import Assign, Await, Conclude, FormTeam, MemberView, Order, Source, Speak, Step, TaskView, View
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.roster import SkillBrief

TRIES_MAX = 2  # of one skill at one member
Wait = Literal["all", "any", "none"]


@dataclass(frozen=True, slots=True)
class Read:
    """A step, and for an assignment which of its tasks to wait for, and why the model chose it."""

    step: Step
    wait: Wait = "none"
    why: str = ""


def read(reply: Reply, view: View) -> Read:
    """Raises PeerError, whose text is for the model."""
    if reply.finish == "refused":
        raise _bad("you refused, yet only a step is wanted; if nothing can be done, conclude as failed")
    if not reply.text.strip():
        raise _bad("your answer is empty")
    if reply.finish == "length":
        raise _bad("your answer is too long and was cut off; be brief")
    fields = read_object(reply.text)
    step = fields.get("step", fields)  # some models leave the outer object out
    if not is_object(step):
        raise _bad("there is no step in it")
    made = _Reader(view).step(step)
    return Read(made, _wait(step), _text(fields, "why", 200))


def _wait(step: dict[str, Any]) -> Wait:
    wait = step.get("wait")
    return wait if wait in ("all", "any") else "none"


class _Reader:
    def __init__(self, view: View) -> None:
        self._view = view
        self._labels = Labels(view)

    def step(self, step: dict[str, Any]) -> Step:
        do = step.get("do")
        known = [*allowed(self._view), *(["form_team"] if nests(self._view) else [])]
        if do not in known:
            raise _bad(f"{do!r:.40} is no step you may take now; you may: {', '.join(known)}")
        reads = {
            "speak": self._speak, "assign": self._assign, "wait": self._await, "conclude": self._conclude,
            "form_team": self._form_team,
        }  # fmt: skip
        return reads[str(do)](step)

    def _speak(self, step: dict[str, Any]) -> Step:
        member = self._labels.member(_text(step, "member"))
        text = _text(step, "text", limits.LINE_CHARS_MAX)
        if not text:
            raise _bad("a line needs a text")
        if (member.node, member.agent) == self._view.me:
            return Speak(member.node, member.agent, text=text)
        return Speak(member.node, member.agent, prompt=text)

    def _assign(self, step: dict[str, Any]) -> Step:
        told = _list(step, "orders")
        if not 1 <= len(told) <= limits.STEP_TASKS_MAX:
            raise _bad(f"an assignment has 1 to {limits.STEP_TASKS_MAX} orders")
        orders = [self._order(each, place) for place, each in enumerate(told, 1)]
        orders = [_pinned(order, orders) for order in orders]
        keys = {(order.node, order.agent, order.skill, order.goal, order.inputs) for order in orders}
        if len(keys) < len(orders):
            raise _bad("two orders are the same")
        sync = len(orders) == 1 and step.get("wait") == "all" and self._view.phase == "discussion"
        return Assign("sync" if sync and not self._running() else "async", tuple(orders))

    def _form_team(self, step: dict[str, Any]) -> Step:
        order = self._order(step.get("order"), 1)
        member = next(one for one in self._view.members if (one.node, one.agent) == (order.node, order.agent))
        if not self._skill(member, order.skill).nests:
            raise _bad(f"{order.agent} forms no team for {order.skill}; assign it")
        return FormTeam(order)

    def _await(self, step: dict[str, Any]) -> Step:
        labels = [label for label in _list(step, "tasks") if isinstance(label, str)]
        tasks = [self._labels.task(label) for label in labels] or self._running()
        open_tasks = tuple(dict.fromkeys(task.id for task in tasks if not task.final))
        if not open_tasks:
            raise _bad("none of these tasks runs")
        seconds = step.get("seconds")
        wait_s = seconds if isinstance(seconds, int) and 0 < seconds < self._view.seconds_left else 0
        return Await(open_tasks[: limits.STEP_TASKS_MAX], "any" if step.get("for") == "any" else "all", wait_s)

    # -- orders

    def _order(self, told: Any, place: int) -> Order:
        try:
            if not is_object(told):
                raise _bad("it is no object")
            member = self._labels.member(_text(told, "member"))
            skill = self._skill(member, _text(told, "skill"))
            goal = _text(told, "goal", limits.GOAL_CHARS_MAX) or self._view.goal
            inputs = self._inputs(skill, _list(told, "reads"), _list(told, "gives"))
            self._check_news(member, skill, inputs)
        except PeerError as fault:
            raise _bad(f"order {place}: {fault}") from None
        return Order(member.node, member.agent, skill.name, goal, inputs)

    def _skill(self, member: MemberView, name: str) -> SkillBrief:
        """By its name, also if the model wrote it with its inputs and outputs, as it was shown."""
        plain = name.partition("(")[0].strip()
        for skill in member.skills:
            if skill.name == plain:
                return skill
        names = ", ".join(skill.name for skill in member.skills) or "none"
        raise _bad(f"{member.agent} has no skill {plain[:60]!r}; it has: {names}")

    def _inputs(self, skill: SkillBrief, reads: list[Any], gives: list[Any]) -> tuple[Source, ...]:
        """What the model named; where it named nothing for a type, the finished tasks that give it."""
        named = [self._finished(label) for label in reads if isinstance(label, str)]
        given = {_text(each, "type"): _text(each, "text", limits.LINE_CHARS_MAX) for each in gives if is_object(each)}
        return tuple(self._source(each, named, given) for each in skill.inputs)

    def _source(self, wanted: str, named: Sequence[TaskView], given: dict[str, str]) -> Source:
        plain, many = wanted.rstrip("*"), wanted.endswith("*")
        if given.get(plain):
            return Source(plain, value=codec.encode([given[plain]] if many else given[plain]))
        found = [task.id for task in named if plain in task.outputs]
        found = found or [task.id for task in self._view.tasks if task.state == "succeeded" and plain in task.outputs]
        if not found:
            raise _bad(f"it needs an input of type {plain}, which no finished task gives")
        return Source(plain, tuple(found if many else found[-1:])[: limits.TEAM_MEMBERS_MAX])

    def _finished(self, label: str) -> TaskView:
        task = self._labels.task(label)
        if task.state != "succeeded":
            raise _bad(f"it reads {label}, which is {task.state}")
        return task

    def _check_news(self, member: MemberView, skill: SkillBrief, inputs: tuple[Source, ...]) -> None:
        """The same again is a mistake, unless it failed and may help."""
        ids = {task for source in inputs for task in source.tasks}
        same = [task for task in self._view.tasks if task.skill == skill.name and set(task.inputs) == ids]
        for task in (task for task in same if (task.node, task.agent) == (member.node, member.agent)):
            label = self._labels.of_task(task.id)
            if not task.final or task.state == "succeeded":
                raise _bad(f"that is {label}, which is {task.state}")
            if not task.retry or skill.effect == "once":
                raise _bad(f"{label} was that and another try cannot help")
        if sum((task.node, task.agent) == (member.node, member.agent) for task in same) >= TRIES_MAX:
            raise _bad(f"{member.agent} failed at it {TRIES_MAX} times")

    def _running(self) -> list[TaskView]:
        return [task for task in self._view.tasks if not task.final]

    # -- the end

    def _conclude(self, step: dict[str, Any]) -> Step:
        outcome = step.get("outcome")
        if outcome not in ("done", "partial", "failed"):
            raise _bad("an outcome is done, partial or failed")
        answer = _text(step, "answer", limits.ANSWER_CHARS_MAX)
        if not answer:
            raise _bad("a conclusion needs an answer")
        result = self._finished(label) if (label := _text(step, "result")) else None
        if outcome == "done":
            self._check_proof()
        if outcome == "failed":
            self._check_despair()
        evidence = self._evidence([label for label in _list(step, "evidence") if isinstance(label, str)])
        return Conclude(outcome, answer, evidence, (result.id,) if result else ())

    def _check_proof(self) -> None:
        """A goal is done by tasks that succeeded, or by what others said."""
        others = [line for line in self._view.lines if (line.node, line.agent) != self._view.me and line.text]
        if not others and not any(task.state == "succeeded" for task in self._view.tasks):
            raise _bad("no task has succeeded, so it is not done; go on, or conclude as partial or failed")
        lacking = [task for task in self._view.tasks if task.state != "succeeded" and not self._made_good(task)]
        if lacking:
            label = self._labels.of_task(lacking[0].id)
            raise _bad(f"{label} is {lacking[0].state}, so it is not all done; go on, or conclude as partial")

    def _check_despair(self) -> None:
        """A goal has failed only after what could be tried was tried."""
        if running := self._running():
            raise _bad(f"{self._labels.of_task(running[0].id)} still runs; wait for it, or conclude as partial")
        if done := [task for task in self._view.tasks if task.state == "succeeded"]:
            raise _bad(
                f"{self._labels.of_task(done[0].id)} has succeeded; conclude as partial or done, with its result"
            )
        if not self._view.tasks and self._could_try():
            raise _bad("nothing was tried yet")

    def _made_good(self, failed: TaskView) -> bool:
        """The same skill, by whomever, succeeded afterwards."""
        after = self._view.tasks[self._view.tasks.index(failed) + 1 :]
        return any(task.skill == failed.skill and task.state == "succeeded" for task in after)

    def _could_try(self) -> bool:
        return any(skill for member in self._view.members for skill in member.skills if not skill.inputs)

    def _evidence(self, labels: list[str]) -> tuple[tuple[bytes, str], ...]:
        """The tasks it named, and all others that succeeded and said something: nothing is kept back."""
        named = [self._finished(label) for label in labels]
        rest = [task for task in self._view.tasks if task.state == "succeeded" and task.summary]
        tasks = dict.fromkeys([*named, *rest])
        return tuple((task.id, task.summary) for task in tasks)[: limits.EVIDENCE_MAX]


def _pinned(order: Order, orders: list[Order]) -> Order:
    """Where several do the same, each does it for itself: nobody stands in for another."""
    alike = sum(other.skill == order.skill for other in orders)
    return Order(order.node, order.agent, order.skill, order.goal, order.inputs, pinned=alike > 1)


def _text(fields: dict[str, Any], name: str, chars_max: int = 100) -> str:
    value = fields.get(name, "")
    return value.strip()[:chars_max].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name, [])
    return cast(list[Any], value)[:64] if isinstance(value, list) else []


def _bad(text: str) -> PeerError:
    return PeerError("bad-step", text)
