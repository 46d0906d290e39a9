"""A decision log checked as a stranger reads it, entry by entry, and folded by the rules that its members follow.

    entry 0 ── founder, roster, every voter's signature ──> electorate, TeamState
    frame ── signature, chain, term's certificate against the electorate in force ──> apply ──> changes

Trusts nothing that it is given but the keys in the roster. What no signature can show is which of the last entries a
majority stored: that is its exporter's word.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Held, open_entry, open_founding
from ioa_p2p.team.electorate import Electorate
from ioa_p2p.team.intake import follow
from ioa_p2p.team.roster import open_found
from ioa_p2p.team.state import Change, Committed, TeamState
from ioa_p2p.wire.decision import Entry
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Elect, Step, decode_step


@dataclass(frozen=True, slots=True)
class Audited:
    """An entry that holds, its step, and what it changed."""

    entry: Entry
    step: Step
    changes: Sequence[Change]


class LogAudit:
    """Made from entry 0. terms: elections seen. nodes: all that ever were in the team."""

    def __init__(self, network: bytes, team: bytes, founding: bytes) -> None:
        """Raises PeerError as `open_founding` and `open_found` do."""
        entry = open_founding(founding, network, team, open_entry(founding, network).incarnation)
        roster = open_found(entry.step, entry.node, team, network)
        self.founding = entry
        self.state = TeamState(roster)
        self.terms = 0
        self.nodes = set(roster.voters)
        self._last = Held(entry, founding, blake(founding))
        self._electorate = Electorate(
            network, team, entry.incarnation, roster.voters, roster.candidates, 0, self._last.hash
        )

    @property
    def head(self) -> bytes:
        """Hash of the last entry's frame, 32 B: two logs with one head are one log."""
        return self._last.hash

    @property
    def voters(self) -> int:
        return len(self._electorate.voters)

    def take(self, frame: bytes) -> Audited:
        """The entry after the last. Raises PeerError as `intake.follow` does."""
        self._last = follow(self._electorate, self._last, frame)
        entry = self._last.entry
        self.terms += bool(entry.certificate)
        step = _read(entry.step)
        changes = self.state.apply(Committed(entry.index, entry.term, entry.node, entry.at, step))
        return Audited(entry, step, changes)


def _read(step: bytes) -> Step:
    """A term's first entry is empty; what this version cannot read changes nothing."""
    try:
        return decode_step(step) if step else Elect()
    except PeerError:
        return Elect()
