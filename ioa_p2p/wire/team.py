"""What the members of a team send each other: forming (Call .. Founding), and task traffic. docs/wire.md, "Teams".

    launcher ── Call ──> candidate ── BidFrame ──> launcher ── Invitation ──> member ── InviteFrame ──>
    launcher ── Founding(entry 0) ──> members ── Report | Said | LostLinks | Wish ──> coordinator

Travels on links as `LinkKind.TEAM`.
"""

from typing import Annotated, Literal

from msgspec import Meta

from ioa_p2p.wire import limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.decision import TeamId
from ioa_p2p.wire.records import AgentName, Hash, NodeKey, SkillName, Wall
from ioa_p2p.wire.roster import Ancestors, Count, Goal, InviteBytes, Member, Small
from ioa_p2p.wire.spending import Spent
from ioa_p2p.wire.step import Attempt, Blobs, Line, Reason, ReportState, Summary, TaskId, TaskIds, Value

FrameBytes = Annotated[bytes, Meta(max_length=0xFFFF + 68)]

# -- forming ----------------------------------------------------------------------------------------


class Call(Message, frozen=True, tag="call"):
    """Launcher -> candidate: would `agent` join, for `skills`? deadline: wall seconds of the whole goal. ancestors:
    teams above this one."""

    team: TeamId
    agent: AgentName
    skills: Annotated[tuple[SkillName, ...], Meta(max_length=limits.RECORD_SKILLS_MAX)]
    goal: Goal
    deadline: Wall
    ancestors: Ancestors = ()


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
    """Member -> launcher: the founding entry is durable here. To the others: I follow nobody; wake if you sleep."""

    team: TeamId


# -- task traffic: worker and member -> coordinator -------------------------------------------------


class Report(Message, frozen=True, tag="report"):
    """A worker's word on one attempt: beat while it runs, result until its Outcome is committed.

    fraction: 0..100 percent, or -1 unknown. retry_s: when to ask again, after "busy". spent: by this attempt so far.
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
    spent: Spent = Spent()


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
    """A member asks the coordinator to cancel tasks (all when none is named), to conclude now, or to decide a
    `change` of the roster (an encoded Admit or Remove). Repeated every beat until the log shows it."""

    team: TeamId
    what: Literal["cancel", "conclude", "change"]
    tasks: TaskIds = ()
    reason: Reason = ""
    change: Annotated[bytes, Meta(max_length=limits.DECISION_STEP_BYTES_MAX)] = b""


TeamMessage = (
    Call | BidFrame | Decline | Invitation | InviteFrame | Founding | Joined | Report | Said | LostLinks | Wish
)
"""Everything a `LinkKind.TEAM` body may hold."""
