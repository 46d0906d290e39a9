"""A small market of agents for planner tests: three devices, an analyst, a charter, a writer, near misses."""

from collections.abc import Callable
from dataclasses import replace

from ioa_p2p.mind.rules import next_step
from ioa_p2p.steps import Assign, Await, Conclude, FoundAgent, LineView, MemberView, Speak, Step, TaskView, View
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.roster import SkillBrief

GOAL = "How are my devices doing? Find anything unusual, and write a short report with a chart."

DEVICE = Skill("device.measure", "Measure the CPU, memory and disk of this device", (), ("metrics.samples",))
ANALYST = Skill(
    "metrics.analyse", "Find unusual values, outliers and trends", ("metrics.samples*",), ("metrics.findings",)
)
CHARTER = Skill(
    "chart.draw", "Draw a chart of measurements", ("metrics.samples*", "metrics.findings"), ("image.chart",)
)
WRITER = Skill(
    "report.write", "Write a short report of findings with a chart",
    ("metrics.findings", "image.chart"), ("report.markdown",),
)  # fmt: skip
NEAR_MISSES = (
    Skill("weather.report", "Write a short weather report", (), ("weather.text",)),
    Skill("stock.chart", "Draw a chart of stock prices", ("stock.prices",), ("image.chart",)),
    Skill("report.translate", "Translate a report", ("report.markdown",), ("report.translated",)),
    Skill("device.sell", "Find a shop for used devices", (), ("shop.offer",)),
)


def node(number: int) -> bytes:
    return bytes([number]) * 32


def agent(number: int, name: str, *skills: Skill) -> FoundAgent:
    return FoundAgent(node(number), Card(name, "", "1", skills), (f"/memory/{number}",))


REAL = (
    agent(1, "device-1", DEVICE),
    agent(2, "device-2", DEVICE),
    agent(3, "device-3", DEVICE),
    agent(4, "analyst", ANALYST),
    agent(5, "charter", CHARTER),
    agent(6, "writer", WRITER),
)
ALL = (*(agent(20 + n, f"miss-{n}", skill) for n, skill in enumerate(NEAR_MISSES)), *REAL)


def brief(skill: Skill) -> SkillBrief:
    return SkillBrief(skill.name, skill.inputs, skill.outputs, skill.effect, skill.description)


def member(found: FoundAgent, cost: int = 0) -> MemberView:
    return MemberView(found.node, found.card.name, "", tuple(map(brief, found.card.skills)), cost)


def view(found: tuple[FoundAgent, ...] = REAL, goal: str = GOAL) -> View:
    asker = MemberView(node(9), "asker", "", ())
    return View(b"t" * 16, 1, goal, (node(9), "asker"), (asker, *map(member, found)), "discussion", seconds_left=600.0)


def play(start: View, outcome: Callable[[TaskView], TaskView]) -> list[Step]:
    """All steps until the conclusion; `outcome` ends each task. Every step must be one the phase allows."""
    steps: list[Step] = []
    seen = start
    while len(steps) < 40:
        step = next_step(seen)
        steps.append(step)
        match step:
            case Conclude():
                assert seen.phase == "discussion"
                return steps
            case Speak():
                lines = (*seen.lines, _line(step))
                seen = replace(seen, lines=lines, phase="discussion")
            case Assign():
                seen = _assign(seen, step, outcome)
            case Await():
                tasks = tuple(
                    outcome(task) if task.id in step.tasks and not task.final else task for task in seen.tasks
                )
                seen = replace(seen, tasks=tasks, phase="discussion")
            case _:
                raise AssertionError(step)
    raise AssertionError("no end")


def _assign(seen: View, step: Assign, outcome: Callable[[TaskView], TaskView]) -> View:
    assert step.mode == "async" or seen.phase == "discussion"
    new = [
        TaskView(bytes([len(seen.tasks) + n]) * 16, order.node, order.agent, order.skill, "offered",
                 inputs=tuple(task for source in order.inputs for task in source.tasks))
        for n, order in enumerate(step.orders)
    ]  # fmt: skip
    if step.mode == "sync":
        return replace(seen, tasks=(*seen.tasks, *map(outcome, new)), phase="discussion")
    return replace(seen, tasks=(*seen.tasks, *new), phase="async-assign")


def _line(step: Speak) -> LineView:
    return LineView(step.node, step.agent, step.text)
