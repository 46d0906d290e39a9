"""A talk checked as a stranger reads it, line by line: signatures, chains, causal order, forks.

    frame ── signature ── team ── follows its author's line before ── what it had read came before ──> Entry
    Lost, Forked ──> what may be missing, and where an author's word ends

Trusts nothing that it is given, and holds one hash an author.
"""

from dataclasses import dataclass

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import frames, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.gossip import FIRST_PREVIOUS, Entry
from ioa_p2p.wire.ids import blake


@dataclass(slots=True)
class _Thread:
    """One author: the last line read, its hash, how far lines were told to be lost, how many never came."""

    seq: int = 0
    hash: bytes = FIRST_PREVIOUS
    lost_to: int = 0
    missing: int = 0
    end: int | None = None


class TalkAudit:
    """lines: how many were read. missing: how many are told to be lost and did not come."""

    def __init__(self, network: bytes, team: bytes) -> None:
        self.lines = 0
        self._network, self._team = network, team
        self._threads: dict[bytes, _Thread] = {}

    @property
    def authors(self) -> dict[bytes, int]:
        """author -> its last line, of those who said something."""
        return {author: thread.seq for author, thread in self._threads.items() if thread.seq}

    @property
    def missing(self) -> int:
        return sum(thread.missing + max(0, thread.lost_to - thread.seq) for thread in self._threads.values())

    def take(self, frame: bytes) -> Entry:
        """Raises PeerError: 'wrong-team', 'wrong-line', 'out-of-order', 'after-a-fork', or as frames do."""
        entry = self._open(frame)
        thread = self._thread(entry.node)
        if thread.end is not None and entry.seq > thread.end:
            raise PeerError("after-a-fork", f"its author signed two histories after line {thread.end}")
        self._check_follows(thread, entry)
        self._check_readings(entry)
        thread.missing += entry.seq - thread.seq - 1
        thread.seq, thread.hash = entry.seq, blake(frame)
        self.lines += 1
        return entry

    def lose(self, author: bytes, first: int, last: int) -> None:
        """Lines are told to be lost. Raises PeerError('wrong-gap') if they do not follow what is known."""
        thread = self._thread(author)
        known = max(thread.seq, thread.lost_to)
        if first != known + 1 or last < first:
            raise PeerError("wrong-gap", f"lines {first} to {last} are said to be lost after line {known}")
        thread.lost_to = last

    def fork(self, one: bytes, other: bytes) -> tuple[bytes, int]:
        """(author, the last line that counts) as proven. Raises PeerError('no-fork' | 'wrong-team' or as frames do)."""
        opened = sorted(((self._open(frame), frame) for frame in (one, other)), key=lambda pair: pair[0].seq)
        (first, before), (second, _) = opened
        same_place = first.seq == second.seq and one != other
        broken = first.seq + 1 == second.seq and second.previous != blake(before)
        if first.node != second.node or not (same_place or broken):
            raise PeerError("no-fork", "the two lines may well stand in one chain")
        thread = self._thread(first.node)
        if thread.seq >= first.seq:
            raise PeerError("after-a-fork", "the fork is told after lines that it takes away")
        thread.end = first.seq - 1
        return first.node, thread.end

    def _open(self, frame: bytes) -> Entry:
        entry = open_frame(frames.parse(frame), self._network, Kind.LOG, Entry)
        if entry.team != self._team:
            raise PeerError("wrong-team", "a line of another team")
        return entry

    def _thread(self, author: bytes) -> _Thread:
        if author not in self._threads and len(self._threads) >= limits.TRANSCRIPT_AUTHORS_MAX:
            raise PeerError("too-many-authors", f"no team ever had {limits.TRANSCRIPT_AUTHORS_MAX} members")
        return self._threads.setdefault(author, _Thread())

    @staticmethod
    def _check_follows(thread: _Thread, entry: Entry) -> None:
        if not thread.seq < entry.seq <= max(thread.seq, thread.lost_to) + 1:
            raise PeerError("wrong-line", f"line {entry.seq} does not follow line {thread.seq}")
        if entry.seq == thread.seq + 1 and entry.previous != thread.hash:
            raise PeerError("wrong-line", f"line {entry.seq} names another line before it")

    def _check_readings(self, entry: Entry) -> None:
        for author, seq in entry.seen:
            thread = self._threads.get(author, _Thread())
            counts = seq if thread.end is None else min(seq, thread.end)
            if max(thread.seq, thread.lost_to) < counts:
                raise PeerError("out-of-order", f"its author had read line {seq} of another, which is not there yet")
