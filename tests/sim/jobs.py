"""Whole teams in a `World`: nodes with agents, scripted workers, the rule planner, and one goal to reach.

    World event PlanWanted ──> rules ──> PlanStep        StartTask ──> a run of some seconds ──> TaskDone | its end

Runs live outside the machines, as worker processes do: they die with their node, and what they do to the
outside world is counted in `effects` under their idempotency key.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Now, Rows
from ioa_p2p.mind.rules import next_step, wants
from ioa_p2p.steps import FoundAgent
from ioa_p2p.team.events import (
    CancelTask,
    Concluded,
    Launch,
    LinkPeer,
    Offer,
    PlanStep,
    PlanWanted,
    Policy,
    StartTask,
    TaskDone,
    TaskProgress,
)
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.team import Member, SkillBrief
from tests.mind.market import ANALYST, CHARTER, DEVICE, GOAL, WRITER
from tests.sim.world import Weather, World

NETWORK = network_id("test")
TEAM = b"job team 16 B..."
DEFAULT = {
    "asker": (),
    "device-1": (DEVICE,),
    "device-2": (DEVICE,),
    "device-3": (DEVICE,),
    "analyst": (ANALYST,),
    "charter": (CHARTER,),
    "writer": (WRITER,),
}


@dataclass
class Run:
    """One run of a task at a node's life."""

    node: bytes
    life: int
    started_s: float
    start: StartTask
    over: bool = False


@dataclass
class Jobs:
    """Nodes with agents; the first one launches. machine: the class to make them of; a mutant goes here.

    run_s: how long a run takes, by skill name or for all. silent: nodes whose worker never says a word.
    """

    seed: int
    agents: dict[str, tuple[Skill, ...]] = field(default_factory=lambda: dict(DEFAULT))
    goal: str = GOAL
    weather: Weather = field(default_factory=Weather)
    machine: Callable[..., Teams] = Teams
    policy: Policy = field(default_factory=lambda: Policy(goal_s=300))
    run_s: dict[str, float] = field(default_factory=dict)
    silent: set[bytes] = field(default_factory=set)
    stubborn: set[bytes] = field(default_factory=set)
    effects: Counter[bytes] = field(default_factory=Counter)
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.seed, self.weather)
        self.world.on_event.append(self._on_event)
        self.keys = {name: NodeKey(bytes([number + 1]) * 32) for number, name in enumerate(self.agents)}
        self.names = {key.node: name for name, key in self.keys.items()}
        for node in self.names:
            self.world.add(node, self._make)
            self.offer(node)

    # -- building

    def node(self, name: str) -> bytes:
        return self.keys[name].node

    def _make(self, node: bytes, rows: Rows, rng: random.Random, now: Now) -> Teams:
        everybody = frozenset(self.names)
        return self.machine(self.keys[self.names[node]], NETWORK, rows, rng, lambda: everybody)

    def member(self, node: bytes) -> Member:
        name = self.names[node]
        briefs = tuple(SkillBrief(s.name, s.inputs, s.outputs, s.effect, s.description) for s in self.agents[name])
        return Member(node, name, briefs, (f"/memory/{name}",), True, 100)

    def offer(self, node: bytes) -> None:
        self.world.command(node, Offer((self.member(node),) if self.agents[self.names[node]] else ()))

    def restart(self, node: bytes) -> None:
        self.world.restart(node)
        self.offer(node)

    def kill(self, node: bytes) -> None:
        """Its process is gone: the others lose their link to it."""
        self.world.crash(node)
        for other in self.names:
            if other != node:
                self.world.after(0.01, partial(self.world.command, other, LinkPeer(node, up=False)))

    def launch(self) -> None:
        asker = next(iter(self.names))
        found = [
            FoundAgent(node, Card(name, skills=self.agents[name])) for node, name in self.names.items() if node != asker
        ]
        roles = wants(self.goal, found).roles
        self.world.command(asker, Launch(TEAM, self.goal, self.member(asker), roles, self.policy))

    # -- what the nodes around the machines do

    def _on_event(self, world: World, node: bytes, event: Any) -> None:
        match event:
            case PlanWanted(view):
                answer = PlanStep(view.team, view.version, next_step(view))
                world.after(0.05, lambda: world.command(node, answer))
            case StartTask():
                self._start(node, event)
            case CancelTask():
                for run in self.runs:
                    if (run.node, run.start.spec.id, run.start.spec.attempt) == (node, event.task, event.attempt):
                        run.over = run.node not in self.stubborn
            case _:
                pass

    def _start(self, node: bytes, event: StartTask) -> None:
        run = Run(node, self.world.hosts[node].life, self.world.time_s, event)
        self.runs.append(run)
        if node in self.silent:
            return
        spec = event.spec
        long_s = self.run_s.get(spec.skill, self.run_s.get("", 2.0))
        self.world.after(0.1, lambda: self._tell(run, TaskProgress(event.team, spec.id, spec.attempt, 0.1)))
        self.world.after(long_s, lambda: self._end(run))

    def _end(self, run: Run) -> None:
        if run.over or self.world.hosts[run.node].life != run.life:
            return
        spec = run.start.spec
        self.effects[spec.key] += 1
        skill = next(skill for skill in self.agents[spec.agent] if skill.name == spec.skill)
        outputs = codec.encode(dict.fromkeys(skill.outputs, self.names[run.node]))
        self._tell(run, TaskDone(run.start.team, spec.id, spec.attempt, outputs, (), f"{spec.skill} by {spec.agent}"))
        run.over = True

    def _tell(self, run: Run, command: TaskProgress | TaskDone) -> None:
        if not run.over and self.world.hosts[run.node].life == run.life:
            self.world.command(run.node, command)

    # -- looking

    def teams(self) -> dict[bytes, Team]:
        """The team at every node that lives and knows it."""
        return {
            node: host.machine.teams[TEAM]
            for node, host in self.world.hosts.items()
            if isinstance(host.machine, Teams) and TEAM in host.machine.teams
        }

    def coordinator(self) -> bytes | None:
        leads = [team for team in self.teams().values() if team.coordinator == team.node]
        return max(leads, key=lambda team: team.election.term).node if leads else None

    def told(self, kind: type[Any], node: bytes | None = None) -> list[Any]:
        return [event for _, at, event in self.world.events if isinstance(event, kind) and node in (None, at)]

    def concluded(self) -> bool:
        """Everybody who lives knows the end."""
        alive = [node for node, host in self.world.hosts.items() if host.machine is not None]
        teams = self.teams()
        return all(node in teams and teams[node].state.conclusion is not None for node in alive)

    def ends(self) -> list[Concluded]:
        return self.told(Concluded)
