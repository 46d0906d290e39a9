"""A team's transcript, written from what this node has on disk. docs/transcripts.md.

    decisions up to the commit ──┐ by time, each in its own order
    chains, woven ───────────────┴──> Decided, Line, Absent ──> [Piece] ──> End, sealed with our key

Reads and writes page by page, whether the team works on or is over; what the disk does not hold is said.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip import blobs
from ioa_p2p.gossip.log import Chain
from ioa_p2p.gossip.weave import Lost, proof_of_fork, weave
from ioa_p2p.node.saved_team import SavedTeam
from ioa_p2p.node.transcript_file import Writer, writing
from ioa_p2p.storage.base import Storage
from ioa_p2p.team import saved_state
from ioa_p2p.team.machine import SPACE, TeamRow
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.decision import Entry, Snapshot
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.step import Outcome, decode_step
from ioa_p2p.wire.transcript import Absent, Decided, End, Forked, Line, Piece, Record, Seal, Start, State

Timed = tuple[int, Record]
"""(wall seconds, record)."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What a file holds. absent: entries, lines and pieces that the disk does not."""

    entries: int
    lines: int
    blobs: int
    absent: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where a transcript comes from: the store and the key of a node, and its mesh (16 B)."""

    storage: Storage
    key: NodeKey
    network: bytes


def export(source: Source, team: bytes, path: Path, at: int, *, with_blobs: bool) -> Exported:
    """Blocks. at: wall seconds. Raises UsageError('no-log'), StorageError, OSError; then `path` is as it was."""
    row = source.storage.get(SPACE, team)
    if row is None:
        raise UsageError("no-log", "this team was never founded, or it was forgotten", "see `ioa-p2p team list`")
    disk = SavedTeam(source.storage, team, codec.decode(row, TeamRow).founding)
    with writing(path) as writer:
        return _Export(source, disk, writer).write(at, with_blobs)


class _Export:
    def __init__(self, source: Source, disk: SavedTeam, writer: Writer) -> None:
        self._source, self._disk, self._writer = source, disk, writer
        self._counts = dict.fromkeys(("decided", "line", "piece", "absent"), 0)
        self._named: dict[bytes, None] = {}
        self._index = 0

    def write(self, at: int, with_blobs: bool) -> Exported:
        node, team, writer = self._source.key.node, self._disk.team, self._writer
        self._put(Start(self._source.network, team, node, at))
        self._put(Decided(self._disk.founding))
        chains = self._disk.chains()
        for proof in filter(None, map(proof_of_fork, chains.values())):
            self._put(Forked(*proof))
        decisions, talk = self._decisions(), self._talk(chains)
        for _, record in heapq.merge(decisions, talk, key=lambda timed: timed[0]):
            self._put(record)
        files = [self._put_blob(name) for name in self._named] if with_blobs else []
        counts = self._counts
        told = Seal(node, team, at, self._index, counts["line"], writer.digest)
        self._put(End(seal(self._source.key, self._source.network, Kind.TRANSCRIPT, told)))
        return Exported(counts["decided"], counts["line"], sum(files), counts["absent"], writer.bytes)

    def _put(self, record: Record) -> None:
        match record:
            case Absent(first=first, last=last):
                self._counts["absent"] += last - first + 1
            case Decided() | Line():
                self._counts["line" if isinstance(record, Line) else "decided"] += 1
            case _:
                pass
        self._writer.write(record)

    # -- decisions

    def _decisions(self) -> Iterator[Timed]:
        """From entry 1 on. Over missing ones only a state leads; without one, all that comes after is missing too."""
        at, commit = 0, self._disk.commit
        for index, frame in self._disk.decided(1, commit):
            if index > self._index + 1:
                if index > self._disk.anchor:
                    break
                yield from ((at, record) for record in self._bridge(index))
            entry = codec.decode(frames.parse(frame).body, Entry)
            self._index, at = index, entry.at
            self._note_blobs(entry.step)
            yield at, Decided(frame)
        if self._index < commit:
            yield at, Absent("decisions", b"", self._index + 1, commit)

    def _bridge(self, first: int) -> Iterator[Record]:
        """Entries before `first` are missing, which the log's base holds in one state."""
        yield Absent("decisions", b"", self._index + 1, first - 1)
        state = self._disk.snapshot(self._source.network)
        blobs_of_state = saved_state.decode(codec.decode(state, Snapshot).state).blobs
        self._named.update((name, None) for name in sorted(blobs_of_state))
        for start in range(0, len(state), limits.SNAPSHOT_PART_BYTES_MAX):
            end = start + limits.SNAPSHOT_PART_BYTES_MAX
            yield State(state[start:end], end < len(state))

    def _note_blobs(self, encoded: bytes) -> None:
        """Files that an outcome names, in their order."""
        try:
            step = decode_step(encoded) if encoded else None
        except PeerError:  # of a newer version
            return
        if isinstance(step, Outcome):
            self._named.update((blob.hash, None) for blob in step.blobs)

    # -- talk

    def _talk(self, chains: Mapping[bytes, Chain]) -> Iterator[Timed]:
        at = 0
        for told in weave(chains, self._disk.cuts()):
            if isinstance(told, Lost):
                yield at, Absent("lines", told.author, told.first, told.last)
            else:
                entry, frame = told
                at = entry.at
                yield at, Line(frame)

    # -- files

    def _put_blob(self, name: bytes) -> bool:
        """Whether all of it is there."""
        manifest = blobs.read_manifest(self._disk.rows, name)
        if manifest is None:
            self._put(Absent("blob", name, 0, 0))
            return False
        self._put(Piece(name, blobs.MANIFEST, codec.encode(manifest)))
        piece = 0
        try:
            for piece, chunk in enumerate(blobs.chunks(self._disk.rows, name), 1):
                self._put(Piece(name, piece - 1, chunk))
        except PeerError:  # damaged, or not all of it came
            self._put(Absent("blob", name, piece, len(manifest.chunks) - 1))
            return False
        return True
