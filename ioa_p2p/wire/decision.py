"""The decision log on the wire: signed votes and entries, and the messages that carry them.

Signed: Vote (Kind.VOTE), Entry (Kind.DECISION). Unsigned, under LinkKind.DECISION: the union `DecisionMessage`;
the link authenticates its sender. docs/wire.md, "Decisions". Names follow the Raft paper where they are the same.
"""

from typing import Annotated

from msgspec import Meta

from ioa_p2p.wire import limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.records import Hash, NodeKey, Wall

TeamId = Annotated[bytes, Meta(min_length=limits.TEAM_ID_BYTES, max_length=limits.TEAM_ID_BYTES)]
Incarnation = Annotated[int, Meta(ge=0, le=limits.INCARNATION_MAX)]
Term = Annotated[int, Meta(ge=0, le=limits.TERM_MAX)]
Index = Annotated[int, Meta(ge=0, le=limits.DECISION_INDEX_MAX)]
Round = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
VoteFrame = Annotated[bytes, Meta(max_length=limits.VOTE_FRAME_BYTES_MAX)]
EntryFrame = Annotated[bytes, Meta(max_length=limits.ENTRY_FRAME_BYTES_MAX)]
Certificate = Annotated[tuple[VoteFrame, ...], Meta(max_length=limits.TEAM_VOTERS_MAX)]
"""Vote frames of one term for one candidate; a majority of distinct voters makes it a quorum certificate."""


class Vote(Message, frozen=True):
    """`node` votes for `candidate` in `term`. Roster: the log entry that names the voters, and its hash.

    last_index, last_term: the end of the candidate's log as it asked; so a certificate also says where the
    term's first entry stands.
    """

    node: NodeKey
    team: TeamId
    incarnation: Incarnation
    term: Term
    candidate: NodeKey
    roster_index: Index
    roster_hash: Hash
    last_index: Index
    last_term: Term


class Entry(Message, frozen=True):
    """One decision, signed by the coordinator of its term (entry 0, term 0: by the team's founder).

    previous: BLAKE2b-256 of the frame before (zeros for entry 0). at: wall seconds, for people and deadlines.
    certificate: non-empty exactly in a term's first entry. step: opaque here; empty in a term's first entry.
    """

    node: NodeKey
    team: TeamId
    incarnation: Incarnation
    term: Term
    index: Index
    previous: Hash
    at: Wall
    certificate: Certificate
    step: Annotated[bytes, Meta(max_length=limits.DECISION_STEP_BYTES_MAX)]


class DecisionHead(Message, frozen=True):
    """The common first fields: which log, and the sender's term (a pre-vote: the term asked for)."""

    team: TeamId
    incarnation: Incarnation
    term: Term


class PreVoteRequest(DecisionHead, frozen=True, tag=1):
    """Would you vote for me in `term`? Binds nobody, raises no term."""

    last_index: Index
    last_term: Term


class PreVoteReply(DecisionHead, frozen=True, tag=2):
    """granted: `term` is the term asked for; refused: the voter's own."""

    granted: bool


class VoteRequest(DecisionHead, frozen=True, tag=3):
    """Vote for me in `term`. hand_over: the coordinator asked me to, so its lease does not count.

    roster_index, roster_hash: the electorate that the vote is to name, the last one in the candidate's log.
    """

    last_index: Index
    last_term: Term
    hand_over: bool = False
    roster_index: Index = 0
    roster_hash: Hash = bytes(32)


class VoteReply(DecisionHead, frozen=True, tag=4):
    """vote: the signed Vote frame; empty = refused, and `term` is the voter's own."""

    vote: VoteFrame


class Append(DecisionHead, frozen=True, tag=5):
    """Beat and entries in one. `entries` follow (previous_index, previous_term); all up to `commit` is decided.

    round: the coordinator's boot clock in ms when it sent this; echoed, so that an answer dates its question.
    certificate: given until the follower is known to hold the term's first entry.
    """

    previous_index: Index
    previous_term: Term
    entries: Annotated[tuple[EntryFrame, ...], Meta(max_length=limits.APPEND_ENTRIES_MAX)]
    commit: Index
    round: Round
    certificate: Certificate = ()


class Ack(DecisionHead, frozen=True, tag=6):
    """ok: the follower durably holds the coordinator's log up to `index`. Not ok: it has nothing that matches;
    `hint` is the highest index that might. A higher `term` tells a coordinator that it is one no more."""

    ok: bool
    index: Index
    round: Round
    hint: Index = 0


class HandOver(DecisionHead, frozen=True, tag=7):
    """From the coordinator to a caught-up successor: stand for election now."""


class RosterLink(Message, frozen=True):
    """One change of who may vote, with its proof: the entry's frame, and the certificate of its term."""

    frame: EntryFrame
    certificate: Certificate


class Snapshot(Message, frozen=True):
    """What stands for all entries up to `anchor`; travels as bytes, in parts.

    certificate: of the anchor's term. links: every change of the roster since entry 0, in order. checkpoint: the
    entry that names the anchor's and the state's hash; proof: the certificate of its term. state: the decided
    state at the anchor, opaque here.
    """

    anchor: EntryFrame
    certificate: Certificate
    links: Annotated[tuple[RosterLink, ...], Meta(max_length=limits.ROSTER_CHANGES_MAX)]
    checkpoint: EntryFrame
    proof: Certificate
    state: Annotated[bytes, Meta(max_length=limits.SNAPSHOT_BYTES_MAX)]


class SnapshotPart(DecisionHead, frozen=True, tag=8):
    """To a follower whose next entry is no more in the log: bytes `offset`.. of the snapshot at entry `index`.

    size: of the whole, bytes. round: as in Append; a part is a beat too.
    """

    index: Index
    size: Annotated[int, Meta(ge=1, le=limits.SNAPSHOT_BYTES_MAX)]
    offset: Annotated[int, Meta(ge=0, le=limits.SNAPSHOT_BYTES_MAX)]
    data: Annotated[bytes, Meta(max_length=limits.SNAPSHOT_PART_BYTES_MAX)]
    round: Round


class SnapshotAck(DecisionHead, frozen=True, tag=9):
    """The follower holds the first `offset` bytes of the snapshot at `index`. The last part is answered by Ack."""

    index: Index
    offset: Annotated[int, Meta(ge=0, le=limits.SNAPSHOT_BYTES_MAX)]
    round: Round


class Introduce(DecisionHead, frozen=True, tag=10):
    """From one that came in later, before it asks for votes or leads: the newest changes of the roster, in order, that
    fit, so that a member whose log lags sees that the sender may lead. Not answered."""

    links: Annotated[tuple[RosterLink, ...], Meta(max_length=limits.INTRODUCTION_LINKS_MAX)]


DecisionMessage = (
    PreVoteRequest
    | PreVoteReply
    | VoteRequest
    | VoteReply
    | Append
    | Ack
    | HandOver
    | SnapshotPart
    | SnapshotAck
    | Introduce
)
