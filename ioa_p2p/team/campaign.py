"""One round of asking for votes: what was asked, and who said yes.

pre-vote:  ballot of the next term, empty grants          vote:  ballot of this term, signed grants
"""

from dataclasses import dataclass, field

from ioa_p2p.team.electorate import Ballot, Electorate
from ioa_p2p.wire.decision import Certificate, PreVoteReply, PreVoteRequest, VoteReply, VoteRequest


@dataclass(slots=True)
class Campaign:
    """asked_s: boot seconds. first: no round before this one found no majority. grants: voter -> vote frame."""

    ballot: Ballot
    asked_s: float
    first: bool = False
    grants: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])

    @property
    def certificate(self) -> Certificate:
        return tuple(vote for _, vote in sorted(self.grants.items()))

    def pre_vote_request(self, electorate: Electorate) -> PreVoteRequest:
        ballot = self.ballot
        return PreVoteRequest(electorate.team, electorate.incarnation, ballot.term, ballot.last_index, ballot.last_term)

    def vote_request(self, electorate: Electorate, hand_over: bool) -> VoteRequest:
        team, incarnation, ballot = electorate.team, electorate.incarnation, self.ballot
        roster = electorate.roster_index, electorate.roster_hash
        return VoteRequest(team, incarnation, ballot.term, ballot.last_index, ballot.last_term, hand_over, *roster)

    def is_answered_by(self, message: PreVoteReply | VoteReply) -> bool:
        return message.term == self.ballot.term

    def outranks(self, peer: bytes, message: PreVoteRequest) -> bool:
        """Of two that ask at the same time one must yield, or both would stand and split the votes: the one whose
        log ends earlier, then the lower key. Who found no majority once stands in nobody's way."""
        mine = self.ballot.last_term, self.ballot.last_index, self.ballot.candidate
        return self.first and mine > (message.last_term, message.last_index, peer)
