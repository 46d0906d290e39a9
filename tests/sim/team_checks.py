"""What must hold for whole teams: small checkers over a world of `Jobs`; each raises `Violation`.

They see events, disks and runs from outside, and read decided states through `Team.state`.
"""

from collections import defaultdict
from typing import Any

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.errors import PeerError
from ioa_p2p.team import saved_state
from ioa_p2p.team.budget import KINDS
from ioa_p2p.team.decisions import Base, held_of, spaces
from ioa_p2p.team.events import Concluded, StartTask, TaskChanged, TeamFormed
from ioa_p2p.team.inputs import outputs_of
from ioa_p2p.team.state import TaskRow
from ioa_p2p.team.tasks import TaskState
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.decision import Entry, Vote
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.step import Assign, Cancel, Outcome, Reassign, TaskSpec, decode_step
from tests.sim.checks import saved_commit, saved_incarnation
from tests.sim.jobs import NETWORK, TEAM, Jobs
from tests.sim.scenario import Violation
from tests.sim.world import World

Node = Any

_LOG, _, _BASE, _ARCHIVE = spaces(TEAM)


class NothingFenced:
    """I6: no worker starts an attempt that its own decided log has fenced or ended. One that is told to start and to
    stop in one breath, after a wait for the disk, does not begin."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        jobs.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        if isinstance(event, StartTask):
            lowest = _fences(world, node, event.spec.id, self._jobs.teams()[node])
            run, waited = self._jobs.runs[-1], world.made_s < world.time_s
            world.after(0.0, lambda: self._check(event, lowest, stopped=waited and run.over))

    def _check(self, event: StartTask, lowest: int, *, stopped: bool) -> None:
        if event.spec.attempt < lowest and not stopped:
            raise Violation("I6", f"attempt {event.spec.attempt} starts where {lowest} is the lowest that may")


class CommittedFirst:
    """I10: what is started was decided: a majority holds the entry, or did before a disk was lost (who lost it votes
    no more), and its term's certificate verifies."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        jobs.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        if not isinstance(event, StartTask):
            return
        team = self._jobs.teams()[node]
        if (row := _adopted(team).get(event.spec.id)) is not None and row.spec == codec.replace(
            event.spec, budget=row.spec.budget
        ):
            return
        if any(other.election.incarnation > team.election.incarnation for other in self._jobs.teams().values()):
            return  # the rows of those who moved on are gone
        index, _ = given_in(world, node, event.spec)
        self._check(world, node, index)

    def _check(self, world: World, node: Node, index: int) -> None:
        log, members = _log(world, node), self._jobs.teams()[node].state.roster.voters
        entry = log[index]
        holding = sum(world.hosts[other].disks > 0 or _holds(world, other, entry) for other in members)
        if holding <= len(members) // 2:
            raise Violation("I10", f"a task starts while {holding} hold its assignment")
        certificates = [one.certificate for one in log.values() if one.term == entry.term and one.certificate]
        if not certificates and _base(world, node) is not None:
            return  # it was in archives that are lost; who followed its coordinator was checked then (`Certified`)
        votes = [open_frame(frames.parse(frame), NETWORK, Kind.VOTE, Vote) for frame in certificates[0]]
        voters = {vote.node for vote in votes if (vote.term, vote.candidate) == (entry.term, entry.node)}
        if len(voters & members) <= len(members) // 2:
            raise Violation("I10", "an assignment by nobody's coordinator")


class OneEffect:
    """I7: one key a task, whatever the attempt; ONCE runs once; starts are counted; nothing done runs again."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._keys: dict[bytes, bytes] = {}
        self._starts: dict[tuple[Node, int, int, bytes, int], int] = defaultdict(int)
        self._tasks: dict[bytes, int] = defaultdict(int)
        jobs.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        if not isinstance(event, StartTask):
            return
        spec = event.spec
        self._tasks[spec.id] += 1
        incarnation = self._jobs.teams()[node].election.incarnation
        started = node, world.hosts[node].disks, incarnation, spec.id, spec.attempt
        self._starts[started] += 1
        if self._keys.setdefault(spec.id, spec.key) != spec.key:
            raise Violation("I7", "two keys for one task: its effect may happen twice")
        if spec.effect == "once" and self._tasks[spec.id] > 1:
            raise Violation("I7", "a task that may run once starts again")
        if self._starts[started] > limits.TASK_STARTS_MAX:
            raise Violation("counted", "an attempt starts more often than it may")
        here = [run for run in self._jobs.runs if run.disks == world.hosts[node].disks]
        if any(_told_done(run, node, spec) and run.incarnation == incarnation for run in here):
            raise Violation("kept", "a task runs again whose result this node had saved")


class WithinBudget:
    """I12: what all runs may have spent, each its whole part unless a decided outcome tells less, is never above the
    team's budget."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._parts: dict[int, dict[tuple[bytes, int], Any]] = {0: {}}
        jobs.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        if isinstance(event, StartTask):
            parts = self._parts_of(self._jobs.teams()[node])
            parts.setdefault((event.spec.id, event.spec.attempt), event.spec.budget)
            for kind in KINDS:
                self._check(parts, kind)
        elif isinstance(event, TaskChanged) and event.decided:
            team = self._jobs.teams()[node]
            row = team.state.tasks[event.spec.id]
            if row.outcome is not None and row.outcome.spent is not None:
                self._parts_of(team)[event.spec.id, row.outcome.attempt] = row.outcome.spent

    def _parts_of(self, team: Team) -> dict[tuple[bytes, int], Any]:
        """A new incarnation has what it adopted."""
        incarnation = team.election.incarnation
        if incarnation not in self._parts:
            before, rows = self._parts.get(incarnation - 1, {}), _adopted(team)
            known = {key: part for key, part in before.items() if key[0] in rows}
            self._parts[incarnation] = {key: part for key, part in known.items() if key[1] <= rows[key[0]].spec.attempt}
        return self._parts[incarnation]

    def _check(self, parts: dict[tuple[bytes, int], Any], kind: str) -> None:
        most = getattr(self._jobs.policy.caps.budget, kind)
        spent = sum(getattr(part, kind) or 0 for part in parts.values())
        if most is not None and spent > most:
            raise Violation("I12", f"{spent} {kind} spent or given, of {most}")


class FinalIsFinal:
    """A task's terminal state never changes, at no member; and only the newest attempt's result counts."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._ends: dict[tuple[int, bytes], str] = {}
        self._told: dict[tuple[Node, int, int, bytes], str] = {}
        jobs.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        if not isinstance(event, TaskChanged) or not event.decided:
            return
        team, task = self._jobs.teams().get(node), event.spec.id
        incarnation = team.election.incarnation if team else 0
        life = node, world.hosts[node].life, incarnation, task
        if life in self._told:
            raise Violation("final", f"{self._told[life]} became {event.state}")
        if TaskState(event.state).final:
            self._told[life] = event.state
            if self._ends.setdefault((incarnation, task), event.state) != event.state:
                raise Violation("final", f"{self._ends[incarnation, task]} here is {event.state} there")
        row = team.state.tasks.get(task) if team else None
        if (
            row is not None
            and row.outcome is not None
            and not set(outputs_of(row.outcome).values()) <= {row.spec.agent}
        ):
            raise Violation("I6", "the result of a fenced attempt was applied")


class SameFold:
    """All members' decided states are the same at the same index."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._seen: dict[tuple[int, int], Any] = {}
        self._at: dict[Node, tuple[int, int]] = {}
        jobs.world.watch.append(self.watch)

    def watch(self, world: World) -> None:
        teams = self._jobs.teams(world.touched)
        for node, team in teams.items():
            state = team.state
            place = team.election.incarnation, state.index
            if self._at.get(node) == place:
                continue
            self._at[node] = place
            tasks = tuple((task, row.spec.attempt, row.state) for task, row in state.tasks.items())
            shown = (state.phase, state.turn, tasks, state.conclusion)
            if self._seen.setdefault(place, shown) != shown:
                raise Violation("same-fold", f"two states at index {place}")


class EndsClean:
    """A team is founded and concludes once in an incarnation, with no task open; no job succeeds twice."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._founded: dict[int, bytes] = {}
        self._ends: dict[int, bytes] = {}
        jobs.world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        team = self._jobs.teams().get(node)
        if isinstance(event, TeamFormed):
            roster = codec.encode(event.roster)
            if self._founded.setdefault(event.roster.incarnation, roster) != roster:
                raise Violation("one-team", "a launch founded two teams")
        elif isinstance(event, Concluded) and team is not None:
            end = codec.encode(event.conclusion)
            if self._ends.setdefault(team.election.incarnation, end) != end:
                raise Violation("final", "two conclusions")
            if team.state.open_tasks:
                raise Violation("final", "concluded while tasks run")
            self._check_doubles([row.spec for row in team.state.tasks.values() if row.state == "succeeded"])

    @staticmethod
    def _check_doubles(done: list[TaskSpec]) -> None:
        if len({(spec.agent, spec.skill) for spec in done}) < len(done):
            raise Violation("I7", "one member did one job as two tasks")


def watch_team(jobs: Jobs) -> None:
    """All that must hold for whole teams."""
    for checker in (NothingFenced, CommittedFirst, OneEffect, WithinBudget, FinalIsFinal, SameFold, EndsClean):
        checker(jobs)


# -- reading disks


def _holds(world: World, node: Node, entry: Entry) -> bool:
    """It, or a decided state that stands for it: what is decided at an index is one entry (I2)."""
    incarnation, base = saved_incarnation(world.hosts[node], TEAM), _base(world, node)
    if incarnation == entry.incarnation and base is not None and base.index >= entry.index:
        return True
    return _entries(world, node, _LOG).get(entry.index) == entry


def _log(world: World, node: Node, *, decided: bool = False) -> dict[int, Entry]:
    """The entries of a node's log by index, from the newest on; `decided`: those it knows to be. For what is only in
    its state, the archives of all tell what was decided."""
    entries, base = _entries(world, node, _LOG), _base(world, node)
    if base is not None:
        archived = {index: one for other in world.hosts for index, one in _entries(world, other, _ARCHIVE).items()}
        below = {index: one for index, one in archived.items() if index < base.index}
        ours = {index: one for index, one in below.items() if one.incarnation == base.incarnation}
        entries = ours | {base.index: base} | entries
    commit = saved_commit(world.hosts[node], TEAM)
    return {index: entries[index] for index in sorted(entries, reverse=True) if not decided or index <= commit}


def _entries(world: World, node: Node, space: str) -> dict[int, Entry]:
    rows = world.hosts[node].disk.scan(space)
    return {int.from_bytes(key, "big"): codec.decode(frames.parse(row).body, Entry) for key, row in rows}


def _base(world: World, node: Node) -> Entry | None:
    """The last entry that is in its state and not in its log."""
    row = world.hosts[node].disk.get(_BASE, b"base")
    return held_of(codec.decode(row, Base).anchor).entry if row else None


def given_in(world: World, node: Node, spec: TaskSpec) -> tuple[int, int]:
    """Index and term of the entry of this node's log that gives out an attempt. Raises Violation if there is none."""
    for index, entry in _log(world, node).items():
        if _gives(entry, spec):
            return index, entry.term
    raise Violation("I10", "a task starts that the node's log does not hold")


def _adopted(team: Team) -> dict[bytes, TaskRow]:
    """The tasks that its incarnation began with."""
    return saved_state.decode(team.adopted).tasks if team.adopted else {}


def _fences(world: World, node: Node, task: bytes, team: Team) -> int:
    """The lowest attempt of a task that the node's decided log still lets start."""
    row = _adopted(team).get(task)
    if row is not None and row.state.final:
        return limits.TASK_ATTEMPTS_MAX + 1
    lowest = row.spec.attempt if row is not None else 1
    for entry in reversed(_log(world, node, decided=True).values()):
        match _step(entry):
            case Reassign() as step if step.task == task:
                lowest = step.attempt
            case Outcome() as step if step.task == task and step.attempt == lowest:
                return limits.TASK_ATTEMPTS_MAX + 1
            case Cancel() as step if task in step.tasks:
                return limits.TASK_ATTEMPTS_MAX + 1
            case _:
                pass
    return lowest


def _gives(entry: Entry, spec: TaskSpec) -> bool:
    match _step(entry):
        case Assign(tasks=tasks):
            return any((one.id, one.attempt, one.node) == (spec.id, spec.attempt, spec.node) for one in tasks)
        case Reassign() as step:
            return (step.task, step.attempt, step.node) == (spec.id, spec.attempt, spec.node)
        case _:
            return False


def _step(entry: Entry) -> Any:
    try:
        return decode_step(entry.step)
    except PeerError:
        return None


def _told_done(run: Any, node: Node, spec: TaskSpec) -> bool:
    return run.told and (run.node, run.spec.id, run.spec.attempt) == (node, spec.id, spec.attempt)
