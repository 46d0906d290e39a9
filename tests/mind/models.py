"""Views, and a model planner with a scripted model, for planner tests."""

from dataclasses import replace
from typing import Any

from ioa_p2p.llm.fence import Fence
from ioa_p2p.llm.scripted import Scripted, ScriptedLLM
from ioa_p2p.mind.llm import ModelPlanner
from ioa_p2p.mind.rules import Rules
from ioa_p2p.steps import LineView, MemberView, TaskView, View
from ioa_p2p.wire.roster import SkillBrief

ANN, BOB, CY, DEE = (bytes([number]) * 32 for number in range(1, 5))
COUNT = SkillBrief("words.count", ("text.plain",), ("count.result",), "pure", "Count the words of a text.")
READ = SkillBrief("file.read", (), ("text.plain",), "pure", "Read the file that the goal names.")
SUM = SkillBrief("counts.sum", ("count.result*",), ("sum.result",), "pure", "Add up counts.")
MAIL = SkillBrief("mail.send", (), ("mail.receipt",), "once", "Send a mail.")
MEMBERS = (
    MemberView(ANN, "ann", "", ()),
    MemberView(BOB, "bob", "Reads files.", (READ,)),
    MemberView(CY, "cy", "Counts.", (COUNT, SUM)),
    MemberView(DEE, "dee", "", (MAIL, READ)),
)
VIEW = View(
    b"t" * 16, 7, "Count the words of my notes.", (ANN, "ann"), MEMBERS, "discussion", turns_left=40, seconds_left=600.0
)
READ_IT: dict[str, Any] = {"member": "m2", "skill": "file.read", "goal": "read notes", "reads": [], "gives": []}
COUNT_IT: dict[str, Any] = {"member": "m3", "skill": "words.count", "goal": "count", "reads": ["t1"], "gives": []}
DONE: dict[str, Any] = {"do": "conclude", "outcome": "done", "answer": "17.", "result": "t1", "evidence": ["t1"]}


def step(**fields: Any) -> dict[str, Any]:
    return {"why": "because", "step": fields}


def assign(*orders: dict[str, Any], wait: str = "all") -> dict[str, Any]:
    return step(do="assign", orders=list(orders), wait=wait)


def task(number: int, node: bytes, agent: str, skill: str, state: str = "succeeded", **fields: Any) -> TaskView:
    return TaskView(bytes([number]) * 16, node, agent, skill, state, **fields)


T1 = task(1, BOB, "bob", "file.read", outputs=("text.plain",), summary="two pages")


def seen(*tasks: TaskView, lines: tuple[LineView, ...] = (), **fields: Any) -> View:
    return replace(VIEW, tasks=tasks, lines=lines, **fields)


def planner(*turns: Scripted, **options: Any) -> tuple[ModelPlanner, ScriptedLLM]:
    model = ScriptedLLM(*turns)
    return ModelPlanner(model, Rules(), fence=Fence("5eed"), **options), model
