"""What a node may ask of the teams machine, and tell it of the tasks that run here."""

from dataclasses import dataclass, field

from ioa_p2p.steps import Candidate, Role, Step
from ioa_p2p.team.election_events import LinkPeer, StandAside, StepDown
from ioa_p2p.wire.roster import Caps, Member
from ioa_p2p.wire.spending import NOTHING, Spent
from ioa_p2p.wire.step import Blob

# -- forming and steering -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Policy:
    """How a launch goes. Seconds: boot time for the waits, wall for the goal.

    spares: further members a role keeps for the case that one is lost. members_max: never above it.
    leaders: nodes that may coordinate if they are willing, beside the launcher's own. witnesses: nodes that are called
    as a witness; one that is willing comes in if the team has two nodes, or `witness_always`.
    """

    bids_s: float = 3.0
    signs_s: float = 4.0
    goal_s: int = 600
    spares: int = 1
    members_max: int = 16
    leaders: frozenset[bytes] = frozenset()
    caps: Caps = field(default_factory=Caps)
    witnesses: tuple[Candidate, ...] = ()
    witness_always: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """Form a team for `goal`. team: 16 random bytes made (and kept) by the caller: the same id again is
    the same launch. me: the launcher's own member entry. ancestors: teams above it, the root first."""

    team: bytes
    goal: str
    me: Member
    roles: tuple[Role, ...]
    policy: Policy = field(default_factory=Policy)
    ancestors: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """The agents of this node that may be called, as they would enter a roster; replaces the last Offer.

    load: 0..255. busy_s: seconds until there is room. addresses: of this node, should it be a witness.
    """

    members: tuple[Member, ...]
    load: int = 0
    busy_s: int = 0
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanStep:
    """The planner's answer to PlanWanted(view); version = view.version. An older one is ignored, but what it cost
    is counted. spent: by the planner for this step."""

    team: bytes
    version: int
    step: Step
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """The planner could not answer. spent: for the try."""

    team: bytes
    version: int
    reason: str
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class CancelTeam:
    """Stop the goal (no tasks named) or some tasks. Works on any member: the coordinator is asked."""

    team: bytes
    tasks: tuple[bytes, ...] = ()
    reason: str = "asked by the user"


@dataclass(frozen=True, slots=True)
class Answer:
    """What our agent said when it had the word (see TurnMine)."""

    team: bytes
    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class AddMember:
    """Call this agent into a team that works already: asked, invited, then let in as a learner. Ends in
    RosterChanged or AdmissionFailed. Raises UsageError('not-allowed', 'already-in', 'busy', ...)."""

    team: bytes
    node: bytes
    agent: str
    skills: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    may_coordinate: bool = False


@dataclass(frozen=True, slots=True)
class AdmitMember:
    """Let in a node that signed `terms` (see `wire.step.Admit`). Ours to ask as launcher or coordinator only.
    Raises UsageError('not-allowed' and as `standing.changed`)."""

    team: bytes
    terms: bytes
    invite: bytes


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Put a node out, for good; likewise. cut: its chat counts up to this seq."""

    team: bytes
    node: bytes
    cut: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReformTeam:
    """Form a team of ours anew, of those who can be reached; by itself that happens after lease and grace without a
    coordinator. Ends in Reformed or ReformFailed. Raises UsageError('not-allowed' | 'team-ended' | 'led')."""

    team: bytes


# -- what became of a task run here -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """fraction: 0..1, or None when unknown. spent: by this run so far. text: what it put out since the last one."""

    team: bytes
    task: bytes
    attempt: int
    fraction: float | None = None
    note: str = ""
    spent: Spent = NOTHING
    text: str = ""


@dataclass(frozen=True, slots=True)
class TaskDone:
    """outputs: a MessagePack map, output type -> value, <= 16 KiB; larger values as blobs with a `type`."""

    team: bytes
    task: bytes
    attempt: int
    outputs: bytes = b""
    blobs: tuple[Blob, ...] = ()
    summary: str = ""
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The agent said no. retry: another try could help."""

    team: bytes
    task: bytes
    attempt: int
    reason: str
    retry: bool = True
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """The worker process ended without an answer."""

    team: bytes
    task: bytes
    attempt: int
    reason: str = ""


TeamCommand = (
    PlanStep
    | PlanFailed
    | CancelTeam
    | LinkPeer
    | StepDown
    | StandAside
    | AdmitMember
    | RemoveMember
    | Answer
    | TaskProgress
    | TaskDone
    | TaskFailed
    | WorkerDied
)
"""What one team is told; the others are the machine's own business."""
Command = Launch | Offer | AddMember | ReformTeam | TeamCommand
