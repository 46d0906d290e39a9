"""Whole teams in a `World`: nodes with agents, scripted workers, the rule planner, and one goal to reach.

    World event PlanWanted ──> rules ──> PlanStep        StartTask ──> a run of some seconds ──> TaskDone | its end

Runs live outside the machines, as worker processes do: they die with their node, and what they do to the
outside world is counted in `effects` under their idempotency key.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Now, Rows
from ioa_p2p.errors import UsageError
from ioa_p2p.mind.rules import next_step, wants
from ioa_p2p.steps import FoundAgent
from ioa_p2p.team.commands import Launch, LinkPeer, Offer, PlanStep, Policy, TaskDone, TaskProgress, WorkerDied
from ioa_p2p.team.events import CancelTask, LaunchFailed, PlanWanted, StartTask
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.team import Team
from ioa_p2p.team.timing import LAN, Timing
from ioa_p2p.wire import codec
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.roster import Member, SkillBrief
from ioa_p2p.wire.spending import NOTHING, Spent
from ioa_p2p.wire.step import TaskSpec
from tests.mind.market import ANALYST, CHARTER, DEVICE, GOAL, WRITER
from tests.sim.world import World

NETWORK = network_id("test")
TEAM = b"job team 16 B..."
CAST: dict[str, tuple[Skill, ...]] = {
    "asker": (),
    "device-1": (DEVICE,),
    "device-2": (DEVICE,),
    "device-3": (DEVICE,),
    "analyst": (ANALYST,),
    "charter": (CHARTER,),
    "writer": (WRITER,),
}


@dataclass(eq=False)
class Run:
    """One run of a task in one life of a node. disks: how many the node had lost before. told: its result was taken
    by the node."""

    node: bytes
    life: int
    disks: int
    start: StartTask
    incarnation: int = 0
    over: bool = False
    told: bool = False

    @property
    def spec(self) -> TaskSpec:
        return self.start.spec


@dataclass
class Jobs:
    """Nodes with agents; the first one launches. machine: the class to make them of; a mutant goes here.

    homes: agents that live at another one's node. run_s: how long runs take. spends: what they use up. dies: whether
    a run ends with the death of its worker process.
    """

    seed: int
    agents: dict[str, tuple[Skill, ...]] = field(default_factory=lambda: dict(CAST))
    homes: dict[str, str] = field(default_factory=dict)
    goal: str = GOAL
    machine: Callable[..., Teams] = Teams
    timing: Timing = LAN
    policy: Policy = field(default_factory=lambda: Policy(goal_s=300))
    run_s: Callable[[TaskSpec], float] = lambda spec: 2.0
    spends: Callable[[TaskSpec], Spent] = lambda spec: NOTHING
    dies: Callable[[TaskSpec], bool] = lambda spec: False
    repeats_plans: bool = False
    effects: list[Run] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.seed)
        self.world.on_event.append(self._on_event)
        own = [name for name in self.agents if name not in self.homes]
        self.keys = {name: NodeKey(bytes([number + 1]) * 32) for number, name in enumerate(own)}
        self.names = {key.node: name for name, key in self.keys.items()}
        self.keys |= {name: self.keys[home] for name, home in self.homes.items()}
        self.policy = replace(self.policy, leaders=frozenset(self.names))

    def start(self) -> None:
        for node in self.names:
            self.world.add(node, self._make)
            self.offer(node)

    # -- building

    @property
    def nodes(self) -> list[bytes]:
        return list(self.names)

    @property
    def asker(self) -> bytes:
        return self.nodes[0]

    def node(self, name: str) -> bytes:
        return self.keys[name].node

    def _make(self, node: bytes, rows: Rows, rng: random.Random, now: Now) -> Teams:
        everybody = frozenset(self.names)
        return self.machine(self.keys[self.names[node]], NETWORK, rows, rng, lambda: everybody, timing=self.timing)

    def member(self, name: str) -> Member:
        briefs = tuple(SkillBrief(s.name, s.inputs, s.outputs, s.effect, s.description) for s in self.agents[name])
        return Member(self.node(name), name, briefs, (f"/memory/{name}",), True, 100)

    def offer(self, node: bytes) -> None:
        here = [name for name, skills in self.agents.items() if skills and self.node(name) == node]
        self.world.command(node, Offer(tuple(map(self.member, here))))

    def launch(self) -> None:
        """The same launch whenever it is called."""
        found = [
            FoundAgent(self.node(name), Card(name, skills=skills)) for name, skills in self.agents.items() if skills
        ]
        roles = wants(self.goal, found).roles
        self.world.command(self.asker, Launch(TEAM, self.goal, self.member(self.names[self.asker]), roles, self.policy))

    # -- processes come and go

    def crash(self, node: bytes, *, lose_disk: bool = False) -> None:
        self.world.crash(node, lose_disk=lose_disk)
        self.notice(node, up=False)

    def restart(self, node: bytes) -> None:
        self.world.restart(node)
        self.offer(node)
        self.notice(node, up=True)

    def notice(self, node: bytes, *, up: bool) -> None:
        """The others see their link to it come or go."""
        for other in self.nodes:
            if other != node:
                self.world.after(0.02, partial(self.tell, other, LinkPeer(node, up)))

    def tell(self, node: bytes, command: Any) -> None:
        """A command; a stopped process takes it when it runs again."""
        if self.world.hosts[node].frozen:
            self.world.after(0.5, lambda: self.tell(node, command))
            return
        try:
            self.world.command(node, command)
        except UsageError as fault:
            if fault.code != "no-such-team":
                raise

    # -- what the nodes around the machines do

    def _on_event(self, world: World, node: bytes, event: Any) -> None:
        match event:
            case PlanWanted(view):
                answer = PlanStep(view.team, view.version, next_step(view))
                world.after(0.05, lambda: self.tell(node, answer))
                for later in range(20 if self.repeats_plans else 0):
                    world.after(0.13 + 0.17 * later, lambda: self.tell(node, answer))
            case StartTask():
                self._begin(node, event)
            case CancelTask():
                for run in self.runs:
                    if (run.node, run.spec.id, run.spec.attempt) == (node, event.task, event.attempt):
                        run.over = True
            case _:
                pass

    def _begin(self, node: bytes, event: StartTask) -> None:
        machine = self.world.hosts[node].machine
        assert isinstance(machine, Teams)
        incarnation = machine.teams[event.team].election.incarnation
        run = Run(node, self.world.hosts[node].life, self.world.hosts[node].disks, event, incarnation)
        self.runs.append(run)
        spec, long_s = event.spec, self.run_s(event.spec)
        self.world.after(0.1, lambda: self._report(run, TaskProgress(event.team, spec.id, spec.attempt, 0.1)))
        self.world.after(long_s, lambda: self._end(run))

    def _end(self, run: Run) -> None:
        if run.over or self.world.hosts[run.node].life != run.life:
            return
        spec = run.spec
        if self.dies(spec):
            self._report(run, WorkerDied(run.start.team, spec.id, spec.attempt))
            run.over = True
            return
        self.effects.append(run)
        skill = next(skill for skill in self.agents[spec.agent] if skill.name == spec.skill)
        outputs = codec.encode(dict.fromkeys(skill.outputs, spec.agent))
        summary, spent = f"{spec.skill} by {spec.agent}", self.spends(spec)
        self._report(run, TaskDone(run.start.team, spec.id, spec.attempt, outputs, (), summary, spent))
        host = self.world.hosts[run.node]
        run.told = not host.frozen and host.life == run.life and not host.unsynced
        run.over = True

    def _report(self, run: Run, command: TaskProgress | TaskDone | WorkerDied) -> None:
        if not run.over and self.world.hosts[run.node].life == run.life:
            self.tell(run.node, command)

    # -- looking

    def teams(self, nodes: Iterable[bytes] | None = None) -> dict[bytes, Team]:
        """The team at every node (of `nodes`) that lives and knows it."""
        machines = ((node, self.world.hosts[node].machine) for node in (self.world.hosts if nodes is None else nodes))
        return {node: one.teams[TEAM] for node, one in machines if isinstance(one, Teams) and TEAM in one.teams}

    def coordinator(self) -> bytes | None:
        leads = [team for team in self.teams().values() if team.coordinator == team.node]
        return max(leads, key=lambda team: team.election.term).node if leads else None

    def told(self, kind: type[Any], node: bytes | None = None) -> list[Any]:
        return [event for _, at, event in self.world.events if isinstance(event, kind) and node in (None, at)]

    def settled(self) -> bool:
        """The team came to its end, or the launch to its."""
        return self.concluded() or (not self.teams() and bool(self.told(LaunchFailed)))

    def concluded_among(self, nodes: Iterable[bytes]) -> bool:
        """One of these knows the end."""
        return any(team.state.conclusion is not None for team in self.teams(nodes).values())

    def concluded(self) -> bool:
        """Every member that lives knows the end; who lost its disk perhaps nothing at all, and who was left behind
        when the team was formed anew only that."""
        left = {node for node, team in self.teams().items() if team.left}
        teams = {node: team for node, team in self.teams().items() if node not in left}
        voters = {voter for team in teams.values() for voter in team.state.roster.voters} - left
        hosts = {node: self.world.hosts[node] for node in voters}
        alive = [node for node, host in hosts.items() if host.machine and (node in teams or not host.disks)]
        ends = [team.state.conclusion for team in teams.values()]
        return bool(alive) and len(ends) == len(alive) and None not in ends
