"""What a team says at its end: what came out, what did not and why, and what a person can do next.

Nothing is claimed that no task reported. Parts stand in the order of the goal.
"""

from collections.abc import Sequence

from ioa_p2p.mind.needs import SHARE_MIN, Need
from ioa_p2p.mind.work import Work
from ioa_p2p.steps import Conclude, TaskView
from ioa_p2p.wire.ids import node_short

NOT_MET = "The goal could not be met: "
_LACKS_TOLD = 8  # of one need; the rest as a count


def conclusion(work: Work, stop: str = "") -> Conclude:
    """stop: why nothing more is given out, though something could be."""
    told = [need for need in work.needs.all if not work.is_told_with_another(need)]
    met = [need for need in told if work.is_met(need)]
    lacks = [task for need in met for task in work.lacks(need)]
    unmet = [need for need in told if need not in met]
    outcome = "failed" if not met else "partial" if unmet or lacks else "done"
    results = tuple(work.answers(need)[0].id for need in met)
    return Conclude(outcome, _answer(work, met, unmet, lacks, stop), evidence(work), results)


def evidence(work: Work) -> tuple[tuple[bytes, str], ...]:
    return tuple((task.id, task.summary) for task in work.view.tasks if task.state == "succeeded" and task.summary)


def _answer(work: Work, met: Sequence[Need], unmet: Sequence[Need], lacks: Sequence[TaskView], stop: str) -> str:
    """One need alone is told without its words, which are the goal."""
    alone = len(met) + len(unmet) == 1
    lines = [f"{'' if alone else f'{need.text}: '}{_said(work.answers(need)[0])}" for need in met]
    if lacks:
        lines.append(f"Without: {_listed(lacks)}.")
    if not met and not alone:
        lines.append("The goal could not be met.")
    lines += [f"{NOT_MET if alone else f'Not done: {need.text}: '}{_why(work, need, stop)}" for need in unmet]
    lines += dict.fromkeys(hint for need in unmet if (hint := _next(work, need)))
    return "\n".join(lines)


def _said(task: TaskView) -> str:
    return task.summary or f"{task.skill} was done by {_who(task)}."


# -- why not


def _why(work: Work, need: Need, stop: str) -> str:
    """The tasks that failed; or that there was nobody to give one to; or what kept it from being given."""
    if lacks := work.lacks(need):
        return f"{_listed(lacks)}.{_stopped(stop)}{_once(lacks)}"
    if need.first is None:
        return f"nobody in the team offers it{_blocked(need)}."
    if work.ways[need] is None:
        return "every way to it failed."
    return f"it was not begun.{_stopped(stop)}"


def _stopped(stop: str) -> str:
    return f" Nothing more was tried: {stop}." if stop else ""


def _blocked(need: Need) -> str:
    """An agent would do, but a goal cannot bring inputs along: somebody has to make them."""
    part = need.fit.nearest
    missing = need.fit.missing(part) if part is not None and need.fit.share((part,)) >= SHARE_MIN else []
    return f"; {part.name} needs an input of type {missing[0]}, which nobody makes" if part and missing else ""


def _once(lacks: Sequence[TaskView]) -> str:
    """What may have happened is not done again by itself."""
    unsure = [task for task in lacks if task.state == "unknown"]
    return f" {unsure[0].skill} may have had its effect, so it is not repeated: ask its owner." if unsure else ""


def _listed(tasks: Sequence[TaskView]) -> str:
    told = [f"{task.skill} by {_who(task)}: {_reason(task)}" for task in tasks[:_LACKS_TOLD]]
    return "; ".join(told) + (f"; and {len(tasks) - len(told)} more" if len(tasks) > len(told) else "")


def _who(task: TaskView) -> str:
    """Which agent of which device: agents of one name are common."""
    return f"{task.agent}@{node_short(task.node)}"


def _reason(task: TaskView) -> str:
    return task.reason or (task.state if task.final else f"not finished ({task.state})")


# -- what next


def _next(work: Work, need: Need) -> str:
    """What a person can do that the team cannot."""
    reasons = " ".join(task.reason for task in work.lacks(need))
    if "not-allowed" in reasons:
        return "A node works for those it allows: its owner can put who asked into `allow` there."
    if "once" not in {part.effect for part in (need.first.parts if need.first else ())}:
        return f"See who else could: `ioa-p2p find {_quotable(need.text)}`."
    return ""


def _quotable(text: str) -> str:
    """For a shell, cut; quotes of the text are left out."""
    plain = "".join(each for each in text if each not in "\"'`$\\\n")
    return f'"{plain[:80]}"'
