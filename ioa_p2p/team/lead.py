"""The coordinator's part of the election: proposals in, entries out, decided when a majority holds them; handing over.

    Propose ── rules ──> entry ── Append ──> followers ── Ack ──> decided ── told to all at once
    StepDown ── successor caught up? ──> HandOver ──> it stands

Source: Raft paper, sections 5.3 and 6; Ongaro's thesis, 3.10 (hand-over), 4.1 and its correction: no change of the
roster before an entry of the own term is committed, and one at a time.
"""

from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.team.decisions import Held, next_entry
from ioa_p2p.team.electorates import Electorates
from ioa_p2p.team.replication import Replication
from ioa_p2p.team.seat import Seat
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import Ack, Certificate, HandOver, SnapshotAck
from ioa_p2p.wire.step import roster_step


class Lead(Seat):
    """What a member does while it coordinates; `Election` says when."""

    def is_caught_up(self, now: Now, node: bytes) -> bool:
        """We coordinate, and this follower (a learner, say) is at our heels."""
        return self._replication is not None and self._replication.is_caught_up(node, now, self._timing.lease_s)

    # -- beats and answers

    def _beat(self, now: Now) -> None:
        if self._leaving_s is not None:
            self._step_down(now)
        if self._replication is not None:
            self._send_appends(now)
            self._introductions.begin_round()
            self._arm(now.boot + self._timing.beat_s)

    def _send_appends(self, now: Now) -> None:
        assert self._replication is not None
        for peer in self._replication.peers(now):
            self._send_append(now, peer)

    def _send_append(self, now: Now, peer: bytes) -> None:
        assert self._replication is not None
        self._introduce(peer)
        self._send(peer, self._replication.message_for(peer, now))

    def _on_ack(self, now: Now, peer: bytes, message: Ack | SnapshotAck) -> None:
        lead = self._replication
        if lead is None or message.term != self.term or peer not in lead:
            return
        more = lead.hear(peer, message, now) if isinstance(message, Ack) else lead.hear_part(peer, message, now)
        if not self._advance_commit(now, lead) and more and peer in lead:
            self._send_append(now, peer)
        if self._leaving_s is not None:
            self._step_down(now)

    def _advance_commit(self, now: Now, replication: Replication) -> bool:
        """News are told to all at once, not only at the beat."""
        index = replication.decided()
        if index <= self.commit_index:
            return False
        self._commit_to(index)
        self._open = {key: at for key, at in self._open.items() if at > index}
        self._send_appends(now)
        if self._me.node not in self._electorate.voters and index >= self._electorate.roster_index:
            self._step_down(now)
        return True

    # -- proposals

    def _propose(self, now: Now, step: bytes, key: bytes) -> None:
        if self._replication is None or self._has_lapsed(now) or self._leaving_s is not None:
            raise UsageError("not-coordinator", "another node coordinates this team, or none does now")
        self._log.check_room(step)
        if len(self._open) >= limits.DECISION_OPEN_MAX:
            raise UsageError("busy", f"{len(self._open)} proposals wait for a majority", "try again later")
        if key in self._open:
            return
        self._check_change(step)
        self._append(now, step, ())
        self._open[key] = self.last_index
        self._send_appends(now)
        self._advance_commit(now, self._replication)

    def _check_change(self, step: bytes) -> None:
        """I9. Two changes at once, or one over an older term's that is still open, could be decided by two
        majorities that share nobody."""
        if roster_step(step) is None:
            return
        if not self._log.matches(self.commit_index, self.term):
            raise UsageError("too-early", "nothing is decided in this term yet", "try again in a moment")
        if self._electorate.roster_index > self.commit_index:
            raise UsageError("change-open", "another change of the roster is being decided", "try again in a moment")
        if len(self._electorates.all) > limits.ROSTER_CHANGES_MAX:
            raise UsageError("too-many-changes", f"a team's roster changes {limits.ROSTER_CHANGES_MAX} times at most")

    def _append(self, now: Now, step: bytes, certificate: Certificate) -> None:
        at = max(0, int(now.wall))
        held = next_entry(self._log, self._me, self._electorate.network, at, step, certificate)
        grown = self._grown(held)
        self._log.append(held)
        if grown is not self._electorates:
            self._electorates = grown
            assert self._replication is not None
            self._replication.follow(grown.latest)

    def _grown(self, held: Held) -> Electorates:
        """In force from the append on (Raft section 6). Raises UsageError for a change that may not be."""
        try:
            return self._electorates.after(held)
        except PeerError as fault:
            raise UsageError(fault.code, str(fault), "see `ioa-p2p team show`") from None

    # -- handing over

    def _step_down(self, now: Now) -> None:
        """To a successor that holds all; while there is none we go on, without taking proposals, for one wait."""
        if self._replication is None:
            return
        if self._leaving_s is None:
            self._leaving_s = now.boot + self._timing.wait_s_max
        successor = self._replication.successor()
        if successor is None and now.boot < self._leaving_s and self.may_be_followed:
            return
        if successor is not None:
            self._send(successor, HandOver(*self._head()))
        self._become_follower(now, self.term, None)

    def _stand_aside(self, now: Now, aside: bool) -> None:
        self._aside = aside
        if aside and self.may_be_followed:
            self._step_down(now)
