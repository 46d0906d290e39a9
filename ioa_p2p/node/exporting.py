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
from ioa_p2p.node.transcript_file import Writer, writing
from ioa_p2p.storage.base import Storage
from ioa_p2p.team.decisions import spaces
from ioa_p2p.team.machine import SPACE, TeamRow
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.decision import Entry
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.step import Outcome, decode_step
from ioa_p2p.wire.transcript import Absent, Decided, End, Forked, Line, Piece, Record, Seal, Start

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
    with writing(path) as writer:
        return _Export(source, team, writer).write(codec.decode(row, TeamRow).founding, at, with_blobs)


class _Export:
    def __init__(self, source: Source, team: bytes, writer: Writer) -> None:
        self._source, self._team, self._writer = source, team, writer
        self._disk = SavedTeam(source.storage, team)
        self._counts = dict.fromkeys(("decided", "line", "piece", "absent"), 0)
        self._named: dict[bytes, None] = {}
        self._index = 0

    def write(self, founding: bytes, at: int, with_blobs: bool) -> Exported:
        node, team, writer = self._source.key.node, self._team, self._writer
        self._put(Start(self._source.network, team, node, at))
        self._put(Decided(founding))
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
        """From entry 1 on. What comes after a missing one cannot be followed, so it is missing too."""
        at, commit = 0, self._disk.commit
        for index, frame in self._disk.decided(1, commit):
            if index != self._index + 1:
                break
            entry = codec.decode(frames.parse(frame).body, Entry)
            self._index, at = index, entry.at
            self._note_blobs(entry.step)
            yield at, Decided(frame)
        if self._index < commit:
            yield at, Absent("decisions", b"", self._index + 1, commit)

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
        for told in weave(chains, {}):
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


class SavedTeam:
    """What a disk holds of one team."""

    def __init__(self, storage: Storage, team: bytes) -> None:
        self._storage, self._team = storage, team
        self._log, self._votes = spaces(team)

    def rows(self, space: str) -> list[tuple[bytes, bytes]]:
        return list(self._storage.scan(space))

    @property
    def commit(self) -> int:
        """The last entry that was decided, as far as this node knew."""
        return int.from_bytes(self._storage.get(self._votes, b"commit") or b"", "big")

    def decided(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """(index, frame) of entries first..last, as far as they are held; a page at a time."""
        for start in range(first, last + 1, limits.TRANSCRIPT_PAGE_ROWS):
            end = min(start + limits.TRANSCRIPT_PAGE_ROWS, last + 1)
            for key, frame in self._storage.scan(self._log, _key(start), _key(end)):
                yield int.from_bytes(key, "big"), frame

    def chains(self) -> dict[bytes, Chain]:
        """Of everybody whose lines were saved, member still or not."""
        prefix = f"chat/{self._team.hex()}/"
        names = {space.removeprefix(prefix).partition("/")[0] for space in self._storage.spaces(prefix)}
        authors = sorted(bytes.fromhex(name) for name in names if len(name) == 2 * limits.NODE_ID_BYTES)
        return {author: Chain(self._team, author, self.rows) for author in authors}


def _key(index: int) -> bytes:
    return index.to_bytes(8, "big")
