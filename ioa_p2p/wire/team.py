"""What teams say: forming (Call .. Founding), decisions (the Step union), and task traffic. docs/wire.md, "Teams".

    launcher ── Call ──> candidate ── BidFrame ──> launcher ── Invitation ──> member ── InviteFrame ──>
    launcher ── Founding(entry 0) ──> members ── Report | Said | LostLinks | Wish ──> coordinator

A Step is the opaque payload of a decision-log entry; the rest travels on links as `LinkKind.TEAM`.
"""

from typing import Annotated, Any, Literal, cast

from msgspec import Meta

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.decision import TeamId
from ioa_p2p.wire.records import Address, AgentName, EffectClass, Hash, NodeKey, SkillName, Wall, Word

TaskId = Annotated[bytes, Meta(min_length=16, max_length=16)]
Goal = Annotated[str, Meta(max_length=limits.GOAL_CHARS_MAX)]
Brief = Annotated[str, Meta(max_length=limits.BRIEF_CHARS_MAX)]
Reason = Annotated[str, Meta(max_length=limits.REASON_CHARS_MAX)]
Line = Annotated[str, Meta(max_length=limits.LINE_CHARS_MAX)]
Summary = Annotated[str, Meta(max_length=limits.SUMMARY_CHARS_MAX)]
Count = Annotated[int, Meta(ge=0, le=1 << 32)]
Small = Annotated[int, Meta(ge=0, le=255)]
Attempt = Annotated[int, Meta(ge=1, le=limits.TASK_ATTEMPTS_MAX)]
Types = Annotated[tuple[Word, ...], Meta(max_length=16)]
FrameBytes = Annotated[bytes, Meta(max_length=0xFFFF + 68)]
InviteBytes = Annotated[bytes, Meta(max_length=limits.INVITE_FRAME_BYTES_MAX)]

# -- who is in a team -------------------------------------------------------------------------------


class SkillBrief(Message, frozen=True):
    """One skill as a roster tells it: enough to plan by. Types as in `records.Skill`."""

    name: SkillName
    inputs: Types = ()
    outputs: Types = ()
    effect: EffectClass = "pure"
    description: Brief = ""


class Member(Message, frozen=True):
    """One agent of a team, in its own words: the bid carries it, the roster repeats it.

    may_coordinate: this node is willing (and, in a roster, allowed) to lead. rank: 0..255, higher leads
    sooner; it only shortens timers. cost: what the agent asks, in its owner's unit.
    """

    node: NodeKey
    agent: AgentName
    skills: Annotated[tuple[SkillBrief, ...], Meta(max_length=limits.RECORD_SKILLS_MAX)] = ()
    addresses: Annotated[tuple[Address, ...], Meta(max_length=limits.RECORD_ADDRESSES_MAX)] = ()
    may_coordinate: bool = False
    rank: Small = 0
    cost: Count = 0
    description: Brief = ""

    def skill(self, name: str) -> SkillBrief | None:
        return next((skill for skill in self.skills if skill.name == name), None)


class Caps(Message, frozen=True):
    """What no planner can talk its way out of. turns: discussion steps. repeats: the same line said again.
    empty: lines without a word. plans: planner outputs in a row that could not be used. Wall time is the
    roster's deadline. tokens, money: reserved, 0 = none."""

    turns: Count = 40
    repeats: Count = 2
    empty: Count = 3
    plans: Count = 3
    tokens: Count = 0
    money: Count = 0


class Roster(Message, frozen=True):
    """Who the team is. Encoded once by the launcher; every member signs the hash of these bytes.

    launcher: also one of the members' nodes. created, deadline: wall seconds. ancestors: teams above
    this one (reserved, for nested teams). epoch: encryption epoch (reserved).
    """

    team: TeamId
    incarnation: Count
    goal: Goal
    launcher: NodeKey
    members: Annotated[tuple[Member, ...], Meta(min_length=limits.TEAM_MEMBERS_MIN, max_length=limits.TEAM_MEMBERS_MAX)]
    created: Wall
    deadline: Wall
    caps: Caps = Caps()
    ancestors: Annotated[tuple[TeamId, ...], Meta(max_length=limits.ANCESTORS_MAX)] = ()
    epoch: Count = 0

    @property
    def voters(self) -> frozenset[bytes]:
        """The distinct nodes: one vote each, however many agents."""
        return frozenset(member.node for member in self.members)

    @property
    def candidates(self) -> frozenset[bytes]:
        """The nodes that may lead."""
        return frozenset(member.node for member in self.members if member.may_coordinate)


# -- forming ----------------------------------------------------------------------------------------


class Call(Message, frozen=True, tag="call"):
    """Launcher -> candidate: would `agent` join, for `skills`? deadline: wall seconds of the whole goal."""

    team: TeamId
    agent: AgentName
    skills: Annotated[tuple[SkillName, ...], Meta(max_length=limits.RECORD_SKILLS_MAX)]
    goal: Goal
    deadline: Wall


class Bid(Message, frozen=True):
    """Body of a BID frame: yes, as `member`. ready_at: wall seconds. load: 0..255, how busy (255 = full)."""

    node: NodeKey
    team: TeamId
    member: Member
    ready_at: Wall
    load: Small
    issued: Wall
    expires: Wall


class BidFrame(Message, frozen=True, tag="bid"):
    frame: FrameBytes


class Decline(Message, frozen=True, tag="decline"):
    """Candidate -> launcher: no. The reason is a code and tells a stranger nothing more."""

    team: TeamId
    agent: AgentName
    reason: Reason


class Invitation(Message, frozen=True, tag="invitation"):
    """Launcher -> member: sign this roster (encoded `Roster`)."""

    roster: Annotated[bytes, Meta(max_length=limits.ROSTER_BYTES_MAX)]


class Invite(Message, frozen=True):
    """Body of an INVITE frame: `node` agrees to the roster with this BLAKE2b-256 hash."""

    node: NodeKey
    team: TeamId
    roster: Hash
    issued: Wall
    expires: Wall


class InviteFrame(Message, frozen=True, tag="invite"):
    team: TeamId
    frame: InviteBytes


class Founding(Message, frozen=True, tag="founding"):
    """Entry 0 of the decision log, whole: it proves itself, so any member may bring it. Repeated to a member
    until it is heard in the team."""

    frame: FrameBytes


class Joined(Message, frozen=True, tag="joined"):
    """Member -> launcher: the founding entry is durable here."""

    team: TeamId


# -- tasks ------------------------------------------------------------------------------------------


class Blob(Message, frozen=True):
    """A large value by hash, held by the team channel. type: the output type whose MessagePack value these
    bytes are; empty: an attachment (a file). hash: BLAKE2b-256."""

    name: Annotated[str, Meta(max_length=limits.BLOB_NAME_CHARS_MAX)]
    media_type: Word
    hash: Hash
    size: Annotated[int, Meta(ge=0, le=limits.BLOB_BYTES_MAX)]
    type: Word = ""


Blobs = Annotated[tuple[Blob, ...], Meta(max_length=limits.TASK_BLOBS_MAX)]
Value = Annotated[bytes, Meta(max_length=limits.TASK_VALUE_BYTES_MAX)]


class Input(Message, frozen=True):
    """One input of a task: outputs of finished `tasks` of this team, or an inline MessagePack value.
    type: a type name without `*`. value: empty when tasks are named."""

    type: Word
    tasks: Annotated[tuple[TaskId, ...], Meta(max_length=limits.TEAM_MEMBERS_MAX)] = ()
    value: Value = b""


class TaskSpec(Message, frozen=True):
    """One call of one skill at one member.

    key: idempotency key, the same for every attempt. deadline: wall seconds. pinned: only this member can
    do it (it measures itself, say), so a lost worker fails the task instead of moving it. token: reserved.
    """

    id: TaskId
    key: TaskId
    node: NodeKey
    agent: AgentName
    skill: SkillName
    goal: Goal
    inputs: Annotated[tuple[Input, ...], Meta(max_length=limits.TASK_INPUTS_MAX)]
    effect: EffectClass
    deadline: Wall
    attempt: Attempt = 1
    pinned: bool = False
    token: Annotated[bytes, Meta(max_length=1_024)] = b""


TaskIds = Annotated[tuple[TaskId, ...], Meta(max_length=limits.STEP_TASKS_MAX)]
ReportState = Literal[
    "accepted", "running", "busy", "succeeded", "failed", "cancelled", "expired", "dead-letter", "unknown"
]
FinalState = Literal["succeeded", "failed", "cancelled", "expired", "dead-letter", "unknown"]

# -- decisions: the Step union ----------------------------------------------------------------------


class Found(Message, frozen=True, tag="found"):
    """Entry 0: the roster's bytes and every voter's INVITE frame. Committed by construction."""

    roster: Annotated[bytes, Meta(max_length=limits.ROSTER_BYTES_MAX)]
    invites: Annotated[tuple[InviteBytes, ...], Meta(max_length=limits.TEAM_MEMBERS_MAX)]


class Elect(Message, frozen=True, tag="elect"):
    """A term's first entry: it decides nothing but that the term stands."""


class Discuss(Message, frozen=True, tag="discuss"):
    """A member has the word. text: what the coordinator's own agent says (the turn is over at once);
    empty: the member is asked by `prompt`, and its answer comes as `Hear`."""

    node: NodeKey
    agent: AgentName
    text: Line = ""
    prompt: Line = ""


class Hear(Message, frozen=True, tag="hear"):
    """The answer to the open turn, or an empty text when none came in time."""

    turn: Count
    text: Line


class Assign(Message, frozen=True, tag="assign"):
    mode: Literal["sync", "async"]
    tasks: Annotated[tuple[TaskSpec, ...], Meta(min_length=1, max_length=limits.STEP_TASKS_MAX)]


class Await(Message, frozen=True, tag="await"):
    """Pause until all (or any) of `tasks` are final, or wall second `deadline`."""

    tasks: Annotated[tuple[TaskId, ...], Meta(min_length=1, max_length=limits.STEP_TASKS_MAX)]
    mode: Literal["all", "any"]
    deadline: Wall


class Resume(Message, frozen=True, tag="resume"):
    """Back to discussion: what was waited for is there, or its deadline passed."""

    reason: Reason


class Reassign(Message, frozen=True, tag="reassign"):
    """The same task (same key) anew: `attempt` fences every lower one."""

    task: TaskId
    attempt: Attempt
    node: NodeKey
    agent: AgentName
    reason: Reason


class Outcome(Message, frozen=True, tag="outcome"):
    """A task is final. outputs: a MessagePack map, output type -> value."""

    task: TaskId
    attempt: Attempt
    state: FinalState
    outputs: Value = b""
    blobs: Blobs = ()
    summary: Summary = ""
    reason: Reason = ""
    retry: bool = True


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop these tasks, or all when none is named."""

    tasks: TaskIds
    reason: Reason


class Evidence(Message, frozen=True):
    """What an answer rests on: a task and what it said."""

    task: TaskId
    text: Summary


class Credit(Message, frozen=True):
    """Who did what."""

    node: NodeKey
    agent: AgentName
    skill: SkillName
    state: Word
    tasks: Count = 1


class Conclude(Message, frozen=True, tag="conclude"):
    """The end. outcome: "done", "partial" or "failed" by plan; "cap", "cancelled" or "deadline" by force.
    result: the task whose outputs are the answer, if there is one."""

    outcome: Literal["done", "partial", "failed", "cap", "cancelled", "deadline"]
    answer: Annotated[str, Meta(max_length=limits.ANSWER_CHARS_MAX)]
    result: Annotated[tuple[TaskId, ...], Meta(max_length=1)] = ()
    evidence: Annotated[tuple[Evidence, ...], Meta(max_length=limits.EVIDENCE_MAX)] = ()
    credits: Annotated[tuple[Credit, ...], Meta(max_length=limits.TEAM_MEMBERS_MAX)] = ()
    cost: Count = 0


Step = Found | Elect | Discuss | Hear | Assign | Await | Resume | Reassign | Outcome | Cancel | Conclude


def encode_step(step: Step) -> bytes:
    """Bytes for a decision-log entry. Our planner's output is bounded before; larger is our own bug."""
    encoded = codec.encode(step)
    assert len(encoded) <= limits.DECISION_STEP_BYTES_MAX, "step too large"
    return encoded


def decode_step(data: bytes) -> Step:
    """Raises PeerError('undecodable' | 'step-too-large')."""
    if len(data) > limits.DECISION_STEP_BYTES_MAX:
        raise PeerError("step-too-large", f"{len(data)} bytes")
    return cast(Step, codec.decode(data, cast(Any, Step)))


# -- task traffic: worker and member -> coordinator -------------------------------------------------


class Report(Message, frozen=True, tag="report"):
    """A worker's word on one attempt: beat while it runs, result until its Outcome is committed.

    fraction: 0..100 percent, or -1 unknown. retry_s: when to ask again, after "busy".
    """

    team: TeamId
    task: TaskId
    attempt: Attempt
    state: ReportState
    fraction: Annotated[int, Meta(ge=-1, le=100)] = -1
    note: Reason = ""
    retry_s: Count = 0
    outputs: Value = b""
    blobs: Blobs = ()
    summary: Summary = ""
    retry: bool = True


class Said(Message, frozen=True, tag="said"):
    """A member's answer to the turn it was given."""

    team: TeamId
    turn: Count
    text: Line


class LostLinks(Message, frozen=True, tag="lost"):
    """The nodes of the team this member has no link to. Repeated every beat while there are any."""

    team: TeamId
    nodes: Annotated[tuple[NodeKey, ...], Meta(max_length=limits.TEAM_MEMBERS_MAX)]


class Wish(Message, frozen=True, tag="wish"):
    """A member asks the coordinator to cancel tasks (all when none is named) or to conclude now.
    Repeated every beat until the log shows it."""

    team: TeamId
    what: Literal["cancel", "conclude"]
    tasks: TaskIds = ()
    reason: Reason = ""


TeamMessage = (
    Call | BidFrame | Decline | Invitation | InviteFrame | Founding | Joined | Report | Said | LostLinks | Wish
)
"""Everything a `LinkKind.TEAM` body may hold."""
