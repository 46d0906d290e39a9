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

_ARRIVALS_MAX = 2  # a coordinator's, and one of who may be the next


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
    """Parts of one snapshot from one sender, in their order."""

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


class Arrivals:
    """Snapshots under way. One a sender, so that nobody spoils another's; two in all, so that two liars cost no more
    memory than one."""

    def __init__(self) -> None:
        self._from: dict[bytes, Arriving] = {}

    def take(self, peer: bytes, part: SnapshotPart, coordinator: bytes | None) -> bytes | None:
        """The whole, with its last part. coordinator: whom we follow; its own goes before others'. Raises
        PeerError('snapshot-too-long')."""
        arriving = self._from.get(peer)
        if arriving is None or not arriving.is_of(part):
            arriving = Arriving(part.index, part.size)
            if not self._has_room(peer, coordinator):
                return None
            self._from[peer] = arriving
        arriving.take(part)
        if not arriving.is_whole:
            return None
        del self._from[peer]
        return bytes(arriving.data)

    def offset(self, peer: bytes) -> int:
        """Where its next part begins."""
        return len(self._from[peer].data) if peer in self._from else 0

    def settle(self, commit: int) -> None:
        """What stands for nothing new is of no use any more."""
        self._from = {peer: arriving for peer, arriving in self._from.items() if arriving.index > commit}

    def _has_room(self, peer: bytes, coordinator: bytes | None) -> bool:
        """Of three the one that brought least goes, be it the newest; the coordinator's stays."""
        others = {sender: len(arriving.data) for sender, arriving in self._from.items() if sender != peer}
        if len(others) < _ARRIVALS_MAX:
            return True
        least = min(others.keys() - {coordinator}, key=lambda sender: (others[sender], sender))
        if others[least] and peer != coordinator:
            return False
        del self._from[least]
        return True


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
        electorates = electorates.after_link(link)
    anchor = electorates.proven(snapshot.anchor, snapshot.certificate)
    decided = electorates.proven(snapshot.checkpoint, snapshot.proof)
    then = electorates.until(anchor.entry.index)
    _check_names(decided, anchor, then, snapshot.state)
    links = snapshot.links[: len(then.all) - 1]
    return Opened(anchor, snapshot.certificate, links, then, snapshot.state, decided.entry.index)


def check_stands_at(opened: Opened, index: int) -> None:
    """Raises PeerError('wrong-snapshot') for one that was announced as of another entry."""
    if opened.anchor.entry.index != index:
        raise PeerError("wrong-snapshot", f"of entry {opened.anchor.entry.index}, announced as of {index}")


def _check_names(decided: Held, anchor: Held, then: Electorates, state: bytes) -> None:
    step = decode_step(decided.entry.step)
    if not isinstance(step, Checkpoint) or decided.entry.index <= anchor.entry.index:
        raise PeerError("wrong-snapshot", "no checkpoint after its anchor")
    named = step.index, step.entry, step.roster, step.state
    if named != (anchor.entry.index, anchor.hash, then.latest.roster_index, blake(state)):
        raise PeerError("wrong-snapshot", "the checkpoint names another entry, roster or state")
