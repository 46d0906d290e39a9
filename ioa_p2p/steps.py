"""What a planner is asked and answers: Wants before there is a team, then Steps. Pure data; see mind/planner.py.

    launcher ── goal, FoundAgents ──> planner ── Wants ──> launcher
    coordinator ── View ──> planner ── Speak | Assign | Await | FormTeam | Conclude ──> coordinator

A Step names members by (node, agent) and tasks by the ids of the View; the coordinator checks it against the
phase table, gives ids and keys, and proposes the log entries.
"""

from dataclasses import dataclass
from typing import Literal

from ioa_p2p.wire.records import Card
from ioa_p2p.wire.roster import SkillBrief
from ioa_p2p.wire.spending import NOTHING, UNLIMITED, Allowance, Spent

FINAL = frozenset({"succeeded", "failed", "cancelled", "expired", "dead-letter", "unknown"})


# -- before there is a team


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """An agent that a search turned up: where it is and what it says of itself."""

    node: bytes
    card: Card
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent that could take a role. addresses: where its node's link listens."""

    node: bytes
    agent: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Role:
    """What a team needs: `skills` by `count` of the candidates (best first).

    count: 0 = all that bid (an input that takes all there are). needed: without at least one the launch fails.
    """

    name: str
    skills: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    count: int = 1
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Wants:
    """What a goal needs. queries: index-key texts to search ("word:chart", "out:metrics.samples"), those
    searched already included. roles: filled as far as found. done: the roles meet the goal and every query
    was searched. missing: input types that nobody found gives. unserved: needs of the goal that nobody found meets."""

    queries: tuple[str, ...]
    roles: tuple[Role, ...]
    done: bool
    missing: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()


# -- what a planner sees


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member. here: the coordinator has a link to its node. cost: what it asked in its bid."""

    node: bytes
    agent: str
    description: str
    skills: tuple[SkillBrief, ...]
    cost: int = 0
    here: bool = True


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task. state: offered, accepted, running, or one of FINAL. inputs: ids of the tasks it reads.
    outputs: type names (of its result once succeeded). retry: another try could help. spent: as its worker told."""

    id: bytes
    node: bytes
    agent: str
    skill: str
    state: str
    attempt: int = 1
    inputs: tuple[bytes, ...] = ()
    outputs: tuple[str, ...] = ()
    summary: str = ""
    reason: str = ""
    retry: bool = True
    spent: Spent = NOTHING

    @property
    def final(self) -> bool:
        return self.state in FINAL


@dataclass(frozen=True, slots=True)
class LineView:
    """One line said in the discussion."""

    node: bytes
    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """The team as its coordinator sees it. version: the decision-log index it shows; goes back with the Step.

    me: the coordinator's own (node, agent), in whose name it may speak. phase: a `team.phases.Phase` value.
    turns_left, seconds_left: what the caps still allow. problem: why the last Step could not be used.
    left: what may still be spent. spent: by the whole team so far.
    """

    team: bytes
    version: int
    goal: str
    me: tuple[bytes, str]
    members: tuple[MemberView, ...]
    phase: str
    tasks: tuple[TaskView, ...] = ()
    lines: tuple[LineView, ...] = ()
    turns_left: int = 0
    seconds_left: float = 0.0
    problem: str = ""
    left: Allowance = UNLIMITED
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class Turn:
    """An agent of ours has the word. lines: what was said before. prompt: what the coordinator asks it."""

    team: bytes
    agent: str
    description: str
    skills: tuple[str, ...]
    goal: str
    prompt: str
    lines: tuple[LineView, ...] = ()


# -- what a planner answers


@dataclass(frozen=True, slots=True)
class Speak:
    """Give a member the word. text: only for the coordinator itself; others are asked by `prompt`."""

    node: bytes
    agent: str
    text: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One input: the outputs of these finished tasks, or a MessagePack value."""

    type: str
    tasks: tuple[bytes, ...] = ()
    value: bytes = b""


@dataclass(frozen=True, slots=True)
class Order:
    """One task to give out. seconds: how long it may take, 0 = until the goal's deadline. pinned: nobody
    else can stand in for this member. budget: what it may spend; None: a fair share of what is left."""

    node: bytes
    agent: str
    skill: str
    goal: str
    inputs: tuple[Source, ...] = ()
    seconds: int = 0
    pinned: bool = False
    budget: Allowance | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """sync: one task, the talk waits for it. async: one or more start, the talk goes on."""

    mode: Literal["sync", "async"]
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Await:
    """Pause until all or any of `tasks` are final; seconds 0 = until the goal's deadline."""

    tasks: tuple[bytes, ...]
    mode: Literal["all", "any"] = "all"
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class FormTeam:
    """An order whose worker launches a team of its own: one of a skill that `nests`. mode: as of Assign."""

    order: Order
    mode: Literal["sync", "async"] = "async"


@dataclass(frozen=True, slots=True)
class Conclude:
    """The end. evidence: (task id, what it said). results: the tasks whose outputs are the answer, one a need of the
    goal. Who did what and what it cost is not the planner's to say: the coordinator reads it from the log."""

    outcome: Literal["done", "partial", "failed"]
    answer: str
    evidence: tuple[tuple[bytes, str], ...] = ()
    results: tuple[bytes, ...] = ()


Step = Speak | Assign | Await | FormTeam | Conclude


@dataclass(frozen=True, slots=True)
class Planned:
    """A step, and what it cost to find it: by rules nothing."""

    step: Step
    spent: Spent = NOTHING
