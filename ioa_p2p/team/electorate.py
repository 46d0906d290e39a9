"""Who votes, who may lead, and what proves that a majority chose: votes and their quorum certificate.

    Vote frames of one term, one candidate, one roster ── majority of distinct voters ──> certificate

An electorate comes from one roster entry; a membership change makes a new one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.crypto.envelope import open_frame, seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import frames
from ioa_p2p.wire.decision import Vote
from ioa_p2p.wire.frames import Kind


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a candidate asks its voters to sign: its term and the end of its log."""

    candidate: bytes
    term: int
    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class Electorate:
    """voters: distinct node keys. candidates: those of them that may coordinate.

    roster_index, roster_hash: the log entry that names them (32 B, BLAKE2b-256 of its frame).
    """

    network: bytes
    team: bytes
    incarnation: int
    voters: frozenset[bytes]
    candidates: frozenset[bytes]
    roster_index: int
    roster_hash: bytes

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def vote(self, key: NodeKey, ballot: Ballot) -> bytes:
        """Our signed vote. Deterministic: asked again, the same bytes."""
        return seal(key, self.network, Kind.VOTE, self._expected(key.node, ballot))

    def check_vote(self, frame: bytes, voter: bytes, ballot: Ballot) -> None:
        """Raises PeerError('wrong-vote' or as frames do) unless it is `voter`'s vote on `ballot`."""
        if self._open(frame) != self._expected(voter, ballot):
            raise PeerError("wrong-vote", "a vote on something else, or of someone else")

    def check_certificate(self, certificate: Sequence[bytes], term: int, coordinator: bytes) -> Ballot:
        """The ballot that a majority signed. Raises PeerError('not-a-candidate' | 'no-certificate' |
        'no-quorum' | 'repeated-voter' | 'wrong-vote' | 'not-a-voter' | 'bad-signature')."""
        if coordinator not in self.candidates:
            raise PeerError("not-a-candidate", "the roster does not let it coordinate")
        if not certificate:
            raise PeerError("no-certificate", f"term {term} is not proven")
        votes = [self._open(frame) for frame in certificate]
        ballot = Ballot(coordinator, term, votes[0].last_index, votes[0].last_term)
        for vote in votes:
            if vote != self._expected(vote.node, ballot):
                raise PeerError("wrong-vote", "the votes of a certificate are on one ballot")
        if len({vote.node for vote in votes}) < len(votes):
            raise PeerError("repeated-voter")
        if len(votes) < self.majority:
            raise PeerError("no-quorum", f"{len(votes)} votes of {len(self.voters)} voters")
        return ballot

    def _open(self, frame: bytes) -> Vote:
        vote = open_frame(frames.parse(frame), self.network, Kind.VOTE, Vote)
        if vote.node not in self.voters:
            raise PeerError("not-a-voter")
        return vote

    def _expected(self, voter: bytes, ballot: Ballot) -> Vote:
        return Vote(
            node=voter,
            team=self.team,
            incarnation=self.incarnation,
            term=ballot.term,
            candidate=ballot.candidate,
            roster_index=self.roster_index,
            roster_hash=self.roster_hash,
            last_index=ballot.last_index,
            last_term=ballot.last_term,
        )
