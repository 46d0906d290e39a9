"""The coordinator's side of the log for one term: what each follower holds, what to send it, what is decided.

    next ── sent, optimistically ──> next + n        ack: match grows        refused: next goes back to the hint
    next below the log's anchor ──> parts of the snapshot, one at a time ──> next = anchor + 1

Followers are the other voters and the learners of the electorate in force, and, until they know it, who was removed.
Source: Raft paper, sections 5.3, 5.4.2, 6 and 7; an answer to a round dates the lease (Ongaro's thesis, 6.4.1).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Decisions
from ioa_p2p.team.electorate import Electorate
from ioa_p2p.team.snapshots import snapshot_of
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import Ack, Append, Certificate, SnapshotAck, SnapshotPart

NEVER = float("-inf")
_FAREWELL_S = 30.0  # a removed follower that does not answer is told no longer; it may ask


@dataclass(slots=True)
class Follower:
    """next: index of the first entry not yet sent. match: it durably holds our log up to here.

    heard_s: when (our boot clock) the newest round that it answered was sent. rewound: the round, in ms, when
    next last went back: refusals of older rounds say nothing new. given: (index, bytes) of the snapshot it has,
    as it said in answer to round parted.
    farewell: the round in which a removed one was first told that its removal is decided; 0: not yet.
    """

    next: int
    heard_s: float = NEVER
    match: int = 0
    rewound: int = 0
    given: tuple[int, int] = (0, 0)
    parted: int = 0
    farewell: int = 0

    @property
    def room(self) -> int:
        """How many more entries may be under way to it."""
        return max(0, limits.APPEND_WINDOW - (self.next - 1 - self.match))


class Replication:
    """Made anew for every term that we lead."""

    def __init__(self, log: Decisions, me: bytes, electorate: Electorate, certificate: Certificate) -> None:
        """Call before the term's first entry is appended."""
        self._log, self._me, self._certificate = log, me, certificate
        self._first = log.last_index + 1
        self._followers: dict[bytes, Follower] = {}
        self._snapshot: tuple[int, bytes] = (0, b"")
        self.follow(electorate)

    def __contains__(self, peer: bytes) -> bool:
        return peer in self._followers

    def peers(self, now: Now) -> list[bytes]:
        """Whom to send to."""
        late = _round(now) - int(_FAREWELL_S * 1000)
        for peer in [peer for peer, follower in self._followers.items() if 0 < follower.farewell < late]:
            del self._followers[peer]
        return sorted(self._followers)

    def follow(self, electorate: Electorate) -> None:
        """Another electorate is in force. Who is not in it any more is still told, until it holds the change."""
        self._electorate = electorate
        for peer in electorate.nodes - {self._me}:
            self.admit(peer)

    def admit(self, peer: bytes) -> None:
        self._followers.setdefault(peer, Follower(self._log.last_index + 1))

    def message_for(self, peer: bytes, now: Now) -> Append | SnapshotPart:
        """The next message to `peer`: what it was not sent yet, or only a beat."""
        if self._followers[peer].next <= self._log.first_index:
            return self._part_for(peer, now)
        return self._append_for(peer, now)

    def _append_for(self, peer: bytes, now: Now) -> Append:
        follower, log = self._followers[peer], self._log
        founding, previous = log.founding.entry, log[follower.next - 1].entry
        entries = log.batch(follower.next, follower.room)
        follower.next += len(entries)
        if self._is_leaving(peer) and not follower.farewell:
            follower.farewell = _round(now)
        return Append(
            team=founding.team,
            incarnation=founding.incarnation,
            term=log.term,
            previous_index=previous.index,
            previous_term=previous.term,
            entries=entries,
            commit=log.commit,
            round=_round(now),
            certificate=self._certificate if follower.match < self._first else (),
        )

    def _part_for(self, peer: bytes, now: Now) -> SnapshotPart:
        """The first part that it has not acknowledged, as often as it takes."""
        index, data = self._latest_snapshot()
        given, have = self._followers[peer].given
        offset = have if given == index else 0
        founding, part = self._log.founding.entry, data[offset : offset + limits.SNAPSHOT_PART_BYTES_MAX]
        head = founding.team, founding.incarnation, self._log.term
        return SnapshotPart(*head, index, len(data), offset, part, _round(now))

    def _latest_snapshot(self) -> tuple[int, bytes]:
        if self._snapshot[0] != self._log.first_index:
            self._snapshot = self._log.first_index, snapshot_of(self._log)
        return self._snapshot

    def check(self, ack: Ack | SnapshotAck) -> None:
        """Raises PeerError('ack-ahead') for an answer to what was never sent."""
        ahead = ack.index if isinstance(ack, SnapshotAck) else max(ack.index, ack.hint)
        if ahead > self._log.last_index:
            raise PeerError("ack-ahead", f"entry {ahead} of {self._log.last_index}")

    def hear_votes(self, voters: Iterable[bytes], asked_s: float) -> None:
        """A vote answers the request of boot second `asked_s`: the first lease counts from there."""
        for peer in voters:
            if peer in self:
                self._followers[peer].heard_s = asked_s

    def hear(self, peer: bytes, ack: Ack, now: Now) -> bool:
        """Take an answer to a round of ours. True: there is more to send to this follower at once."""
        follower = self._followers[peer]
        follower.heard_s = max(follower.heard_s, min(ack.round / 1000, now.boot))
        if not ack.ok:
            return _rewind(follower, ack, now)
        follower.match = max(follower.match, ack.index)
        follower.next = max(follower.next, follower.match + 1)
        if self._is_leaving(peer) and 0 < follower.farewell <= ack.round:
            del self._followers[peer]
        return follower.next <= self._log.last_index and follower.room > 0

    def hear_part(self, peer: bytes, ack: SnapshotAck, now: Now) -> bool:
        """Likewise for a part of the snapshot. The newest answer counts: who restarted begins anew."""
        follower = self._followers[peer]
        follower.heard_s = max(follower.heard_s, min(ack.round / 1000, now.boot))
        if ack.round < follower.parted:
            return False
        given, follower.parted = (ack.index, ack.offset), ack.round
        news = given != follower.given and follower.next <= self._log.first_index
        follower.given = given
        return news

    def _is_leaving(self, peer: bytes) -> bool:
        """It was removed and that is decided: all that is left is that it hears so."""
        return peer not in self._electorate.nodes and self._log.commit >= self._electorate.roster_index

    def holds_lease(self, now: Now, lease_s: float) -> bool:
        """A majority, with us if we vote, answered a round not older than `lease_s`."""
        heard = sorted((self._heard_s(voter, now) for voter in self._electorate.voters), reverse=True)
        return now.boot <= heard[self._electorate.majority - 1] + lease_s

    def decided(self) -> int:
        """The index up to which a majority of the electorate in force holds the log; entries of older terms count
        only below one of this term (Figure 8), so without such the commit stays."""
        matches = sorted((self._match(voter) for voter in self._electorate.voters), reverse=True)
        index = matches[self._electorate.majority - 1]
        return max(index, self._log.commit) if self._log.matches(index, self._log.term) else self._log.commit

    def is_caught_up(self, peer: bytes, now: Now, lease_s: float) -> bool:
        """It was heard within the lease and lacks no more than one batch (Ongaro's thesis, 4.2.1: a last round
        that is short)."""
        follower = self._followers.get(peer)
        if follower is None or now.boot > follower.heard_s + lease_s:
            return False
        return follower.match + limits.APPEND_ENTRIES_MAX >= self._log.last_index and follower.match >= self._first

    def successor(self) -> bytes | None:
        """The follower heard last among those that hold all of the log and may lead."""
        ready = [
            (follower.heard_s, peer)
            for peer, follower in self._followers.items()
            if self._electorate.may_lead(peer) and follower.match == self._log.last_index
        ]
        return max(ready)[1] if ready else None

    def _heard_s(self, voter: bytes, now: Now) -> float:
        return now.boot if voter == self._me else self._followers[voter].heard_s

    def _match(self, voter: bytes) -> int:
        return self._log.last_index if voter == self._me else self._followers[voter].match


def _rewind(follower: Follower, ack: Ack, now: Now) -> bool:
    """Go on from the hint. Also lowers match: who lost its disk holds less than it once said."""
    if ack.round < follower.rewound:
        return False
    follower.match = min(follower.match, ack.hint)
    follower.next = ack.hint + 1
    follower.rewound = _round(now)
    return True


def _round(now: Now) -> int:
    return int(now.boot * 1000)
