"""Teams within teams in a `World`: asker ──> fronts ──> yards ──> leaves; each level forms its own team for its task.

    NestWanted ── a search of 0.1 s ──> Launch of what that agent looks for        NestEnded ──> told at once

Plans are by rules. What each agent's team is for, and whom it may call, stands in `BELOW`.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.steps import Candidate, Role
from ioa_p2p.team.commands import Launch, Policy, TaskFailed
from ioa_p2p.team.events import LaunchFailed, NestDropped, NestEnded, NestWanted
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec
from ioa_p2p.wire.records import Skill
from ioa_p2p.wire.roster import Member
from tests.sim.jobs import TEAM, Jobs
from tests.sim.world import World

SYNC, ASYNC = "Survey a site", "Add the totals of all sites"
SURVEY = Skill("site.survey", "Survey a site", (), ("site.total",))
ADD = Skill("total.add", "Add the totals of all sites", ("site.total*",), ("sum.result",))
COUNT = Skill("yard.count", "Count what the yard has", (), ("yard.trees",))
MEASURE = Skill("tree.measure", "Measure each tree", (), ("tree.list",))
CAST: dict[str, tuple[Skill, ...]] = {
    "asker": (),
    "front-a": (SURVEY,),
    "front-b": (SURVEY,),
    "yard-a": (COUNT,),
    "yard-b": (COUNT,),
    "leaf-a": (MEASURE,),
    "leaf-b": (MEASURE,),
    "leaf-c": (MEASURE,),
    "desk": (ADD,),
}
HOMES = {"desk": "leaf-c"}
BELOW = {"front": ("Count what the yard has", COUNT), "yard": ("Measure each tree", MEASURE)}
"""First word of an agent's name -> the goal of its teams, and the skill that they look for."""


@dataclass
class Estate(Jobs):
    """top: the skill that the root looks for; with ASYNC of all that offer it. below: as BELOW."""

    agents: dict[str, tuple[Skill, ...]] = field(default_factory=lambda: dict(CAST))
    homes: dict[str, str] = field(default_factory=lambda: dict(HOMES))
    goal: str = SYNC
    policy: Policy = field(default_factory=lambda: Policy(goal_s=200))
    below: dict[str, tuple[str, Skill]] = field(default_factory=lambda: dict(BELOW))
    top: Skill = SURVEY
    launchers_lead: bool = True
    search_s: float = 0.1

    def member(self, name: str) -> Member:
        made = super().member(name)
        nests = name.split("-")[0] in self.below
        return codec.replace(made, skills=tuple(codec.replace(skill, nests=nests) for skill in made.skills))

    def launch(self) -> None:
        skills = [self.top, ADD] if self.goal == ASYNC else [self.top]
        roles = tuple(replace(self.role(skill), count=0 if self.goal == ASYNC else 1) for skill in skills)
        self.world.command(self.asker, Launch(TEAM, self.goal, self.member("asker"), roles, self.policy))

    def role(self, wanted: Skill) -> Role:
        there = [name for name, skills in self.agents.items() if wanted in skills]
        return Role(wanted.name, (wanted.name,), tuple(Candidate(self.node(name), name) for name in there))

    def tell(self, node: bytes, command: Any) -> None:
        """What comes too late is nobody's fault."""
        try:
            super().tell(node, command)
        except UsageError as fault:
            if fault.code not in ("not-wanted", "team-ended"):
                raise

    def _on_event(self, world: World, node: bytes, event: Any) -> None:
        match event:
            case NestWanted():
                life = world.hosts[node].life
                world.after(self.search_s, partial(self._found, node, life, event))
            case NestEnded():
                self.tell(node, event.end)
            case NestDropped():
                pass
            case _:
                super()._on_event(world, node, event)

    def _found(self, node: bytes, life: int, event: NestWanted) -> None:
        if self.world.hosts[node].life != life:
            return
        goal, skill = self.below[event.agent.split("-")[0]]
        role = self.role(skill)
        if not role.candidates:
            self.tell(node, TaskFailed(event.parent, event.task, event.attempt, "no team: nobody was found"))
            return
        policy = Policy(leaders=frozenset(self.names))
        me = codec.replace(self.member(event.agent), may_coordinate=self.launchers_lead)
        self.tell(node, Launch(event.team, goal, me, (role,), policy))

    # -- looking

    @property
    def everything(self) -> dict[bytes, dict[bytes, Team]]:
        """Team id -> node -> that team there, at nodes that live."""
        found: dict[bytes, dict[bytes, Team]] = {}
        for node in self.nodes:
            machine = self.world.hosts[node].machine
            for team in machine.teams.values() if isinstance(machine, Teams) else ():
                found.setdefault(team.team, {})[node] = team
        return found

    def nested(self) -> dict[bytes, dict[bytes, Team]]:
        return {team: there for team, there in self.everything.items() if team != TEAM}

    def all_over(self) -> bool:
        """Everybody that lives knows the end of each of its teams, or the launch came to its own."""
        teams = [team for there in self.everything.values() for team in there.values()]
        begun = bool(teams) or bool(self.told(LaunchFailed, self.asker))
        return begun and all(team.state.conclusion is not None for team in teams)
