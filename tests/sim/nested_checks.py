"""What must hold for teams within teams: small checkers over an `Estate`; each raises `Violation`.

N1 a child keeps to its task's terms: path, deadline, budget. N2 nobody waits for itself. N3 one attempt, one child.
N4 an orphan starts nothing once the team above may give its task to another. N5 no sum at any level, agents included,
exceeds the root's. docs/nested-teams.md.
"""

from typing import Any

from ioa_p2p.team.budget import KINDS
from ioa_p2p.team.events import Concluded, StartTask, TaskChanged, TeamFormed
from ioa_p2p.team.tasks import LAN
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import nested_team
from ioa_p2p.wire.roster import Roster
from ioa_p2p.wire.step import TaskSpec
from tests.sim.estate import Estate
from tests.sim.scenario import Violation
from tests.sim.world import World

Node = Any
_REASSIGN_S = LAN.lease_s - LAN.beat_s  # after the death of a worker, at the earliest
_CLOCK_S = 15.0  # a member that was frozen when it was invited takes its clock for so much ahead


class KeepsToTerms:
    """N1, N2, N3, when a team is founded."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._founded: dict[bytes, bytes] = {}
        estate.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        if not isinstance(event, TeamFormed) or not event.roster.ancestors:
            return
        roster = event.roster
        encoded = codec.encode(roster)
        if self._founded.setdefault(roster.team, encoded) != encoded:
            raise Violation("N3", "two teams for one attempt at a task")
        if roster.launcher == node and (found := self._task(roster)) is not None:
            self._check(roster, *found)

    def _task(self, roster: Roster) -> tuple[TaskSpec, Roster] | None:
        """What it is for, in the team above."""
        for team in self._estate.everything.get(roster.ancestors[-1], {}).values():
            for row in team.state.tasks.values():
                if nested_team(row.spec.key, roster.launcher, row.spec.attempt) == roster.team:
                    return row.spec, team.state.roster
        return None

    def _check(self, roster: Roster, spec: TaskSpec, above: Roster) -> None:
        if roster.ancestors != (*above.ancestors, above.team) or len(roster.ancestors) > limits.ANCESTORS_MAX:
            raise Violation("N1", "its path is not its parent's and the parent")
        if roster.caps.budget != spec.budget:
            raise Violation("N1", f"its budget is {roster.caps.budget}, its task's {spec.budget}")
        left_s = spec.deadline - roster.created
        if roster.deadline > roster.created + 0.9 * (left_s + _CLOCK_S) + 1:
            raise Violation("N1", f"its deadline is in {roster.deadline - roster.created} s, its task's in {left_s} s")
        names = self._estate.names
        waiting = {names[self._launcher(team)] for team in (*roster.ancestors[1:], roster.team)}
        mine = {member.agent for member in roster.members if member.skills}
        if waiting & mine:
            raise Violation("N2", f"{waiting & mine} waits for itself")

    def _launcher(self, team: bytes) -> Node:
        return codec.decode(self._founded[team], Roster).launcher


class OrphansEnd:
    """N4: nothing starts below a launcher that is down for as long as its team above waits. Who restarts may start what
    has ended meanwhile, until it hears of that."""

    def __init__(self, estate: Estate, slack_s: float) -> None:
        self._estate = estate
        self._slack_s = slack_s
        self._down: dict[Node, float] = {}
        estate.world.watch.append(self.watch)
        estate.world.on_event.append(self.event)

    def watch(self, world: World) -> None:
        for node, host in world.hosts.items():
            if host.machine is not None:
                self._down.pop(node, None)
            else:
                self._down.setdefault(node, world.time_s)

    def event(self, world: World, node: Node, event: Any) -> None:
        if not isinstance(event, StartTask):
            return
        everything = self._estate.everything
        if any(team.state.conclusion is not None for team in everything[event.team].values()):
            return
        path = everything[event.team][node].state.roster.ancestors
        for team in (*path[1:], event.team) if path else ():
            launcher = next(iter(everything[team].values())).state.roster.launcher if team in everything else node
            down_s = world.time_s - self._down.get(launcher, world.time_s)
            if down_s > _REASSIGN_S + self._slack_s:
                raise Violation("N4", f"a task starts {down_s:.1f} s after its team's launcher died")


class WithinRoot:
    """N5: what runs may have spent, each its part unless a decided outcome tells less; and agents at work."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._parts: dict[tuple[bytes, bytes, int], Any] = {}
        self._agents: dict[bytes, int] = {}
        estate.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        match event:
            case TeamFormed():
                self._agents.setdefault(event.team, len(event.roster.members) - 1)
                self._check_agents()
            case Concluded():
                self._agents[event.team] = 0
            case StartTask():
                self._parts.setdefault((event.team, event.spec.id, event.spec.attempt), event.spec.budget)
                self._check_parts()
            case TaskChanged(decided=True):
                self._settle(node, event)
            case _:
                pass

    def _settle(self, node: Node, event: TaskChanged) -> None:
        team = self._estate.everything[event.team].get(node)
        row = team.state.tasks.get(event.spec.id) if team is not None else None
        if row is not None and row.outcome is not None and row.outcome.spent is not None:
            key = event.team, event.spec.id, row.outcome.attempt
            if key in self._parts:
                self._parts[key] = row.outcome.spent

    def _check_parts(self) -> None:
        for kind in KINDS:
            most = getattr(self._estate.policy.caps.budget, kind)
            spent = sum(getattr(part, kind) or 0 for part in self._parts.values())
            if most is not None and spent > most:
                raise Violation("N5", f"{spent} {kind} spent or given, of {most}")

    def _check_agents(self) -> None:
        most, there = self._estate.policy.caps.budget.agents, sum(self._agents.values())
        if there > most:
            raise Violation("N5", f"{there} agents at work, of {most}")


def watch_nested(estate: Estate, slack_s: float = 1.0) -> None:
    """slack_s: that an orphan may take longer; a cancel on its way down two levels takes a second."""
    KeepsToTerms(estate)
    OrphansEnd(estate, slack_s)
    WithinRoot(estate)
