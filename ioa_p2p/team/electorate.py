"""Who votes, who may lead, and what proves that a majority chose: votes and their quorum certificate.

    Vote frames of one term, one candidate, one roster ── majority of distinct voters ──> certificate

An electorate comes from one roster entry; a membership change makes a new one. See `team.electorates`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ioa_p2p.crypto.envelope import open_frame, seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.errors import PeerError
from ioa_p2p.team.standing import Standing, changed, check_admission
from ioa_p2p.wire import frames
from ioa_p2p.wire.decision import Vote
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.step import Admit, Remove, RosterStep


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a candidate asks its voters to sign: its term, the end of its log, and the roster entry in force there."""

    candidate: bytes
    term: int
    last_index: int
    last_term: int
    roster_index: int = 0
    roster_hash: bytes = b""


@dataclass(frozen=True, slots=True)
class Electorate:
    """voters, candidates, learners, gone: as in `Standing`.

    roster_index, roster_hash: the log entry that names them (32 B, BLAKE2b-256 of its frame). leaving: who might lead
    and is removed by that very entry. Until it is decided that node can still be elected, by the voters that are left:
    perhaps nobody else who may lead holds a log so long (Ongaro's thesis, 4.2.2).
    """

    network: bytes
    team: bytes
    incarnation: int
    voters: frozenset[bytes]
    candidates: frozenset[bytes]
    roster_index: int
    roster_hash: bytes
    learners: frozenset[bytes] = frozenset()
    gone: frozenset[bytes] = frozenset()
    leaving: bytes = b""

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def nodes(self) -> frozenset[bytes]:
        """All that get the log."""
        return self.voters | self.learners

    @property
    def standing(self) -> Standing:
        return Standing(self.voters, self.candidates, self.learners, self.gone)

    def may_lead(self, node: bytes) -> bool:
        return node in self.candidates and node in self.voters

    def may_win(self, node: bytes) -> bool:
        """As far as this electorate tells, votes for it can make it coordinator."""
        return self.may_lead(node) or (bool(node) and node == self.leaving)

    def after(self, index: int, frame_hash: bytes, step: RosterStep) -> "Electorate":
        """The one that entry `index` names by its change. Raises PeerError as `changed` and `check_admission` do."""
        if isinstance(step, Admit):
            check_admission(step, self.network, self.team)
        now = changed(self.standing, step)
        return replace(
            self, voters=now.voters, candidates=now.candidates, learners=now.learners, gone=now.gone,
            roster_index=index, roster_hash=frame_hash,
            leaving=step.node if isinstance(step, Remove) and self.may_lead(step.node) else b"",
        )  # fmt: skip

    def vote(self, key: NodeKey, ballot: Ballot) -> bytes:
        """Our signed vote, under the roster that the candidate named. Deterministic: asked again, the same bytes."""
        return seal(key, self.network, Kind.VOTE, self._expected(key.node, ballot))

    def check_vote(self, frame: bytes, voter: bytes, ballot: Ballot) -> None:
        """Raises PeerError('wrong-vote' or as frames do) unless it is `voter`'s vote on `ballot`."""
        if self._open(frame) != self._expected(voter, ballot):
            raise PeerError("wrong-vote", "a vote on something else, or of someone else")

    def check_certificate(self, certificate: Sequence[bytes], term: int, coordinator: bytes) -> Ballot:
        """The ballot that a majority signed. Raises PeerError('not-a-candidate' | 'no-certificate' |
        'no-quorum' | 'repeated-voter' | 'wrong-vote' | 'not-a-voter' | 'bad-signature')."""
        if not self.may_win(coordinator):
            raise PeerError("not-a-candidate", "the roster does not let it coordinate")
        if not certificate:
            raise PeerError("no-certificate", f"term {term} is not proven")
        votes = [self._open(frame) for frame in certificate]
        ballot = Ballot(coordinator, term, votes[0].last_index, votes[0].last_term, self.roster_index, self.roster_hash)
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
            roster_index=ballot.roster_index,
            roster_hash=ballot.roster_hash,
            last_index=ballot.last_index,
            last_term=ballot.last_term,
        )
