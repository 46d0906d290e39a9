"""A snapshot: what a follower gets in place of entries that are no more in the log, and how it is verified.

    entry 0 ── electorate ──> link, proven ──> electorate ──> ... ──> anchor and checkpoint, proven ──> state, by hash

Nothing is believed that a quorum certificate does not vouch for, from entry 0 on: a member needs no other trust to
take a state than to take entries.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Decisions, Held
from ioa_p2p.team.electorates import Electorates
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import Certificate, RosterLink, Snapshot, SnapshotPart
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, decode_step


class Opened(NamedTuple):
    """A verified snapshot. electorates: as of the anchor. checkpoint_at: index of the entry that decided it."""

    anchor: Held
    certificate: Certificate
    links: tuple[RosterLink, ...]
    electorates: Electorates
    state: bytes
    checkpoint_at: int


@dataclass(slots=True)
class Arriving:
    """Parts of one snapshot, in their order; the same bytes from whoever coordinates."""

    index: int
    size: int
    data: bytearray = field(default_factory=bytearray)

    def is_of(self, part: SnapshotPart) -> bool:
        return (self.index, self.size) == (part.index, part.size)

    def take(self, part: SnapshotPart) -> None:
        """A part that is not the next changes nothing. Raises PeerError('snapshot-too-long')."""
        if part.offset != len(self.data):
            return
        if len(self.data) + len(part.data) > self.size:
            raise PeerError("snapshot-too-long", f"more than {self.size} bytes")
        self.data += part.data

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.size


def snapshot_of(log: Decisions) -> bytes:
    """Of a log that has a base."""
    assert log.base is not None, "before the first checkpoint the log is whole"
    decided_at = log.base.decided_at
    return codec.encode(
        Snapshot(
            anchor=log.base.anchor,
            certificate=log.base.certificate,
            links=log.links(decided_at),
            checkpoint=log[decided_at].frame,
            proof=log.certificate_of(decided_at),
            state=log.state,
        )
    )


def open_snapshot(data: bytes, founded: Electorates) -> Opened:
    """founded: the electorate of entry 0 alone. Raises PeerError: 'wrong-snapshot', and what entries, certificates
    and roster changes raise."""
    snapshot = codec.decode(data, Snapshot)
    electorates = founded
    for link in snapshot.links:
        electorates = electorates.after(electorates.proven(link.frame, link.certificate))
    anchor = electorates.proven(snapshot.anchor, snapshot.certificate)
    decided = electorates.proven(snapshot.checkpoint, snapshot.proof)
    then = electorates.until(anchor.entry.index)
    _check_names(decided, anchor, then, snapshot.state)
    links = snapshot.links[: len(then.all) - 1]
    return Opened(anchor, snapshot.certificate, links, then, snapshot.state, decided.entry.index)


def _check_names(decided: Held, anchor: Held, then: Electorates, state: bytes) -> None:
    step = decode_step(decided.entry.step)
    if not isinstance(step, Checkpoint) or decided.entry.index <= anchor.entry.index:
        raise PeerError("wrong-snapshot", "no checkpoint after its anchor")
    named = step.index, step.entry, step.roster, step.state
    if named != (anchor.entry.index, anchor.hash, then.latest.roster_index, blake(state)):
        raise PeerError("wrong-snapshot", "the checkpoint names another entry, roster or state")
