"""Who could vote when: the electorates of one log, one for each roster entry in it.

    entry 0 ──> electorate        Admit | Promote | Remove appended ──> the next        truncated ──> the one before

Source: Raft paper, section 6: a configuration is in force from the moment its entry is appended. Immutable, so that
entries can be tried on before they are taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Held, open_entry
from ioa_p2p.team.electorate import Ballot, Electorate
from ioa_p2p.wire import frames
from ioa_p2p.wire.decision import RosterLink, Vote
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import is_known, roster_step


@dataclass(frozen=True, slots=True)
class Electorates:
    """all: in the order of their entries, the first from entry 0. unread: index of the first entry of a kind that only
    a newer version knows, 0 if there is none; who may vote from there on is not known here."""

    all: tuple[Electorate, ...]
    unread: int = 0

    @property
    def latest(self) -> Electorate:
        return self.all[-1]

    def possible(self, commit: int) -> tuple[Electorate, ...]:
        """Those of which one stays in force: the latest, and the one before while its entry may still be truncated.
        Older ones cannot, for a change is only appended once the last is decided."""
        return self.all[-2:] if self.latest.roster_index > commit else self.all[-1:]

    def at(self, index: int) -> Electorate:
        """The one in force for a log that ends with entry `index`."""
        return next(each for each in reversed(self.all) if each.roster_index <= index)

    def until(self, index: int) -> "Electorates":
        """Those of entries up to `index`."""
        if max(self.latest.roster_index, self.unread) <= index:
            return self
        return Electorates(self._up_to(index), self.unread if self.unread <= index else 0)

    def after(self, held: Held) -> "Electorates":
        """With what an entry changes, if it does. Raises PeerError for a change that may not follow."""
        index, step = held.entry.index, roster_step(held.entry.step)
        if step is not None:
            return Electorates((*self.all, self.latest.after(index, held.hash, step)), self.unread)
        return self if self.unread or is_known(held.entry.step) else Electorates(self.all, index)

    def after_all(self, entries: Iterable[Held]) -> "Electorates":
        grown = self
        for held in entries:
            grown = grown.after(held)
        return grown

    def check_mandate(self, certificate: Sequence[bytes], term: int, coordinator: bytes, commit: int) -> None:
        """A majority elected `coordinator`, as far as a log with this commit can tell: all that is committed was in
        the log that was voted on. Raises PeerError('unknown-roster') for a roster entry that we lack, which may be
        honest, and as `Electorate.check_certificate` does."""
        electorate = self.at(commit)
        if certificate:
            vote = self._open(certificate[0])
            if vote.roster_index > commit:
                electorate = self._named(vote.roster_index, vote.roster_hash)
        electorate.check_certificate(certificate, term, coordinator)

    def check_past(self, certificate: Sequence[bytes], term: int, coordinator: bytes) -> Ballot:
        """The ballot of a term that all roster entries before its place are known of. Raises PeerError."""
        electorate = self.latest
        if certificate:
            electorate = self.at(self._open(certificate[0]).last_index)
        return electorate.check_certificate(certificate, term, coordinator)

    def after_link(self, link: RosterLink) -> "Electorates":
        """With a later change, as its proof says. Raises PeerError: 'unproven-entry', and as votes and changes do."""
        held = self.proven(link.frame, link.certificate)
        if roster_step(held.entry.step) is None or held.entry.index <= self.latest.roster_index:
            raise PeerError("unproven-entry", f"entry {held.entry.index} is no later change of the roster")
        return self.after(held)

    def proven(self, frame: bytes, certificate: Sequence[bytes]) -> Held:
        """An entry whose signer was elected, before it, for its term; its place in a log is not checked. Raises
        PeerError: 'unproven-entry', and as `check_past` does."""
        entry, known = open_entry(frame, self.latest.network), self.latest
        if (entry.team, entry.incarnation) != (known.team, known.incarnation):
            raise PeerError("unproven-entry", "an entry of another log")
        if self.check_past(certificate, entry.term, entry.node).last_index >= entry.index:
            raise PeerError("unproven-entry", f"entry {entry.index} was there before its term")
        return Held(entry, frame, blake(frame))

    def _named(self, index: int, frame_hash: bytes) -> Electorate:
        for each in self.all:
            if (each.roster_index, each.roster_hash) == (index, frame_hash):
                return each
        raise PeerError("unknown-roster", f"votes under entry {index}, which is not here")

    def _open(self, frame: bytes) -> Vote:
        return open_frame(frames.parse(frame), self.latest.network, Kind.VOTE, Vote)

    def _up_to(self, index: int) -> tuple[Electorate, ...]:
        return tuple(each for each in self.all if each.roster_index <= index)
