"""Planted faults of the election: each is one plausible mistake, and must be caught by the rules beside it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ioa_p2p.effects import Effect, Now, Save
from ioa_p2p.team.decisions import HardState
from ioa_p2p.team.election import Election
from ioa_p2p.team.electorate import Ballot, Electorate
from ioa_p2p.team.electorates import Electorates
from ioa_p2p.team.intake import Intake
from ioa_p2p.team.replication import Replication
from ioa_p2p.team.role import Role
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import Ack, Append, PreVoteRequest, VoteRequest
from tests.sim.scenario import Mutant


class ForgetsVote(Election):
    """The vote is not saved."""

    def _drain(self) -> list[Effect]:
        return [_without_vote(effect) for effect in super()._drain()]


class AcksUnsaved(Election):
    """Entries are acknowledged, not saved."""

    def _drain(self) -> list[Effect]:
        return [
            effect
            for effect in super()._drain()
            if not (isinstance(effect, Save) and effect.space.startswith("decision/"))
        ]


class VotesTwice(Election):
    """A second candidate in a term gets a vote too."""

    def _on_vote_request(self, now: Now, peer: bytes, message: VoteRequest) -> None:
        if message.term == self.term and self._role is Role.FOLLOWER:
            self._log.vote = b""
        super()._on_vote_request(now, peer, message)


class SkipsLogCheck(Election):
    """Votes for a candidate whose log lacks entries."""

    def _would_vote(self, now: Now, peer: bytes, message: PreVoteRequest | VoteRequest) -> bool:
        last_term, last_index = self._log.end
        return super()._would_vote(
            now, peer, msgspec.structs.replace(message, last_term=last_term, last_index=last_index)
        )


class SkipsPreVote(Election):
    """Stands at once, with a higher term."""

    def _become_pre_candidate(self, now: Now) -> None:
        self._become_candidate(now)


class SkipsCheckQuorum(Election):
    """Goes on coordinating without a majority, or after a sleep."""

    def _has_lapsed(self, now: Now) -> bool:
        return False


class SleepsUnnoticed(SkipsCheckQuorum):
    """Takes no notice of a jump of time."""

    def _slept(self, now: Now) -> bool:
        return False


class IgnoresLease(Election):
    """Votes while the coordinator is heard."""

    def _is_loyal(self, now: Now, peer: bytes) -> bool:
        return False


class CountsOldTerms(Election):
    """Decides entries of older terms by counting (Figure 8 of the Raft paper)."""

    def _advance_commit(self, now: Now, replication: Replication) -> bool:
        matches = sorted([self.last_index, *(f.match for f in replication._followers.values())], reverse=True)
        return _commit(self, now, matches[self._electorate.majority - 1])


class DecidesEarly(Election):
    """Decides before a majority holds the entry."""

    def _advance_commit(self, now: Now, replication: Replication) -> bool:
        matches = sorted([self.last_index, *(f.match for f in replication._followers.values())], reverse=True)
        return _commit(self, now, matches[self._electorate.majority - 2])


class TruncatesHeld(Election):
    """Takes the end of an Append for the end of the log: an old one drops what was acknowledged since."""

    def _take(self, intake: Intake) -> None:
        super()._take(intake)
        if self._message_end < self.last_index:
            del self._log._log[self._message_end + 1 :]

    def _on_append(self, now: Now, peer: bytes, message: Append, intake: Intake) -> None:
        self._message_end = message.previous_index + len(message.entries)
        super()._on_append(now, peer, message, intake)


class RepeatsHint(Election):
    """Refuses an entry and names the same one as where to go on."""

    def _refuse(self, peer: bytes, message: Append) -> None:
        team, incarnation, term = self._head()
        index, hint = message.previous_index, min(message.previous_index, self.last_index)
        self._send(peer, Ack(team, incarnation, max(term, message.term), False, index, message.round, hint))


class VotesAfterLostDisk(Election):
    """Forgets that it lost its disk, and votes anew."""

    def __init__(self, *args: Any, lost_disk: bool = False) -> None:
        super().__init__(*args)


class TrustsCertificates(Election):
    """Follows whoever says that it was elected."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        sound = self._electorate
        credulous = Credulous(*(getattr(sound, name) for name in Electorate.__dataclass_fields__))
        self._founded = self._electorates = Electorates((credulous,))


class Credulous(Electorate):
    """Counts the votes of a certificate, without looking at who signed what."""

    def check_certificate(self, certificate: Sequence[bytes], term: int, coordinator: bytes) -> Ballot:
        vote = self._open(certificate[0])
        return Ballot(coordinator, term, vote.last_index, vote.last_term)


def _without_vote(effect: Effect) -> Effect:
    if not isinstance(effect, Save) or effect.key != b"state" or effect.value is None:
        return effect
    state = codec.decode(effect.value, HardState)
    return replace(effect, value=codec.encode(msgspec.structs.replace(state, vote=b"")))


def _commit(member: Election, now: Now, index: int) -> bool:
    if index <= member.commit_index:
        return False
    member._commit_to(index)
    member._send_appends(now)
    return True


MUTANTS = (
    Mutant("vote-not-saved", ForgetsVote, frozenset({"I5"})),
    Mutant("acknowledged-not-saved", AcksUnsaved, frozenset({"I5"})),
    Mutant("two-votes-a-term", VotesTwice, frozenset({"I1", "I5", "assert"})),
    Mutant("no-log-check", SkipsLogCheck, frozenset({"I2"})),
    Mutant("no-pre-vote", SkipsPreVote, frozenset({"undisturbed"})),
    Mutant("no-check-quorum", SkipsCheckQuorum, frozenset({"I8"})),
    Mutant("sleep-unnoticed", SleepsUnnoticed, frozenset({"I8"})),
    Mutant("lease-ignored", IgnoresLease, frozenset({"undisturbed"})),
    Mutant("old-term-counted", CountsOldTerms, frozenset({"I2"})),
    Mutant("decided-early", DecidesEarly, frozenset({"I2", "I8"})),
    Mutant("held-truncated", TruncatesHeld, frozenset({"I2", "I4", "I5"})),
    Mutant("hint-repeated", RepeatsHint, frozenset({"L1"})),
    Mutant("vote-after-lost-disk", VotesAfterLostDisk, frozenset({"I1", "I5"})),
    Mutant("certificate-not-verified", TrustsCertificates, frozenset({"I1"})),
)
