"""Checkpoints: every member knows what a true one says, and takes no other, unless it is told that the others did.

    applied entry ── every 512 ──> mark (hash of the state) ── its Checkpoint decided ──> same? compact : differs
    Append ── a Checkpoint in it that is not decided yet ──> as our mark says? taken : its sender coordinates us no more

So a coordinator that went wrong, or lies, gets no majority for it; a state that a majority decided and that is not
ours stops us.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ioa_p2p.errors import PeerError
from ioa_p2p.team import saved_state
from ioa_p2p.team.decisions import held_of
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Compact
from ioa_p2p.team.state import Checked, TeamState
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Append, DecisionMessage, Entry
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, checkpoint_step

_MARKS_KEPT = 2  # the one being decided, and one that may be reached before it is


@dataclass(frozen=True, slots=True)
class Mark:
    """The state as of one entry, as a checkpoint would name it."""

    step: Checkpoint
    state: bytes


class Doubt(NamedTuple):
    """In which term, and by which entry, a member proposed a false checkpoint."""

    term: int
    entry: int


class Checkpoints:
    def __init__(self, election: Election) -> None:
        self._election = election
        self._marks: list[Mark] = []
        self._doubts: dict[bytes, Doubt] = {}

    def mark(self, state: TeamState, frame: bytes) -> None:
        """`state` is as of the entry with this frame."""
        if state.index % limits.CHECKPOINT_ENTRIES:
            return
        encoded, roster = saved_state.encode(state), self._election.electorates.at(state.index).roster_index
        step = Checkpoint(state.index, blake(frame), roster, blake(encoded), saved_state.VERSION)
        self._marks = [*self._marks, Mark(step, encoded)][-_MARKS_KEPT:]

    def due(self) -> Checkpoint | None:
        """The oldest mark that the log does not rest on yet."""
        return next((mark.step for mark in self._marks if mark.step.index > self._election.first_index), None)

    def judge(self, checked: Checked) -> Compact | None:
        """What follows from a decided checkpoint. None: nothing, for it is old, or of another version than ours.
        Raises PeerError('other-state') if our own state then was another: we or the team went wrong."""
        mine = self._mark_of(checked.checkpoint)
        if mine is None:
            return None
        _check_same(checked.checkpoint, mine.step)
        self._marks = [mark for mark in self._marks if mark.step.index > mine.step.index]
        return Compact(mine.step.index, mine.state, checked.decided_at)

    # -- before it is decided

    def screen(self, peer: bytes, message: DecisionMessage) -> DecisionMessage:
        """An Append as far as it may be taken now: up to a checkpoint of an entry whose state we do not have yet.
        Raises PeerError: 'other-state' for one that differs from our mark, and for all that its sender says in that
        term from then on, until it says that the entry is decided; 'early-checkpoint'."""
        if not isinstance(message, Append):
            return message
        self._check_doubt(peer, message)
        for place, frame in enumerate(message.entries):
            entry = held_of(frame).entry
            checkpoint = checkpoint_step(entry.step)
            if checkpoint is None or entry.index <= message.commit:
                continue
            if checkpoint.index > message.commit:
                raise PeerError("early-checkpoint", f"of entry {checkpoint.index}, which is not decided")
            if checkpoint.index > self._election.commit_index:
                return codec.replace(message, entries=message.entries[:place])
            self._check(peer, message.term, entry, checkpoint)
        return message

    def _check_doubt(self, peer: bytes, message: Append) -> None:
        doubt = self._doubts.get(peer)
        if doubt is not None and message.term == doubt.term and message.commit < doubt.entry:
            raise PeerError("other-state", f"from a coordinator whose entry {doubt.entry} is false")

    def _check(self, peer: bytes, term: int, entry: Entry, checkpoint: Checkpoint) -> None:
        mine = self._mark_of(checkpoint)
        if mine is None:
            return
        try:
            _check_same(checkpoint, mine.step)
        except PeerError:
            if peer in self._election.electorate.nodes:
                self._doubts[peer] = Doubt(term, entry.index)
            raise

    def _mark_of(self, told: Checkpoint) -> Mark | None:
        """Ours of the same entry, if it can be compared."""
        mine = next((mark for mark in self._marks if mark.step.index == told.index), None)
        return mine if mine is not None and mine.step.version == told.version else None


def _check_same(told: Checkpoint, mine: Checkpoint) -> None:
    if told != mine:
        raise PeerError("other-state", f"the team's state at entry {mine.index} is not ours")
