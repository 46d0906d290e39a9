"""What a model is shown to plan the next step. docs/planner.md, "What is sent".

    system   the rules of the game                            ─┐ the same at every call of a team,
    user     goal and roster, once                            ─┘ so a provider's cache holds it
    user     now: what may be done, tasks, what was said, what was wrong with the last step

Goal, descriptions, summaries and lines are strangers' words: fenced, quoted, cut.
"""

from ioa_p2p.llm.fence import Fence, quoted
from ioa_p2p.llm.port import Message
from ioa_p2p.mind.history import Count, within
from ioa_p2p.mind.labels import Labels
from ioa_p2p.steps import MemberView, TaskView, View
from ioa_p2p.wire.roster import SkillBrief

ROSTER_TOKENS = 2_500  # sixteen members with a few skills each
TASKS_TOKENS = 1_500
LINES_TOKENS = 1_000

_RULES = """\
You lead a team of agents until its goal is met. Whenever you are asked, choose ONE next step and answer with one \
JSON object {{"why": "one sentence", "step": {{...}}}} and nothing else. A step is one of
{{"do":"speak","member":"m2","text":"..."}} ask a member something; as yourself ({me}): say it to all
{{"do":"assign","orders":[{{"member":"m2","skill":"...","goal":"...","reads":["t1"],"gives":[]}}],"wait":"all"}} \
start tasks; reads: tasks whose results go in; gives: inputs {{"type","text"}} of your own; wait for all, any or none \
of them
{{"do":"wait","tasks":["t1"],"for":"all","seconds":0}} pause for running tasks; 0 = as long as it takes
{nests}{{"do":"conclude","outcome":"done","answer":"...","result":"t2","evidence":["t1"]}} the end: done, partial or \
failed; result: the task whose output is the answer, or ""
Use only members, skills and tasks you are shown. Start what can run side by side together. Give no task that has \
succeeded already. Conclude as soon as the goal is met; say done only if finished tasks prove it, else partial or \
failed, and say what is missing. {fence}"""
_NESTS = '{"do":"form_team","order":{...}} like one order, but its member forms a team of its own for it\n'


def messages(view: View, fence: Fence, count: Count) -> tuple[Message, ...]:
    labels = Labels(view)
    return (
        Message("system", _rules(view, labels, fence)),
        Message("user", _team(view, labels, fence, count)),
        Message("user", _now(view, labels, fence, count)),
    )


def nests(view: View) -> bool:
    """Some member may be told to form a team."""
    return any(skill.nests for member in view.members for skill in member.skills)


def allowed(view: View) -> tuple[str, ...]:
    """What the conversation's phase lets a coordinator do now; see team/phases.py."""
    runs = any(not task.final for task in view.tasks)
    waits = ("wait",) if runs else ()
    if view.phase == "async-assign":
        return ("speak", "assign", *waits)
    return ("speak", "assign", *waits, "conclude")


def complaint(text: str) -> Message:
    """What a model is told of an answer that cannot be used."""
    return Message("user", f"That cannot be used: {text}. Answer again, with one JSON object.")


def _rules(view: View, labels: Labels, fence: Fence) -> str:
    return _RULES.format(me=labels.of_member(*view.me), fence=fence.rule, nests=_NESTS if nests(view) else "")


def _team(view: View, labels: Labels, fence: Fence, count: Count) -> str:
    members = [_member(label, one) for label, one in labels.members.items()]
    if sum(map(count, members)) > ROSTER_TOKENS:
        share = ROSTER_TOKENS // len(members)
        members = [_brief(label, one, share, count) for label, one in labels.members.items()]
    return fence.around([f"goal: {quoted(view.goal, 2_000)}", "members:", *members])


def _member(label: str, member: MemberView) -> str:
    about = f" {quoted(member.description)}" if member.description else ""
    return f"{label} {member.agent}{about}: {'; '.join(map(_skill, member.skills)) or 'no skills'}"


def _brief(label: str, member: MemberView, tokens: int, count: Count) -> str:
    """Names and types alone, as many as there is room for."""
    told = f"{label} {member.agent}:"
    for place, skill in enumerate(member.skills):
        longer = f"{told} {_skill(skill, brief=True)};"
        if count(longer) > tokens:
            return f"{told} and {len(member.skills) - place} more"
        told = longer
    return told


def _skill(skill: SkillBrief, brief: bool = False) -> str:
    """name(inputs) -> outputs "what it does" [how]"""
    about = f" {quoted(skill.description)}" if skill.description and not brief else ""
    how = " [by a team of its own]" if skill.nests else ""
    how += " [never repeat it]" if skill.effect == "once" else ""
    return f"{skill.name}({', '.join(skill.inputs)}) -> {', '.join(skill.outputs) or 'nothing'}{about}{how}"


def _now(view: View, labels: Labels, fence: Fence, count: Count) -> str:
    tasks = within([_task(label, task, labels) for label, task in labels.tasks.items()], TASKS_TOKENS, count, "tasks")
    lines = within([f"{labels.of_member(line.node, line.agent)}: {quoted(line.text)}" for line in view.lines],
                   LINES_TOKENS, count)  # fmt: skip
    away = [label for label, one in labels.members.items() if not one.here]
    told = [
        f"You may now: {', '.join(allowed(view))}. Left: {view.turns_left} turns, {view.seconds_left:.0f} seconds.",
        f"Not reachable: {', '.join(away)}." if away else "",
        fence.around(["tasks:", *(tasks or ["none yet"]), "said:", *(lines or ["nothing yet"])]),
        f"Your last step could not be used: {quoted(view.problem)}. Choose another." if view.problem else "",
    ]
    return "\n".join(filter(None, told))


def _task(label: str, task: TaskView, labels: Labels) -> str:
    """t1 m2 words.count succeeded, gives count.result "17 words" """
    gives = f", gives {', '.join(task.outputs)}" if task.outputs else ""
    reads = f" of {', '.join(map(labels.of_task, task.inputs))}" if task.inputs else ""
    said = quoted(task.summary or task.reason) if task.summary or task.reason else ""
    return f"{label} {labels.of_member(task.node, task.agent)} {task.skill}{reads} {task.state}{gives} {said}".rstrip()
