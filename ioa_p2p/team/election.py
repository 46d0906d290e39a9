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

import random

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Rows, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.team.campaign import Campaign
from ioa_p2p.team.decisions import Decisions, Held, next_entry, open_founding
from ioa_p2p.team.election_events import Command, Committed, Deposed, Elected, Event, LinkPeer, Propose, Stale, StepDown
from ioa_p2p.team.electorate import Ballot, Electorate
from ioa_p2p.team.evidence import notice_loss
from ioa_p2p.team.intake import Intake, Mandate, check_append, check_sender, saved_mandate
from ioa_p2p.team.replication import Replication
from ioa_p2p.team.role import Role
from ioa_p2p.team.timing import JUMP_S, Timing
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import (
    Ack,
    Append,
    Certificate,
    DecisionMessage,
    HandOver,
    PreVoteReply,
    PreVoteRequest,
    VoteReply,
    VoteRequest,
)
from ioa_p2p.wire.ids import blake


class Election:
    """One machine per team and member. Messages: `wire.decision.DecisionMessage`; commands and events:
    `team.election_events`. One timer, "election/<team hex>": the beat, or the wait for one.

    A member that lost its disk has forgotten its votes and must not vote again: make it with `lost_disk`. It
    still stores and acknowledges entries (an elected coordinator has all decided entries, because the majority
    that voted for it remembers), and never votes or leads in this incarnation again, which it saves.
    """

    def __init__(
        self,
        me: NodeKey,
        network: bytes,
        team: bytes,
        incarnation: int,
        voters: frozenset[bytes],
        candidates: frozenset[bytes],
        rank: float,
        timing: Timing,
        rng: random.Random,
        founding: bytes,
        saved: Rows,
        *,
        lost_disk: bool = False,
    ) -> None:
        """voters: node keys of the roster, with ours. candidates: those that may coordinate. rank: 0..1, higher
        stands earlier. founding: the frame of entry 0. Raises PeerError('wrong-founding' or as frames do),
        UsageError('other-incarnation'), StorageError('damaged')."""
        assert candidates | {me.node} <= voters
        assert 0 <= rank <= 1
        first = Held(open_founding(founding, network, team, incarnation), founding, blake(founding))
        self._me, self._rank, self._timing, self._rng = me, rank, timing, rng
        self._electorate = Electorate(network, team, incarnation, voters, candidates, 0, first.hash)
        self._others = sorted(voters - {me.node})
        self._log = Decisions(first, network, saved, may_vote=not lost_disk)
        self._role = Role.FOLLOWER
        self._coordinator: bytes | None = None
        self._mandate = saved_mandate(self._log)
        self._told_term = self._told_incarnation = 0
        self._heard_s = self._due_s = float("-inf")
        self._campaign: Campaign | None = None
        self._replication: Replication | None = None
        self._open: dict[bytes, int] = {}
        self._effects: list[Effect] = []

    # -- what others may know

    @property
    def role(self) -> Role:
        return self._role

    @property
    def term(self) -> int:
        return self._log.term

    @property
    def incarnation(self) -> int:
        return self._electorate.incarnation

    @property
    def fence(self) -> tuple[int, int]:
        """(incarnation, term): what a worker stores and compares."""
        return self.incarnation, self.term

    @property
    def coordinator(self) -> bytes | None:
        """The node that we follow (or are); None while there is none."""
        return self._coordinator

    @property
    def certificate(self) -> Certificate:
        """The votes that elected the coordinator of this term; empty until they are seen."""
        return self._mandate.certificate if self._mandate.term == self.term else ()

    @property
    def may_vote(self) -> bool:
        """False at a member that lost its memory of this team."""
        return self._log.may_vote

    @property
    def electorate(self) -> Electorate:
        return self._electorate

    @property
    def commit_index(self) -> int:
        return self._log.commit

    @property
    def last_index(self) -> int:
        return self._log.last_index

    def entry_at(self, index: int) -> Held | None:
        """What the log holds there, decided or not."""
        return self._log.get(index)

    # -- inputs

    def start(self, now: Now) -> list[Effect]:
        self._tell(self._log.between(1, self.commit_index))
        self._become_follower(now, self.term, None)
        return self._drain()

    def handle_message(self, now: Now, peer: bytes, message: DecisionMessage) -> list[Effect]:
        if not self._is_ours(peer, message):
            return self._drain()
        intake = self._check(peer, message)
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
        return self._drain()

    def _step(self, now: Now, peer: bytes, message: DecisionMessage, intake: Intake) -> None:
        match message:
            case Append():
                self._on_append(now, peer, message, intake)
            case Ack():
                self._on_ack(now, peer, message)
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

    def _is_ours(self, peer: bytes, message: DecisionMessage) -> bool:
        """Of this incarnation; the word of a higher one is told once. Raises PeerError."""
        check_sender(self._electorate, self._me.node, peer, message)
        if message.incarnation > max(self.incarnation, self._told_incarnation):
            self._told_incarnation = message.incarnation
            self._emit(Stale(message.incarnation))
        return message.incarnation == self.incarnation

    def _check(self, peer: bytes, message: DecisionMessage) -> Intake:
        """All that can be a peer's fault, before anything changes. Raises PeerError."""
        if message.term > self.term + limits.TERM_LEAP_MAX:
            raise PeerError("term-leap", f"from term {self.term} to {message.term}")
        match message:
            case Append():
                return check_append(self._log, self._electorate, self._mandate, peer, message)
            case VoteReply(vote=vote) if vote and self._campaign and self._campaign.is_answered_by(message):
                self._electorate.check_vote(vote, peer, self._campaign.ballot)
            case Ack() if self._replication and message.term == self.term:
                self._replication.check(message)
            case _:
                pass
        return Intake()

    # -- higher terms first

    def _meet_term(self, now: Now, peer: bytes, message: DecisionMessage) -> bool:
        """Adopt a higher term where the message may impose it. False: the message counts no further."""
        match message:
            case VoteRequest(hand_over=False) if self._is_loyal(now, peer):
                return False
            case PreVoteRequest() | PreVoteReply(granted=True) | HandOver() | Append():
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
        for peer in self._others:
            self._send(peer, campaign.pre_vote_request(self._electorate))
        self._grant(now, campaign, self._me.node)

    def _become_candidate(self, now: Now, *, hand_over: bool = False) -> None:
        """Our own vote is saved before a request leaves."""
        self._enter(Role.CANDIDATE, None)
        self._log.set_term(self.term + 1, vote=self._me.node)
        campaign = self._campaign = Campaign(self._ballot(self.term), now.boot)
        self._arm(now.boot + self._timing.ask_s(self._rank, self._rng))
        for peer in self._others:
            self._send(peer, campaign.vote_request(self._electorate, hand_over))
        self._grant(now, campaign, self._me.node, self._electorate.vote(self._me, campaign.ballot))

    def _become_coordinator(self, now: Now, won: Campaign) -> None:
        """The term's first entry carries the certificate."""
        self._enter(Role.COORDINATOR, self._me.node)
        lead = self._replication = Replication(self._log, self._others, self._electorate.majority, won.certificate)
        lead.hear_votes(won.grants, won.asked_s)
        self._accept_mandate(Mandate(self.term, self._me.node, won.certificate))
        self._append(now, b"", won.certificate)
        self._beat(now)
        self._advance_commit(now, lead)

    def _enter(self, role: Role, coordinator: bytes | None) -> None:
        self._role, self._coordinator = role, coordinator
        self._campaign, self._replication, self._open = None, None, {}

    # -- standing for election

    @property
    def _may_stand(self) -> bool:
        return self._me.node in self._electorate.candidates and self._log.may_vote

    def _stand(self, now: Now) -> None:
        if self._may_stand:
            self._become_pre_candidate(now)
        else:
            self._become_follower(now, self.term, None)

    def _grant(self, now: Now, campaign: Campaign, peer: bytes, vote: bytes = b"") -> None:
        """Count one more that would vote, or did."""
        campaign.grants[peer] = vote
        if len(campaign.grants) < self._electorate.majority:
            return
        if self._role is Role.PRE_CANDIDATE:
            self._become_candidate(now)
        else:
            self._become_coordinator(now, campaign)

    def _ballot(self, term: int) -> Ballot:
        return Ballot(self._me.node, term, self.last_index, self._log.last.entry.term)

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
        """It may lead, its log holds all that ours does (section 5.4.1), and we are loyal to nobody else."""
        hand_over = isinstance(message, VoteRequest) and message.hand_over
        return (
            self._log.may_vote
            and peer in self._electorate.candidates
            and (hand_over or not self._is_loyal(now, peer))
            and (message.last_term, message.last_index) >= self._log.end
        )

    def _on_vote_request(self, now: Now, peer: bytes, message: VoteRequest) -> None:
        """The vote is saved before it leaves; asked again, it is given again."""
        vote = b""
        if message.term == self.term and self._log.vote in (b"", peer) and self._would_vote(now, peer, message):
            vote = self._electorate.vote(self._me, Ballot(peer, message.term, message.last_index, message.last_term))
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

    # -- following

    def _on_append(self, now: Now, peer: bytes, message: Append, intake: Intake) -> None:
        if loss := notice_loss(self._log, self._me.node, self._mandate, intake):
            self._emit(loss)
        if intake.mandate is not None:
            self._become_follower(now, message.term, peer)
            self._accept_mandate(intake.mandate)
        if intake.mandate is None or not intake.matches:
            self._refuse(peer, message)
            return
        self._take(intake)
        index = message.previous_index + len(message.entries)
        self._commit_to(min(message.commit, index))
        self._send(peer, Ack(*self._head(), ok=True, index=index, round=message.round))

    def _refuse(self, peer: bytes, message: Append) -> None:
        """Too old a term, no proof or nothing to build on: the term and the hint tell how to go on."""
        team, incarnation, term = self._head()
        index = message.previous_index
        self._send(
            peer, Ack(team, incarnation, max(term, message.term), False, index, message.round, self._log.hint(index))
        )

    def _accept_mandate(self, mandate: Mandate) -> None:
        self._mandate = mandate
        if mandate.term > self._told_term:
            self._told_term = mandate.term
            self._emit(Elected(mandate.term, mandate.coordinator))

    def _take(self, intake: Intake) -> None:
        if intake.fresh and intake.fresh[0].entry.index <= self.last_index:
            self._log.truncate(intake.fresh[0].entry.index)
        for held in intake.fresh:
            self._log.append(held)

    def _commit_to(self, index: int) -> None:
        """Saved too, so that after a restart a member need not ask a majority for what it knew."""
        news = self._log.between(self.commit_index + 1, index)
        if news:
            self._log.set_commit(index)
        self._tell(news)

    def _tell(self, decided: list[Held]) -> None:
        for held in decided:
            self._emit(Committed(held.entry.index, held.entry, held.frame))

    # -- coordinating

    def _beat(self, now: Now) -> None:
        self._send_appends(now)
        self._arm(now.boot + self._timing.beat_s)

    def _send_appends(self, now: Now) -> None:
        for peer in self._others:
            self._send_append(now, peer)

    def _send_append(self, now: Now, peer: bytes) -> None:
        assert self._replication is not None
        self._send(peer, self._replication.append_for(peer, now))

    def _on_ack(self, now: Now, peer: bytes, message: Ack) -> None:
        if self._replication is None or message.term != self.term:
            return
        more = self._replication.hear(peer, message, now)
        if not self._advance_commit(now, self._replication) and more:
            self._send_append(now, peer)

    def _advance_commit(self, now: Now, replication: Replication) -> bool:
        """News are told to all at once, not only at the beat."""
        index = replication.decided()
        if index <= self.commit_index:
            return False
        self._commit_to(index)
        self._open = {key: at for key, at in self._open.items() if at > index}
        self._send_appends(now)
        return True

    def _propose(self, now: Now, step: bytes, key: bytes) -> None:
        if self._replication is None or self._has_lapsed(now):
            raise UsageError("not-coordinator", "another node coordinates this team, or none does now")
        self._log.check_room(step)
        if len(self._open) >= limits.DECISION_OPEN_MAX:
            raise UsageError("busy", f"{len(self._open)} proposals wait for a majority", "try again later")
        if key not in self._open:
            self._append(now, step, ())
            self._open[key] = self.last_index
            self._send_appends(now)
            self._advance_commit(now, self._replication)

    def _append(self, now: Now, step: bytes, certificate: Certificate) -> None:
        at = max(0, int(now.wall))
        self._log.append(next_entry(self._log, self._me, self._electorate.network, at, step, certificate))

    def _step_down(self, now: Now) -> None:
        if self._replication is None:
            return
        if successor := self._replication.successor(self._electorate.candidates):
            self._send(successor, HandOver(*self._head()))
        self._become_follower(now, self.term, None)

    def _on_hand_over(self, now: Now, peer: bytes, message: HandOver) -> None:
        if message.term == self.term and peer == self._coordinator and self._may_stand:
            self._become_candidate(now, hand_over=True)

    def _on_link(self, now: Now, node: bytes, up: bool) -> None:
        if up and self._replication is not None and node in self._replication:
            self._send_append(now, node)
        elif up and self._campaign is not None and self._role is Role.PRE_CANDIDATE and node in self._others:
            self._send(node, self._campaign.pre_vote_request(self._electorate))
        elif not up and node == self._coordinator:
            self._stand(now)

    # -- effects

    @property
    def _timer(self) -> str:
        return f"election/{self._electorate.team.hex()}"

    def _head(self) -> tuple[bytes, int, int]:
        return self._electorate.team, self.incarnation, self.term

    def _arm(self, at: float | None) -> None:
        self._due_s = float("inf") if at is None else at
        self._effects = [effect for effect in self._effects if not isinstance(effect, SetTimer)]
        self._effects.append(SetTimer(self._timer, at))

    def _send(self, peer: bytes, message: DecisionMessage) -> None:
        self._effects.append(Send(peer, message))

    def _emit(self, event: Event) -> None:
        self._effects.append(Emit(event))

    def _drain(self) -> list[Effect]:
        effects: list[Effect] = [*self._log.drain(), *self._effects]
        self._effects = []
        return effects
