"""The `team` adapter: an agent that does each task by forming a team for it. docs/nested-teams.md.

describe ──> card ──> the node says of its skills that they nest      a task ──> the node launches a team, not `run`

[agents.broker]
adapter = "team"                       # any goal: its skill is then team.form

[agents.site]
adapter = "team"
goal = "measure every device and sum up"        # of its teams; {goal} stands for the task's. Default: "{goal}"
skills = [{ name = "site.survey", outputs = ["site.summary"], description = "Survey the site's devices." }]
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from ioa_p2p.adapters import options
from ioa_p2p.adapters.base import Event, Failed, Task
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.roster import ANY_GOAL

NAME = "team"
FORM = Skill(ANY_GOAL, "Reach any goal by a team of its own.", outputs=("team.answer",))
"""What an agent offers that names no skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamOptions(options.AgentOptions):
    """goal: what its teams are for."""

    goal: str = "{goal}"

    def __post_init__(self) -> None:
        if self.concurrency != 1:
            raise ValueError("concurrency: a team takes no place here; limits.tasks_max bounds them")
        if not self.goal.strip() or len(self.goal) > limits.GOAL_CHARS_MAX:
            raise ValueError(f"a goal has 1 to {limits.GOAL_CHARS_MAX} characters")
        for skill in self.skills:
            if skill.inputs:
                raise ValueError(f"{skill.name} takes inputs: a team is given a goal alone")
            if skill.effect == "idempotent":
                raise ValueError(f"{skill.name} is idempotent: a second team has keys of its own; say pure or once")


class TeamAdapter:
    """Says what its teams are good for; the node forms them."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        """Raises UsageError('bad-option' | 'unknown-option')."""
        self._name = name
        self._options = options.read(TeamOptions, name, table)

    async def describe(self) -> Card:
        """Raises AdapterError('bad-card')."""
        return options.card(self._name, self._options, {"skills": [options.plain(FORM)]})

    async def run(self, task: Task) -> AsyncGenerator[Event, None]:
        yield Failed("no-team", "only a node forms teams", retry=False)

    async def aclose(self) -> None: ...


def goal_of(agent: str, table: Mapping[str, Any], task_goal: str) -> str:
    """What a team of this agent is for, when its task's goal is that."""
    wanted = options.read(TeamOptions, agent, table).goal.replace("{goal}", task_goal)
    return wanted[: limits.GOAL_CHARS_MAX]
