"""What a team decides: the Step of a decision-log entry, and the tasks that steps give out. docs/wire.md, "Teams".

A Step is the opaque payload of an entry; who may decide it when is `team.phases`' business.
"""

from typing import Annotated, Any, Literal, cast, get_args

from msgspec import Meta

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.records import AgentName, EffectClass, Hash, NodeKey, SkillName, Wall, Word
from ioa_p2p.wire.roster import Count, Goal, InviteBytes
from ioa_p2p.wire.spending import Allowance, Spent

TaskId = Annotated[bytes, Meta(min_length=16, max_length=16)]
Reason = Annotated[str, Meta(max_length=limits.REASON_CHARS_MAX)]
Line = Annotated[str, Meta(max_length=limits.LINE_CHARS_MAX)]
Summary = Annotated[str, Meta(max_length=limits.SUMMARY_CHARS_MAX)]
Attempt = Annotated[int, Meta(ge=1, le=limits.TASK_ATTEMPTS_MAX)]


# -- tasks -----------------------------------------------------------------------------------------


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
    budget: what it and all below it may spend.
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
    budget: Allowance = Allowance()


TaskIds = Annotated[tuple[TaskId, ...], Meta(max_length=limits.STEP_TASKS_MAX)]
ReportState = Literal[
    "accepted", "running", "busy", "succeeded", "failed", "cancelled", "expired", "dead-letter", "unknown"
]
FinalState = Literal["succeeded", "failed", "cancelled", "expired", "dead-letter", "unknown"]

# -- steps -----------------------------------------------------------------------------------------


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
    """The same task (same key) anew: `attempt` fences every lower one. begun: the attempt before may have spent
    its whole budget; False: its worker had no room for it."""

    task: TaskId
    attempt: Attempt
    node: NodeKey
    agent: AgentName
    reason: Reason
    begun: bool = True


class Outcome(Message, frozen=True, tag="outcome"):
    """A task is final. outputs: a MessagePack map, output type -> value. spent: as its worker told, or None if
    nobody told."""

    task: TaskId
    attempt: Attempt
    state: FinalState
    outputs: Value = b""
    blobs: Blobs = ()
    summary: Summary = ""
    reason: Reason = ""
    retry: bool = True
    spent: Spent | None = None


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
    result: the tasks whose outputs are the answer, one a need of the goal. spent: by all, as far as it was told."""

    outcome: Literal["done", "partial", "failed", "cap", "cancelled", "deadline"]
    answer: Annotated[str, Meta(max_length=limits.ANSWER_CHARS_MAX)]
    result: Annotated[tuple[TaskId, ...], Meta(max_length=limits.RESULTS_MAX)] = ()
    evidence: Annotated[tuple[Evidence, ...], Meta(max_length=limits.EVIDENCE_MAX)] = ()
    credits: Annotated[tuple[Credit, ...], Meta(max_length=limits.TEAM_MEMBERS_MAX)] = ()
    spent: Spent = Spent()


class Spend(Message, frozen=True, tag="spend"):
    """The coordinator's planner used this up."""

    spent: Spent


class Admit(Message, frozen=True, tag="admit"):
    """A new node, as a learner: it gets the log and may be given work, and does not vote.

    terms: the encoded Roster that it signed: of this team, by its inviter (the roster's launcher), with the
    inviter and itself. invite: its INVITE frame over them. Its members are those of the frame's signer.
    """

    terms: Annotated[bytes, Meta(max_length=limits.ROSTER_BYTES_MAX)]
    invite: InviteBytes


class Promote(Message, frozen=True, tag="promote"):
    """A learner that is caught up votes from here on."""

    node: NodeKey


class Remove(Message, frozen=True, tag="remove"):
    """A node is out, for good. cut: its chat counts up to this seq."""

    node: NodeKey
    cut: Annotated[int, Meta(ge=0, le=limits.DECISION_INDEX_MAX)] = 0
    reason: Reason = ""


class Checkpoint(Message, frozen=True, tag="checkpoint"):
    """What every member has decided up to `index`, in one hash: it may stand for the entries.

    entry: BLAKE2b-256 of that entry's frame. roster: index of the entry that names the voters then. state:
    BLAKE2b-256 of the decided state in the encoding `version`; who encodes otherwise neither checks nor uses it.
    """

    index: Annotated[int, Meta(ge=1, le=limits.DECISION_INDEX_MAX)]
    entry: Hash
    roster: Annotated[int, Meta(ge=0, le=limits.DECISION_INDEX_MAX)]
    state: Hash
    version: Count


RosterStep = Admit | Promote | Remove
_ROSTER_TAGS = (b"admit", b"promote", b"remove")
Step = (
    Found
    | Elect
    | Discuss
    | Hear
    | Assign
    | Await
    | Resume
    | Reassign
    | Outcome
    | Cancel
    | Conclude
    | Admit
    | Promote
    | Remove
    | Checkpoint
    | Spend
)

KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Step))


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


def is_known(data: bytes) -> bool:
    """False for a step of a kind that only a newer version knows. What is no step at all no version knows."""
    return codec.read_tag(data) in KINDS | {""}


def roster_step(data: bytes) -> RosterStep | None:
    """The change of who may vote that an entry's payload is, if it is one. Never raises."""
    return cast(RosterStep | None, _step_of(data, _ROSTER_TAGS, RosterStep))


def checkpoint_step(data: bytes) -> Checkpoint | None:
    """Likewise the checkpoint."""
    return cast(Checkpoint | None, _step_of(data, (b"checkpoint",), Checkpoint))


def _step_of(data: bytes, tags: tuple[bytes, ...], kind: Any) -> Any:
    """tags: behind an array's and a string's first byte; so most entries are not decoded for this."""
    if not data.startswith(tags, 2):
        return None
    try:
        return codec.decode(data, kind)
    except PeerError:
        return None
