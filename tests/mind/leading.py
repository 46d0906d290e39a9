"""A real coordinator over a real log, led by a model planner: members' work and words are scripted, time is ours.

scripted model ── ModelPlanner ──> Coordinator ──> TeamState ──> View ──> ModelPlanner ... until the conclusion
                                       ^── reports and lines of ann's team (tests/team/people.py)
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ioa_p2p.effects import Now
from ioa_p2p.llm.fence import Fence
from ioa_p2p.llm.scripted import Scripted, ScriptedLLM
from ioa_p2p.mind.llm import ModelPlanner
from ioa_p2p.mind.rules import Rules
from ioa_p2p.team.coordinator import Coordinator
from ioa_p2p.team.state import Refused
from ioa_p2p.team.tasks import LAN
from ioa_p2p.wire import codec
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import NOTHING
from ioa_p2p.wire.step import Assign, Conclude, Step, TaskSpec, decode_step
from ioa_p2p.wire.team import Report, Said
from tests.team.people import ANN, NOW, TEAM, Log

ROUNDS_MAX = 400  # a goal that has not ended by then has no end

Work = Callable[[TaskSpec], "Report | None"]


def succeed(spec: TaskSpec) -> Report | None:
    """What a good worker reports: its first output is 17 of something."""
    kinds = {"words.count": "count.result", "counts.sum": "sum.result", "mail.send": "mail.receipt"}
    made = codec.encode({kinds[spec.skill]: 17})
    return Report(TEAM, spec.id, spec.attempt, "succeeded", 100, outputs=made, summary=f"{spec.skill}: 17")


def fail(spec: TaskSpec, *, retry: bool = True) -> Report:
    return Report(TEAM, spec.id, spec.attempt, "failed", note="no ink", retry=retry)


@dataclass
class Leading:
    """`conclusion = await Leading(model).play()`. work: what becomes of a task, None: it still runs. line: what a
    member says when it is asked. decided, refused: log entries, and what the planner was told of its bad steps."""

    model: ScriptedLLM
    work: Work = succeed
    line: Callable[[str], str] = lambda prompt: f"You ask: {prompt}"
    caps: Caps | None = None
    decided: list[Step] = field(default_factory=list[Step])
    problems: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.log = Log(self.caps)
        self.planner = ModelPlanner(self.model, Rules(), fence=Fence("5eed"))
        self.coordinator = Coordinator(self.log.state, (ANN.node, "ann"), LAN, random.Random(1), NOW)
        self.time_s = 0.0

    @property
    def now(self) -> Now:
        return Now(NOW.wall + self.time_s, NOW.boot + self.time_s)

    @property
    def tasks(self) -> list[TaskSpec]:
        return [spec for step in self.decided if isinstance(step, Assign) for spec in step.tasks]

    async def play(self) -> Conclude:
        for _ in range(ROUNDS_MAX):
            self._decide()
            if self.log.state.conclusion is not None:
                return self.log.state.conclusion
            self._answer()
            self._report()
            self._decide()
            await self._plan()
            self.time_s += 0.5
        raise AssertionError("the team did not end")

    def _decide(self) -> None:
        while fresh := self.coordinator.due(self.now):
            for due in fresh:
                step = decode_step(due.step)
                self.decided.append(step)
                changes = self.log.add(step, at=int(self.now.wall))
                refused = next((change.code for change in changes if isinstance(change, Refused)), "")
                self.coordinator.on_decided(due.step, refused)

    def _answer(self) -> None:
        turn = self.log.state.open_turn
        if turn is not None:
            self.coordinator.on_said(turn.node, Said(TEAM, self.log.state.turn, self.line(turn.prompt)))

    def _report(self) -> None:
        for row in self.log.state.open_tasks:
            report = self.work(row.spec) or Report(TEAM, row.spec.id, row.spec.attempt, "running")
            self.coordinator.on_report(self.now, row.spec.node, report)

    async def _plan(self) -> None:
        view = self.coordinator.ask(self.now, {})
        if view is None:
            return
        planned = await self.planner.next_step(view)
        problem = self.coordinator.on_plan(self.now, view.version, planned.step, planned.spent or NOTHING)
        self.problems += [problem] if problem else []


def endless(*turns: Scripted) -> ScriptedLLM:
    """A model that says the same things over and over."""
    return ScriptedLLM(*(turn for _ in range(ROUNDS_MAX) for turn in turns))


def numbered(make: Callable[[int], Any]) -> ScriptedLLM:
    """A model that says something new every time."""
    return ScriptedLLM(*map(make, range(ROUNDS_MAX)))


def told(model: ScriptedLLM) -> Iterator[str]:
    """What was said to the model last, request by request."""
    return (request.messages[-1].text for request in model.requests)


def heard(model: ScriptedLLM, words: str) -> bool:
    return any(words in text for text in told(model))


def of_skill(tasks: Iterable[TaskSpec], skill: str) -> list[TaskSpec]:
    return [spec for spec in tasks if spec.skill == skill]
