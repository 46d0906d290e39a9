"""What goes into and comes out of the Teams machine: commands of our own side, events for it.

node ── Launch, PlanStep, TaskDone, LinkPeer, ... ──> Teams ── TeamFormed, PlanWanted, StartTask, ... ──> node
"""

from dataclasses import dataclass, field

from ioa_p2p.steps import Role, Step, View
from ioa_p2p.team.election_events import LinkPeer, StandAside, StepDown
from ioa_p2p.team.phases import Phase
from ioa_p2p.wire.roster import Caps, Member, Roster
from ioa_p2p.wire.spending import NOTHING, Spent
from ioa_p2p.wire.step import Blob, Conclude, TaskSpec

# -- commands: forming and steering -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Policy:
    """How a launch goes. Seconds: boot time for the waits, wall for the goal.

    spares: further members a role keeps for the case that one is lost. members_max: never above it.
    leaders: nodes that may coordinate if they are willing, beside the launcher's own.
    """

    bids_s: float = 3.0
    signs_s: float = 4.0
    goal_s: int = 600
    spares: int = 1
    members_max: int = 16
    leaders: frozenset[bytes] = frozenset()
    caps: Caps = field(default_factory=Caps)


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

    load: 0..255. busy_s: seconds until there is room.
    """

    members: tuple[Member, ...]
    load: int = 0
    busy_s: int = 0


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


# -- commands: what became of a task run here -------------------------------------------------------


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
Command = Launch | Offer | AddMember | TeamCommand

# -- events -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bidding:
    """A launch called for bids, or one came in. bids, called: counts so far."""

    team: bytes
    called: int
    bids: int


@dataclass(frozen=True, slots=True)
class BidHeard:
    """A candidate answered the call: willing, or not and why. load: 0..255."""

    team: bytes
    node: bytes
    agent: str
    willing: bool
    load: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """code: "nobody-fits" (no bid for a needed role), "too-few" (members did not sign), "too-large" (the
    roster) or "cancelled". missing: roles."""

    team: bytes
    code: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TeamFormed:
    """Every member signed; the roster is entry 0. Told at each member."""

    team: bytes
    roster: Roster


@dataclass(frozen=True, slots=True)
class Elected:
    """A term has a coordinator."""

    team: bytes
    term: int
    coordinator: bytes


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    team: bytes
    index: int
    before: Phase
    after: Phase


@dataclass(frozen=True, slots=True)
class LineSaid:
    """A turn's line, as decided; the speaker's own node puts it into the channel."""

    team: bytes
    turn: int
    node: bytes
    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnMine:
    """Our agent has the word: answer with `Answer`."""

    team: bytes
    turn: int
    agent: str
    prompt: str


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task's state as this member knows it. decided: from the log; else a worker's report (or the passed
    deadline, where there is no majority). percent: 0..100 or -1. text: the end of what it put out so far."""

    team: bytes
    spec: TaskSpec
    state: str
    decided: bool
    percent: int = -1
    note: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PlanWanted:
    """The planner's turn (at the coordinator only)."""

    view: View


@dataclass(frozen=True, slots=True)
class InputValue:
    """One resolved input. Each source: a MessagePack value, or a blob whose bytes are that value; plus the
    providing task's attachments."""

    type: str
    values: tuple[bytes, ...]
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True)
class StartTask:
    """Run it. inputs: resolved; `spec.key` is the idempotency key, `spec.budget` what is left of it.
    seconds_left: until its deadline, however our wall clock stands to the team's. own: for a goal of this very node."""

    team: bytes
    spec: TaskSpec
    inputs: tuple[InputValue, ...]
    seconds_left: float
    own: bool = False


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Stop running it: cooperative, then TERM, then KILL."""

    team: bytes
    task: bytes
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Concluded:
    """The end, at every member."""

    team: bytes
    conclusion: Conclude


@dataclass(frozen=True, slots=True)
class Connect:
    """A link to this node is wished for."""

    node: bytes
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Orphan:
    """A result that came too late for its attempt: kept and shown, never applied."""

    team: bytes
    task: bytes
    attempt: int
    state: str
    summary: str


@dataclass(frozen=True, slots=True)
class MemoryLost:
    """This node forgot what it had promised in a team, or may have: it never votes in it again. what: for people."""

    team: bytes
    what: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A team that was over for long left no rows here. blobs: hashes of its files that no other team names."""

    team: bytes
    voters: tuple[bytes, ...]
    blobs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PlanRefused:
    """A planner's step broke a rule; it is asked again, a few times."""

    team: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class RosterChanged:
    """Who is in the team changed; `roster` is the new one. how: "admitted" (as a learner), "promoted" (it votes now),
    "removed" (its chat counts up to `cut`), or "restored" (we were away: `node` is empty)."""

    team: bytes
    how: str
    node: bytes
    agents: tuple[str, ...]
    roster: Roster
    cut: int = 0


@dataclass(frozen=True, slots=True)
class AdmissionFailed:
    """code: "declined", "silent" or what the invited node said."""

    team: bytes
    node: bytes
    agent: str
    code: str


@dataclass(frozen=True, slots=True)
class Halted:
    """This member's state is not the team's: it takes no more part in it, and its owner should know."""

    team: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class NestWanted:
    """A task of ours is to be done by a team of its own: search, then `Launch(team, ...)`, or `TaskFailed` for the task
    of `parent`. agent: ours, that the task was given to."""

    team: bytes
    parent: bytes
    task: bytes
    attempt: int
    agent: str
    goal: str
    seconds_left: float


@dataclass(frozen=True, slots=True)
class NestDropped:
    """Nobody wants that team any more: stop looking for it."""

    team: bytes


@dataclass(frozen=True, slots=True)
class NestEnded:
    """A nested team ended: when the files of `end` are here, `end` is the command that tells the team above."""

    team: bytes
    end: TaskDone | TaskFailed
