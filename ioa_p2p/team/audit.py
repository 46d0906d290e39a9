"""A decision log checked as a stranger reads it, entry by entry, and folded by the rules that its members follow.

    entry 0 ── founder, roster, every voter's signature ──> electorate, TeamState
    frame ── signature, chain, term's certificate against the electorate in force ──> apply ──> changes
    Snapshot, in place of entries that are missing ── certificates from entry 0 on ──> state, electorate

Trusts nothing that it is given but the keys in the roster. What no signature can show is which of the last entries a
majority stored: that is its exporter's word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ioa_p2p.errors import PeerError
from ioa_p2p.team import saved_state
from ioa_p2p.team.decisions import Held, held_of, open_entry, open_founding
from ioa_p2p.team.electorate import Electorate
from ioa_p2p.team.electorates import Electorates
from ioa_p2p.team.intake import follow
from ioa_p2p.team.roster import open_found
from ioa_p2p.team.snapshots import open_snapshot
from ioa_p2p.team.state import Change, Committed, RosterMoved, TeamState, step_of
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import Entry
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, Remove, Step, roster_step


@dataclass(frozen=True, slots=True)
class Audited:
    """An entry that holds, its step, and what it changed; None: it stands before a state that holds it already."""

    entry: Entry
    step: Step
    changes: Sequence[Change] | None


class LogAudit:
    """Made from entry 0. terms: elections seen. nodes: all that ever were in the team. cuts: node -> how far the talk
    of one that was removed counts."""

    def __init__(self, network: bytes, team: bytes, founding: bytes) -> None:
        """Raises PeerError as `open_founding` and `open_found` do."""
        entry = open_founding(founding, network, team, open_entry(founding, network).incarnation)
        roster = open_found(entry.step, entry.node, team, network)
        self.founding = entry
        self.state = TeamState(roster)
        self.entries = 1
        self.terms = 0
        self.nodes = set(roster.voters)
        self.cuts: dict[bytes, int] = {}
        self._last = Held(entry, founding, blake(founding))
        self._founded = self._electorate = Electorate(
            network, team, entry.incarnation, roster.voters, roster.candidates, 0, self._last.hash
        )
        self._earlier: _Earlier | None = None
        self._mark = 0, b""

    @property
    def head(self) -> bytes:
        """Hash of the last entry's frame, 32 B: two logs with one head are one log."""
        return self._last.hash

    @property
    def next_index(self) -> int:
        return self._earlier.index if self._earlier is not None else self.state.index + 1

    @property
    def voters(self) -> int:
        return len(self._electorate.voters)

    def take(self, frame: bytes) -> Audited:
        """The entry at `next_index`. Raises PeerError as `intake.follow` and roster changes do."""
        if self._earlier is not None:
            return self._take_earlier(self._earlier, frame)
        self._last = follow(self._electorate, self._last, frame)
        entry = self._last.entry
        self.entries += 1
        self.terms += bool(entry.certificate)
        if (change := roster_step(entry.step)) is not None:
            self._electorate = self._electorate.after(entry.index, self._last.hash, change)
        step = step_of(entry.step)
        changes = self.state.apply(Committed(entry.index, entry.term, entry.node, entry.at, step))
        self._note_people(changes)
        self._compare(step)
        return Audited(entry, step, changes)

    def _compare(self, step: Step) -> None:
        """The state that members decided to have had is the one that their entries make here too."""
        if self.state.index % limits.CHECKPOINT_ENTRIES == 0:
            self._mark = self.state.index, blake(saved_state.encode(self.state))
        if not isinstance(step, Checkpoint) or (step.version, step.index) != (saved_state.VERSION, self._mark[0]):
            return
        if step.state != self._mark[1]:
            raise PeerError("other-state", f"its entries make another state at entry {step.index} than it names")

    def _note_people(self, changes: Sequence[Change]) -> None:
        self.nodes |= self._electorate.nodes
        for change in changes:
            if isinstance(change, RosterMoved) and isinstance(change.step, Remove):
                self.cuts[change.node] = change.step.cut

    # -- where entries are missing

    def restore(self, first: int, snapshot: bytes) -> None:
        """The entries before `first` are not there; go on from what they came to. Those from `first` up to the
        snapshot's anchor may come yet, and must lead to it. Raises PeerError: 'wrong-gap', 'wrong-snapshot', and as
        `open_snapshot` does."""
        opened = open_snapshot(snapshot, Electorates((self._founded,)))
        anchor = opened.anchor.entry
        if not self.next_index < first <= anchor.index:
            raise PeerError("wrong-gap", f"a state at entry {anchor.index} is no way over these missing entries")
        self.state = saved_state.decode(opened.state)
        if self.state.index != anchor.index or not _is_sound(self.state):
            raise PeerError("wrong-snapshot", "the state that was decided contradicts itself")
        self._last, self._electorate = opened.anchor, opened.electorates.latest
        for each in opened.electorates.all:
            self.nodes |= each.nodes
        for link in opened.links:
            self.cuts.update(cut_in(held_of(link.frame).entry))
        self._earlier = _Earlier(first, opened.anchor)

    def _take_earlier(self, earlier: "_Earlier", frame: bytes) -> Audited:
        entry = earlier.take(frame, self._electorate)
        self.entries += 1
        if earlier.index > earlier.anchor.entry.index:
            self._earlier = None
        return Audited(entry, step_of(entry.step), None)

    def end(self) -> None:
        """Raises PeerError('wrong-gap') if a chain before a state was begun and does not reach it."""
        if self._earlier is not None:
            raise PeerError("wrong-gap", f"entry {self._earlier.index} does not come")


class _Earlier:
    """Entries before a proven one, which by its hash proves them all. index: the next."""

    def __init__(self, first: int, anchor: Held) -> None:
        self.index = first
        self.anchor = anchor
        self._hash = b""

    def take(self, frame: bytes, electorate: Electorate) -> Entry:
        """Raises PeerError('wrong-entry' or as frames do)."""
        entry, known = open_entry(frame, electorate.network), self.anchor
        if (entry.team, entry.incarnation, entry.index) != (electorate.team, electorate.incarnation, self.index):
            raise PeerError("wrong-entry", "it is not the entry that comes next")
        if self._hash not in (b"", entry.previous) or (entry.index == known.entry.index and frame != known.frame):
            raise PeerError("wrong-entry", f"entry {entry.index} does not lead to entry {known.entry.index}")
        self.index, self._hash = self.index + 1, blake(frame)
        return entry


def cut_in(entry: Entry) -> Mapping[bytes, int]:
    """node -> how far its talk counts, if the entry removes one."""
    step = roster_step(entry.step)
    return {step.node: step.cut} if isinstance(step, Remove) else {}


def _is_sound(state: TeamState) -> bool:
    """What the rules take for granted: a budget's part for each open task, and nothing awaited that is not there."""
    awaited = state.waiting.tasks if state.waiting is not None else ()
    return {row.spec.id for row in state.open_tasks} == set(state.budget.held) - {b""} and set(awaited) <= set(
        state.tasks
    )
