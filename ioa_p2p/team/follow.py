"""A follower's part of the election: entries, or a snapshot in their place, taken from who has proven to coordinate.

    Append ── mandate, matches? ──> entries taken, electorate with them, commit ──> Ack
    SnapshotPart ... ── whole, verified? ──> the log rests on it ──> Ack

Source: Raft paper, sections 5.3, 6 and 7. Entries that prove themselves are kept also from one that cannot prove its
term to us yet: its votes may name a roster entry that we lack.
"""

from ioa_p2p.effects import Now
from ioa_p2p.team.election_events import Elected
from ioa_p2p.team.evidence import notice_loss
from ioa_p2p.team.intake import Intake, Mandate, saved_mandate
from ioa_p2p.team.role import Role
from ioa_p2p.team.seat import Seat
from ioa_p2p.team.snapshots import Opened, check_stands_at, open_snapshot
from ioa_p2p.wire.decision import Ack, Append, SnapshotAck, SnapshotPart


class Follow(Seat):
    """What a member does while another coordinates; `Election` says when."""

    _opened: Opened | None = None

    def _on_append(self, now: Now, peer: bytes, message: Append, intake: Intake) -> None:
        if loss := notice_loss(self._log, self._me.node, self._mandate, intake):
            self._emit(loss)
        if intake.mandate is not None:
            self._become_follower(now, message.term, peer)
            self._accept_mandate(intake.mandate)
        if intake.mandate is None or not intake.matches:
            self._keep(now, intake)
            self._refuse(peer, message)
            return
        self._take(intake)
        index = message.previous_index + len(message.entries)
        self._commit_to(min(message.commit, index))
        self._arrivals.settle(self.commit_index)
        self._send(peer, Ack(*self._head(), ok=True, index=index, round=message.round))

    def _refuse(self, peer: bytes, message: Append) -> None:
        """Too old a term, no proof or nothing to build on: the term and the hint tell how to go on."""
        team, incarnation, term = self._head()
        index = message.previous_index
        hint = self._log.hint(index)
        self._send(peer, Ack(team, incarnation, max(term, message.term), False, index, message.round, hint))

    def _keep(self, now: Now, intake: Intake) -> None:
        """Entries that prove themselves, from one whose votes name a roster that we may learn from them."""
        if intake.fresh and self._role is not Role.COORDINATOR:
            self._become_follower(now, self.term, self._coordinator)
            self._take(intake)

    def _accept_mandate(self, mandate: Mandate) -> None:
        self._mandate = mandate
        if mandate.term > self._told_term:
            self._told_term = mandate.term
            self._emit(Elected(mandate.term, mandate.coordinator))

    def _take(self, intake: Intake) -> None:
        """Who votes changes with the entries, back and forth (Raft paper, section 6)."""
        if not intake.fresh:
            return
        first = intake.fresh[0].entry.index
        if first <= self.last_index:
            self._log.truncate(first)
        for held in intake.fresh:
            self._log.append(held)
        self._electorates = self._electorates.until(first - 1).after_all(intake.fresh)

    # -- a snapshot in place of entries

    def _arrive(self, peer: bytes, part: SnapshotPart) -> None:
        """Gather parts; a whole snapshot is verified before it counts, and a false one dropped. Raises PeerError."""
        self._opened = None
        if part.index <= self.commit_index or part.term < self.term:
            return
        whole = self._arrivals.take(peer, part, self._coordinator)
        if whole is not None:
            opened = open_snapshot(whole, self._founded)
            check_stands_at(opened, part.index)
            self._opened = opened

    def _on_part(self, now: Now, peer: bytes, part: SnapshotPart) -> None:
        team, incarnation, term = self._head()
        if part.index <= self.commit_index or part.term < term or self._role is Role.COORDINATOR:
            hint = self.commit_index
            self._send(peer, Ack(team, incarnation, max(term, part.term), False, part.index, part.round, hint))
            return
        if peer == self._coordinator and part.term == term:
            self._become_follower(now, term, peer)
        if self._opened is not None:
            self._install(now, self._opened)
            self._send(peer, Ack(team, incarnation, part.term, True, part.index, part.round))
        else:
            offset = self._arrivals.offset(peer)
            self._send(peer, SnapshotAck(team, incarnation, part.term, part.index, offset, part.round))

    def _install(self, now: Now, opened: Opened) -> None:
        """Our log rests on it from now on; candidates must begin anew, for their log is another."""
        self._opened = None
        if self._role is not Role.FOLLOWER:
            self._become_follower(now, self.term, None)
        anchor, certificate, links, electorates, state, checkpoint_at = opened
        self._arrivals.settle(anchor.entry.index)
        self._log.install(anchor, certificate, links, state, checkpoint_at)
        self._electorates = electorates.after_all(self._log.between(anchor.entry.index, self.last_index))
        self._learn_mandate(now, saved_mandate(self._log))
        self._tell_restored()

    def _learn_mandate(self, now: Now, proven: Mandate) -> None:
        """The term's first entry, which carries the votes for its coordinator, is in the state: it comes no more."""
        if proven.term > self.term:
            self._become_follower(now, proven.term, None)
        if self._mandate.term < proven.term == self.term:
            self._accept_mandate(proven)
