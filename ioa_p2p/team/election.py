"""The elected coordinator of a team and its decision log: a small Raft with signed votes.

                            ┌──────────── over ───────────┐
                            v                             │
    FOLLOWER ── wait ──> PRE_CANDIDATE ── majority ──> CANDIDATE ── majority ──> COORDINATOR
       ^        over,           │        would vote       │         voted            │
       │      link lost         │                         │                          │
       └────────── higher term, a proven coordinator, a jump of time, no majority within the lease

Source: Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm" (sections 5.1-5.4), and
Ongaro's thesis for PreVote (9.6), CheckQuorum (6.2) and hand-over (3.10). What is added: votes are signed, and a
majority of them, the certificate, goes with the term, so that nobody follows a coordinator that was not elected.
"""

from collections.abc import Sequence

from ioa_p2p.effects import Effect, Now
from ioa_p2p.errors import PeerError
from ioa_p2p.team.campaign import Campaign
from ioa_p2p.team.election_events import (
    Command,
    Compact,
    Deposed,
    LinkPeer,
    Propose,
    Stale,
    StandAside,
    StepDown,
    TakeTail,
)
from ioa_p2p.team.electorate import Ballot, Electorate
from ioa_p2p.team.follow import Follow
from ioa_p2p.team.intake import Intake, Mandate, check_append, check_log, has_a_say
from ioa_p2p.team.lead import Lead
from ioa_p2p.team.replication import Replication
from ioa_p2p.team.role import Role
from ioa_p2p.team.timing import JUMP_S
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import (
    Ack,
    Append,
    DecisionMessage,
    HandOver,
    Introduce,
    PreVoteReply,
    PreVoteRequest,
    SnapshotAck,
    SnapshotPart,
    VoteReply,
    VoteRequest,
)


class Election(Follow, Lead):
    """One machine per team and member. Messages: `wire.decision.DecisionMessage`; commands and events:
    `team.election_events`. One timer, "election/<team hex>": the beat, or the wait for one.

    Made as `Seat` says; a follower's part is `Follow`, the coordinator's is `Lead`.
    """

    # -- inputs

    def start(self, now: Now) -> list[Effect]:
        self._tell_restored()
        self._tell(self._log.between(1, self.commit_index))
        self._become_follower(now, self.term, None)
        return self._drain()

    def handle_message(self, now: Now, peer: bytes, message: DecisionMessage) -> list[Effect]:
        if not self._is_ours(now, peer, message):
            return self._drain()
        intake = self._check(peer, message)
        self._introductions.hear(peer, message)
        self._notice_lapse(now)
        if self._meet_term(now, peer, message):
            self._step(now, peer, message, intake)
        return self._drain()

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        assert name == self._timer
        if self._slept(now) or self._has_lapsed(now):
            self._become_follower(now, self.term, None)
        elif self._role is Role.COORDINATOR:
            self._beat(now)
        else:
            self._stand(now)
        return self._drain()

    def handle_command(self, now: Now, command: Command) -> list[Effect]:
        match command:
            case Propose(step, key):
                self._propose(now, step, key)
            case LinkPeer(node, up):
                self._notice_lapse(now)
                self._on_link(now, node, up)
            case StepDown():
                self._step_down(now)
            case StandAside(aside):
                self._stand_aside(now, aside)
            case Compact(index, state, decided_at):
                if index > self.first_index:
                    self._log.compact(index, state, decided_at)
            case TakeTail(entries):
                self._take_tail(now, entries)
        return self._drain()

    def _step(self, now: Now, peer: bytes, message: DecisionMessage, intake: Intake) -> None:
        match message:
            case Append():
                self._on_append(now, peer, message, intake)
            case Ack() | SnapshotAck():
                self._on_ack(now, peer, message)
            case SnapshotPart():
                self._on_part(now, peer, message)
            case PreVoteRequest():
                self._on_pre_vote_request(now, peer, message)
            case PreVoteReply(granted=True):
                self._on_grant(now, Role.PRE_CANDIDATE, peer, message)
            case VoteRequest():
                self._on_vote_request(now, peer, message)
            case VoteReply(vote=vote) if vote:
                self._on_grant(now, Role.CANDIDATE, peer, message, vote)
            case HandOver():
                self._on_hand_over(now, peer, message)
            case _:
                pass

    # -- what a message must be before it counts

    def _is_ours(self, now: Now, peer: bytes, message: DecisionMessage) -> bool:
        """Of this incarnation, by one that has a say; the word of a higher one is told once. Raises PeerError."""
        check_log(self._electorate, self._me.node, peer, message)
        if isinstance(message, Introduce):
            self._introductions.meet(self._electorates, self.commit_index, peer, message)
            return False
        told = peer == self._coordinator or (self._replication is not None and peer in self._replication)
        if not told and not self._has_proven(peer) and not has_a_say(self._possible, peer, message):
            self._tell_removed(now, peer, message)
            return False
        if message.incarnation > max(self.incarnation, self._told_incarnation):
            self._told_incarnation = message.incarnation
            self._emit(Stale(message.incarnation))
        return message.incarnation == self.incarnation

    def _has_proven(self, peer: bytes) -> bool:
        """It came in later than our log tells."""
        return peer in self._introductions and peer not in self._possible[0].gone

    def _tell_removed(self, now: Now, peer: bytes, message: DecisionMessage) -> None:
        """Who was removed and asks for votes does not know: the coordinator, if it is one still, says so by the log."""
        self._notice_lapse(now)
        if self._replication is not None and isinstance(message, PreVoteRequest):
            self._replication.admit(peer)
            self._send_append(now, peer)

    def _check(self, peer: bytes, message: DecisionMessage) -> Intake:
        """All that can be a peer's fault, before anything changes. Raises PeerError."""
        if message.term > self.term + limits.TERM_LEAP_MAX:
            raise PeerError("term-leap", f"from term {self.term} to {message.term}")
        match message:
            case Append():
                return check_append(self._log, self._electorates, self._mandate, peer, message)
            case VoteReply(vote=vote) if vote and self._campaign and self._campaign.is_answered_by(message):
                self._electorate.check_vote(vote, peer, self._campaign.ballot)
            case Ack() | SnapshotAck() if self._replication and message.term == self.term:
                self._replication.check(message)
            case SnapshotPart():
                self._arrive(peer, message)
            case _:
                pass
        return Intake()

    # -- higher terms first

    def _meet_term(self, now: Now, peer: bytes, message: DecisionMessage) -> bool:
        """Adopt a higher term where the message may impose it. False: the message counts no further."""
        match message:
            case VoteRequest(hand_over=False) if self._is_loyal(now, peer):
                return False
            case PreVoteRequest() | PreVoteReply(granted=True) | HandOver() | Append() | SnapshotPart():
                return True
            case _:
                if message.term > self.term:
                    self._become_follower(now, message.term, None)
                return True

    def _is_loyal(self, now: Now, peer: bytes) -> bool:
        """A coordinator other than `peer` was heard within the lease, so nobody else is voted for (I8)."""
        if self._role is Role.COORDINATOR:
            return True
        return self._coordinator not in (None, peer) and now.boot < self._heard_s + self._timing.lease_s

    def _notice_lapse(self, now: Now) -> None:
        """A coordinator that slept, or that no majority answered within the lease, is one no more (CheckQuorum)."""
        if self._has_lapsed(now):
            self._become_follower(now, self.term, None)

    def _has_lapsed(self, now: Now) -> bool:
        lead = self._replication
        return lead is not None and (self._slept(now) or not lead.holds_lease(now, self._timing.lease_s))

    def _slept(self, now: Now) -> bool:
        return now.boot > self._due_s + JUMP_S

    # -- roles: each is entered in one place that resets all of it

    def _become_follower(self, now: Now, term: int, coordinator: bytes | None) -> None:
        """Of `coordinator`, or of nobody yet: then asking starts soon, for a pre-vote disturbs nobody."""
        if self._role is Role.COORDINATOR:
            self._emit(Deposed(self.term))
        self._enter(Role.FOLLOWER, coordinator)
        if term > self.term:
            self._log.set_term(term)
        self._heard_s = now.boot
        if coordinator is not None:
            self._arm(now.boot + self._timing.wait_s(self._rank, self._rng))
        else:
            self._arm(now.boot + self._timing.ask_s(self._rank, self._rng) if self._may_stand else None)

    def _become_pre_candidate(self, now: Now) -> None:
        """Ask whether a majority would vote, without raising the term."""
        first = self._role is Role.FOLLOWER
        self._enter(Role.PRE_CANDIDATE, None)
        campaign = self._campaign = Campaign(self._ballot(self.term + 1), now.boot, first=first)
        self._arm(now.boot + self._timing.ask_s(self._rank, self._rng))
        self._introduce(*self._voters_asked)
        self._introductions.begin_round()
        for peer in self._voters_asked:
            self._send(peer, campaign.pre_vote_request(self._electorate))
        self._grant(now, campaign, self._me.node)

    def _become_candidate(self, now: Now, *, hand_over: bool = False) -> None:
        """Our own vote is saved before a request leaves."""
        self._enter(Role.CANDIDATE, None)
        self._log.set_term(self.term + 1, vote=self._me.node)
        campaign = self._campaign = Campaign(self._ballot(self.term), now.boot)
        self._arm(now.boot + self._timing.ask_s(self._rank, self._rng))
        self._introduce(*self._voters_asked)
        for peer in self._voters_asked:
            self._send(peer, campaign.vote_request(self._electorate, hand_over))
        self._grant(now, campaign, self._me.node, self._electorate.vote(self._me, campaign.ballot))

    def _become_coordinator(self, now: Now, won: Campaign) -> None:
        """The term's first entry carries the certificate."""
        self._enter(Role.COORDINATOR, self._me.node)
        lead = self._replication = Replication(self._log, self._me.node, self._electorate, won.certificate)
        lead.hear_votes(won.grants, won.asked_s)
        self._accept_mandate(Mandate(self.term, self._me.node, won.certificate))
        self._append(now, b"", won.certificate)
        self._beat(now)
        self._advance_commit(now, lead)

    def _enter(self, role: Role, coordinator: bytes | None) -> None:
        self._role, self._coordinator = role, coordinator
        self._campaign, self._replication, self._open, self._leaving_s = None, None, {}, None

    # -- standing for election

    @property
    def _may_stand(self) -> bool:
        aside = self._aside and self.may_be_followed
        return self._may_lead(self._me.node) and self._can_judge and not aside

    def _may_lead(self, node: bytes) -> bool:
        """Also one whose removal is not decided yet."""
        return any(one.may_lead(node) for one in self._possible)

    @property
    def _possible(self) -> Sequence[Electorate]:
        return self._electorates.possible(self.commit_index)

    @property
    def _can_judge(self) -> bool:
        """We remember our votes, and our log holds nothing that only a newer version can read."""
        return self._log.may_vote and not self._electorates.unread

    @property
    def _voters_asked(self) -> list[bytes]:
        return sorted(self._electorate.voters - {self._me.node})

    def _stand(self, now: Now) -> None:
        if self._may_stand:
            self._become_pre_candidate(now)
        else:
            self._become_follower(now, self.term, None)

    def _grant(self, now: Now, campaign: Campaign, peer: bytes, vote: bytes = b"") -> None:
        """Count one more voter that would vote, or did."""
        if peer not in self._electorate.voters:
            return
        campaign.grants[peer] = vote
        if len(campaign.grants) < self._electorate.majority:
            return
        if self._role is Role.PRE_CANDIDATE:
            self._become_candidate(now)
        else:
            self._become_coordinator(now, campaign)

    def _ballot(self, term: int) -> Ballot:
        last_term, last_index = self._log.end
        electorate = self._electorate
        return Ballot(self._me.node, term, last_index, last_term, electorate.roster_index, electorate.roster_hash)

    def _on_pre_vote_request(self, now: Now, peer: bytes, message: PreVoteRequest) -> None:
        """Asked by one that we outrank, we ask it back: only now does it know that there is no coordinator."""
        rival = self._campaign if self._role is Role.PRE_CANDIDATE else None
        outranked = rival is not None and rival.outranks(peer, message)
        granted = not outranked and message.term > self.term and self._would_vote(now, peer, message)
        team, incarnation, term = self._head()
        self._send(peer, PreVoteReply(team, incarnation, message.term if granted else term, granted))
        if rival is not None and outranked:
            self._send(peer, rival.pre_vote_request(self._electorate))

    def _would_vote(self, now: Now, peer: bytes, message: PreVoteRequest | VoteRequest) -> bool:
        """It may lead, its log holds all that ours does (section 5.4.1), and we are loyal to nobody else. A learner,
        as far as we know, may have become a voter in the entries that we lack."""
        hand_over = isinstance(message, VoteRequest) and message.hand_over
        known = any(peer in one.voters for one in self._possible)
        came_in = self._has_proven(peer) or message.last_index > self.last_index
        return (
            self._can_judge
            and (self._may_lead(peer) if known else came_in)
            and (hand_over or not self._is_loyal(now, peer))
            and (message.last_term, message.last_index) >= self._log.end
        )

    def _on_vote_request(self, now: Now, peer: bytes, message: VoteRequest) -> None:
        """The vote is saved before it leaves; asked again, it is given again."""
        vote = b""
        if message.term == self.term and self._log.vote in (b"", peer) and self._would_vote(now, peer, message):
            end, roster = (message.last_index, message.last_term), (message.roster_index, message.roster_hash)
            vote = self._electorate.vote(self._me, Ballot(peer, message.term, *end, *roster))
            self._become_follower(now, self.term, None)
            self._log.set_term(self.term, vote=peer)
        self._send(peer, VoteReply(*self._head(), vote))

    def _on_grant(
        self, now: Now, role: Role, peer: bytes, message: PreVoteReply | VoteReply, vote: bytes = b""
    ) -> None:
        """A yes counts in the role and the term that it answers, until the round is over: who slept won no lease."""
        if self._role is not role or now.boot > self._due_s:
            return
        if self._campaign is not None and self._campaign.is_answered_by(message):
            self._grant(now, self._campaign, peer, vote)

    # -- other inputs

    def _on_hand_over(self, now: Now, peer: bytes, message: HandOver) -> None:
        if message.term == self.term and peer == self._coordinator and self._may_stand:
            self._become_candidate(now, hand_over=True)

    def _on_link(self, now: Now, node: bytes, up: bool) -> None:
        """Who is linked anew may have restarted, and is introduced to as if it had never answered."""
        self._introductions.lose(node)
        if up and self._replication is not None and node in self._replication:
            self._send_append(now, node)
        elif up and self._campaign is not None and self._role is Role.PRE_CANDIDATE and node in self._electorate.voters:
            self._introduce(node)
            self._send(node, self._campaign.pre_vote_request(self._electorate))
        elif not up and node == self._coordinator:
            self._stand(now)
