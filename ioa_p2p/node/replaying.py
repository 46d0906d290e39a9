"""A transcript read back, offline: everything is checked, and what the team did is told in order.

    file ──> records ──> LogAudit (decisions) ──┐
                    ├──> TalkAudit (lines) ─────┼──> events ... ──> Verdict | PeerError that says what and where
                    └──> Files, Seal ───────────┘

Needs no node, no data folder and no trust: an honest file passes whoever hands it on, any other is refused. docs/
transcripts.md says what that proves. Memory does not grow with the file, but for what the team's state itself holds.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip.audit import TalkAudit
from ioa_p2p.gossip.blobs import MANIFEST
from ioa_p2p.node import retelling
from ioa_p2p.node.retelling import Event
from ioa_p2p.node.transcript_file import Reader
from ioa_p2p.team.audit import LogAudit
from ioa_p2p.team.state import LineHeard
from ioa_p2p.wire import codec, frames, gossip, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake, node_text
from ioa_p2p.wire.step import Outcome
from ioa_p2p.wire.transcript import Absent, Decided, End, Forked, Line, Piece, Record, Seal, Start, State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a file in which everything holds. entries: decisions, entry 0 among them. members: nodes that ever were in
    the team. own_words: decided lines that their speakers signed too; hearsay: those that only a coordinator signed.
    absent: numbers that the exporter said it does not hold, and that did not come. head: hash of the last entry."""

    network: bytes
    team: bytes
    exporter: bytes
    exported_at: int
    entries: int
    terms: int
    members: tuple[bytes, ...]
    lines: int
    own_words: int
    hearsay: int
    files: int
    absent: int
    head: bytes
    concluded: bool


def replay(file: BinaryIO, network: bytes | None = None) -> Generator[Event, None, Verdict]:
    """Yields events, returns the verdict. network: the only one that will do, if there is one. Raises PeerError: its
    text says where."""
    reader = Reader(file)
    replayed = _Replay(network)
    try:
        for record in reader.records():
            yield from replayed.take(record, reader.digest)
        return replayed.verdict()
    except PeerError as fault:
        where = f"byte {reader.place}, {replayed.place}"
        raise PeerError(fault.code, f"{where}: {fault}", fault.hint) from None


class _Replay:
    """place: what is being read, for people."""

    def __init__(self, network: bytes | None) -> None:
        self.place = "the beginning"
        self._network = network
        self._start: Start | None = None
        self._log: LogAudit | None = None
        self._talk: TalkAudit | None = None
        self._words = _Words()
        self._files = _Files()
        self._hole: Absent | None = None  # decisions that are told to be missing: only a state leads over them
        self._state = bytearray()
        self._absent = 0
        self._sealed = False

    def take(self, record: Record, digest: bytes) -> Iterator[Event]:
        """digest: of the file before this record. Raises PeerError."""
        if self._sealed:
            raise PeerError("after-the-end", "more follows after the seal")
        if self._start is None:
            yield self._begin(record)
            return
        match record:
            case Decided(frame):
                yield from self._decided(self._start, frame)
            case Line(frame):
                yield self._line(frame)
            case Forked(one, other):
                self.place = "the proof of a fork"
                yield retelling.forked(*_there(self._talk).fork(one, other))
            case State(data, more):
                yield from self._restore(data, more)
            case Absent():
                self._lose(record)
                yield retelling.absent(record)
            case Piece():
                self.place = f"piece {record.piece} of file {record.hash.hex()[:8]}"
                self._files.take(record)
            case End(frame):
                self._end(self._start, frame, digest)
            case Start():
                raise PeerError("wrong-record", "a second beginning")

    def verdict(self) -> Verdict:
        """Raises PeerError('cut-short')."""
        if self._start is None or not self._sealed:
            raise PeerError("cut-short", "the file ends before its seal")
        log, talk = _there(self._log), _there(self._talk)
        return Verdict(
            network=self._start.network,
            team=self._start.team,
            exporter=self._start.node,
            exported_at=self._start.at,
            entries=log.entries,
            terms=log.terms,
            members=tuple(sorted(log.nodes)),
            lines=talk.lines,
            own_words=self._words.own,
            hearsay=self._words.hearsay,
            files=self._files.whole,
            absent=self._absent + talk.missing + self._files.absent,
            head=log.head,
            concluded=log.state.conclusion is not None,
        )

    # -- one kind of record each

    def _begin(self, record: Record) -> Event:
        if not isinstance(record, Start):
            raise PeerError("wrong-record", "the first record names the team")
        if self._network not in (None, record.network):
            raise PeerError("wrong-network", f"it comes from another mesh, of id {record.network.hex()}")
        self._start = record
        self._talk = TalkAudit(record.network, record.team)
        return retelling.started(record)

    def _decided(self, start: Start, frame: bytes) -> Iterator[Event]:
        if self._log is None:
            self.place = "decision 0"
            self._log = LogAudit(start.network, start.team, frame)
            yield retelling.founded(self._log)
            return
        self.place = f"decision {self._log.next_index}"
        if self._hole is not None:
            raise PeerError("wrong-record", "a decision after those that are said to be missing")
        audited = self._log.take(frame)
        if isinstance(audited.step, Outcome):
            self._files.named.update(blob.hash for blob in audited.step.blobs)
        for change in audited.changes or ():
            if isinstance(change, LineHeard):
                self._words.decided(change.line.node, change.line.text.encode())
        yield from retelling.decided(audited, self._log)

    def _line(self, frame: bytes) -> Event:
        talk = _there(self._talk)
        self.place = f"line {talk.lines + 1} of the talk"
        entry = talk.take(frame)
        return retelling.line(entry, "signed" if self._words.signed(entry) else "chat")

    def _restore(self, data: bytes, more: bool) -> Iterator[Event]:
        """Raises PeerError: 'wrong-record', 'record-too-large', and as `LogAudit.restore` does."""
        self.place = "the state that stands for missing decisions"
        log = _there(self._log)
        if self._hole is None:
            raise PeerError("wrong-record", "no decisions are missing here")
        self._state += data
        if len(self._state) > limits.SNAPSHOT_BYTES_MAX:
            raise PeerError("record-too-large", f"a state of over {limits.SNAPSHOT_BYTES_MAX} bytes")
        if more:
            return
        log.restore(self._hole.last + 1, bytes(self._state))
        self._hole, self._state = None, bytearray()
        self._files.named |= log.state.blobs
        yield retelling.restored(log)

    def _lose(self, record: Absent) -> None:
        self.place = f"what is said to be missing of the {record.what}"
        match record.what:
            case "lines":
                _there(self._talk).lose(record.name, record.first, record.last)
            case "blob":
                self._files.lose(record)
            case "decisions":
                log = _there(self._log)
                if self._hole is not None or record.first != log.next_index or record.last < record.first:
                    raise PeerError("wrong-gap", "these are not the decisions that come next")
                self._hole = record
                self._absent += record.last - record.first + 1

    # -- the end

    def _end(self, start: Start, frame: bytes, digest: bytes) -> None:
        self.place = "the seal"
        log, talk = _there(self._log), _there(self._talk)
        seal = open_frame(frames.parse(frame), start.network, Kind.TRANSCRIPT, Seal)
        if seal != Seal(start.node, start.team, start.at, log.state.index, talk.lines, digest):
            raise PeerError("wrong-seal", "it was set under another file than this")
        if self._state:
            raise PeerError("wrong-record", "the state before it is not whole")
        log.end()
        self._files.end()
        _check_people(log, {start.node: 0, **talk.authors})
        self._sealed = True


def _check_people(log: LogAudit, spoke: Mapping[bytes, int]) -> None:
    """spoke: node -> its last line. Raises PeerError('not-a-member' | 'above-the-cut')."""
    for node, last in spoke.items():
        if node not in log.nodes:
            raise PeerError("not-a-member", f"{node_text(node)} never was in the team")
        if last > log.cuts.get(node, last):
            raise PeerError("above-the-cut", f"{node_text(node)} was removed, and counts up to line {log.cuts[node]}")


class _Words:
    """Decided lines against the lines that their speakers signed: the same words, each counted once."""

    def __init__(self) -> None:
        self.own = 0
        self._open = Counter[bytes]()  # decided and not signed yet: above 0; signed and not decided yet: below
        self._signed_first = 0

    @property
    def hearsay(self) -> int:
        return sum(count for count in self._open.values() if count > 0)

    def decided(self, node: bytes, text: bytes) -> None:
        self._count(blake(node + text, 8), 1)

    def signed(self, entry: gossip.Entry) -> bool:
        """Whether these words of the author's were decided before."""
        return entry.kind == "text" and self._count(blake(entry.node + entry.body, 8), -1)

    def _count(self, words: bytes, step: int) -> bool:
        before = self._open[words]
        self._open[words] += step
        if not self._open[words]:
            del self._open[words]
        met = before * step < 0
        self.own += met
        return met


class _Files:
    """Blobs that come along: each whole, by its hash, and named by an outcome. whole: how many are."""

    def __init__(self) -> None:
        self.named: set[bytes] = set()
        self.whole = 0
        self.absent = 0
        self._name = b""
        self._chunks: tuple[bytes, ...] = ()
        self._next = 0

    def take(self, piece: Piece) -> None:
        """Raises PeerError('wrong-piece' | 'undecodable')."""
        if piece.piece == MANIFEST:
            self._open(piece)
        elif piece.hash != self._name or piece.piece != self._next or piece.piece >= len(self._chunks):
            raise PeerError("wrong-piece", "it does not follow the piece before")
        elif blake(piece.data) != self._chunks[piece.piece]:
            raise PeerError("wrong-piece", "it is not what the file's hash names")
        else:
            self._next += 1
        if self._next == len(self._chunks):
            self._close()
            self.whole += 1

    def lose(self, record: Absent) -> None:
        """Raises PeerError('wrong-gap')."""
        if self._name and (record.name, record.first, record.last) != (self._name, self._next, len(self._chunks) - 1):
            raise PeerError("wrong-gap", "these are not the pieces that come next")
        self.absent += 1
        self._close()

    def end(self) -> None:
        """Raises PeerError('wrong-piece')."""
        if self._name:
            raise PeerError("wrong-piece", f"file {self._name.hex()[:8]} is not whole")

    def _open(self, piece: Piece) -> None:
        self.end()
        if blake(piece.data) != piece.hash or piece.hash not in self.named:
            raise PeerError("wrong-piece", "no outcome names this file")
        self._name, self._chunks, self._next = piece.hash, codec.decode(piece.data, gossip.Manifest).chunks, 0

    def _close(self) -> None:
        self._name, self._chunks, self._next = b"", (), 0


def _there(part: T | None) -> T:
    """Raises PeerError('wrong-record'): something that only makes sense after the team's founding."""
    if part is None:
        raise PeerError("wrong-record", "the team's founding comes first")
    return part
