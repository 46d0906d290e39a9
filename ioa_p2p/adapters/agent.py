"""What the author of a Python agent needs: a function with a `@skill` is an agent.

    from ioa_p2p.adapters.agent import skill

    @skill("text.count", outputs=["text.words"], description="Count the words of the goal.")
    def count(task, progress):
        progress(0.5, "half way")
        return len(task.goal.split())

Plain functions, async functions and (async) generators all work. They take `(task, progress)`, `(task)` or nothing.
What comes back: the value of the one declared output; a dict by type name when several are declared; or a `Result`
for attachments and a summary; or a `Failed` for "it cannot be done". An exception is Failed('agent-error').
A generator yields text (a delta; without another result all deltas joined are the result), `Progress`, `Delta`,
and at last its value. Cancel reaches async code as CancelledError; a plain function is ended with its process.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ioa_p2p.adapters.base import Attachment, Delta, Failed, Progress, Result, Task
from ioa_p2p.wire.records import EffectClass, Skill

__all__ = ["Attachment", "Delta", "Failed", "Progress", "Report", "Result", "Task", "arguments", "skill", "skills_of"]

F = TypeVar("F", bound=Callable[..., Any])
Report = Callable[..., None]
"""`progress(fraction=None, note="", spent=Spent())`: fraction 0..1; spent so far. May be called from any thread."""

_MARK = "__ioa_skill__"


def skill(
    name: str,
    *,
    description: str = "",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    tags: Sequence[str] = (),
    examples: Sequence[str] = (),
    effect: EffectClass = "pure",
) -> Callable[[F], F]:
    """Make a function a skill. The description defaults to the function's docstring.

    inputs, outputs: type names; "metrics.samples*" takes all there are. effect: "pure" may run again freely,
    "idempotent" has one effect per `task.key`, "once" is never repeated by itself.
    """

    def mark(function: F) -> F:
        text = description or inspect.getdoc(function) or ""
        made = Skill(name, text, tuple(inputs), tuple(outputs), tuple(tags), tuple(examples), effect)
        setattr(function, _MARK, made)
        return function

    return mark


def skills_of(module: object) -> dict[str, tuple[Skill, Callable[..., Any]]]:
    """Skill name -> its Skill and function, in the order they are written."""
    found: dict[str, tuple[Skill, Callable[..., Any]]] = {}
    for value in vars(module).values():
        made = getattr(value, _MARK, None)
        if isinstance(made, Skill):
            found[made.name] = (made, value)
    return found


def arguments(function: Callable[..., Any], task: Task, progress: Report) -> tuple[Any, ...]:
    """As many of (task, progress) as the function takes."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [each for each in inspect.signature(function).parameters.values() if each.kind in kinds]
    return (task, progress)[: len(taken)]
