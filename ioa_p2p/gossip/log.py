"""One author's chain: entries 1, 2, 3... each naming the hash of the one before.

    frame, digest ── judge ──> KNOWN | NEXT | AHEAD | FORK | IGNORED      (nothing changes yet)
    NEXT  ── append ──> head moves, [Save]         AHEAD ── keep_ahead ──> waits in memory for the gap to close
    FORK  ── freeze ──> counts up to the last common entry, for good
    nobody has what is missing ── skip ──> a marked hole; LATE ── fill ──> closed again

On disk: rows `seq u64be -> whole frame` in spaces of 64 rows ("chat/<team>/<author>/<block>"), so that neither a
restart nor an old range reads more than it needs; a row "hole" is one. In memory: 8 B a seq (to know copies and forks)
and a short tail.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum, auto
from itertools import count

from ioa_p2p.effects import Rows, Save
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.gossip import FIRST_PREVIOUS, HASH_SHORT_BYTES, Entry
from ioa_p2p.wire.ids import blake

_HOLE = b"hole"


class Judgement(Enum):
    """Where an entry stands against the chain, before its signature is checked."""

    KNOWN = auto()
    NEXT = auto()
    AHEAD = auto()
    LATE = auto()
    FORK = auto()
    IGNORED = auto()


class Chain:
    """One author's entries of one team. `head` is the last seq without holes, 0 when empty."""

    def __init__(self, team: bytes, author: bytes, rows: Rows, cut: int | None = None) -> None:
        """cut: the last seq that counts of an author that was removed."""
        self.head = 0
        self.cut = cut
        self.frozen: int | None = None
        self.evidence: tuple[bytes, ...] = ()
        self.bytes = 0  # of all its frames
        self.lost = 0  # how far the chain is known to have been
        self.holes: set[int] = set()  # entries below the head that nobody had
        self._space = f"chat/{team.hex()}/{author.hex()}"
        self._rows = rows
        self._head_hash = FIRST_PREVIOUS
        self._shorts = bytearray(HASH_SHORT_BYTES)
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._ahead: dict[int, tuple[bytes, bytes, Entry]] = {}
        for _, value in rows(f"{self._space}/fork"):
            self.frozen, self.evidence = codec.decode(value, tuple[int, tuple[bytes, ...]])

    @property
    def counts_to(self) -> int:
        """The last seq that counts: the head, or where the author's fork begins, or the cut."""
        return self.up_to_cut(self.head if self.frozen is None else self.frozen)

    @property
    def end(self) -> int | None:
        """The last seq that can ever count, if there is one."""
        return self.cut if self.frozen is None else self.up_to_cut(self.frozen)

    def up_to_cut(self, seq: int) -> int:
        return seq if self.cut is None else min(seq, self.cut)

    def end_at(self, cut: int) -> None:
        """Its author was removed: what is above counts no more, held or not. The first cut stays."""
        if self.cut is not None:
            return
        self.cut = cut
        self._ahead = {seq: ahead for seq, ahead in self._ahead.items() if seq <= cut}
        self.holes = {seq for seq in self.holes if seq <= cut}

    @property
    def is_full(self) -> bool:
        """It takes no more: the same for all who hold the same entries."""
        return self.head >= limits.CHAT_CHAIN_ENTRIES_MAX or self.bytes >= limits.CHAT_CHAIN_BYTES_MAX

    @property
    def previous(self) -> bytes:
        """What the author's next entry must name."""
        return self._head_hash

    @property
    def gap(self) -> int | None:
        """The first seq that is held beyond a hole, or None."""
        return min(self._ahead) if self._ahead else None

    def short(self, seq: int) -> bytes:
        """First 8 B of the hash of entry `seq` <= head; zeros for 0, and for a hole whose next is a hole too."""
        return bytes(self._shorts[seq * HASH_SHORT_BYTES : (seq + 1) * HASH_SHORT_BYTES])

    def knows(self, seq: int) -> bool:
        """Whether the hash of entry `seq` <= head is known: it is held, or the next one names it."""
        return seq not in self.holes or any(self.short(seq))

    # -- growing

    def judge(self, entry: Entry, digest: bytes) -> Judgement:
        """Cheap: compares numbers and hashes, changes nothing. One more fork of a frozen chain counts only if it
        shows less in common."""
        if entry.seq != self.up_to_cut(entry.seq):
            return Judgement.IGNORED
        judgement = self._judge(entry, digest)
        is_news = self.frozen is None or self.fork_seq(entry) <= self.frozen
        return judgement if judgement is not Judgement.FORK or is_news else Judgement.IGNORED

    def _judge(self, entry: Entry, digest: bytes) -> Judgement:
        seq, limit = entry.seq, self.counts_to
        if seq <= limit and seq in self.holes:
            return self._judge_late(entry, digest)
        if seq <= limit:
            return Judgement.KNOWN if self.short(seq) == digest[:HASH_SHORT_BYTES] else Judgement.FORK
        if self.is_full:
            return Judgement.IGNORED
        if seq == limit + 1 and (limit or self.frozen is None):
            if entry.previous[:HASH_SHORT_BYTES] != self.short(limit):
                return Judgement.FORK
            return Judgement.NEXT if self.frozen is None else Judgement.IGNORED
        if self.frozen is not None or seq > self.head + limits.CHAT_AHEAD_MAX:
            return Judgement.IGNORED
        ahead = self._ahead.get(seq)
        return Judgement.KNOWN if ahead and ahead[1] == digest else Judgement.AHEAD

    def _judge_late(self, entry: Entry, digest: bytes) -> Judgement:
        """One for a hole must fit what is known on both sides."""
        fits = not self.knows(entry.seq) or self.short(entry.seq) == digest[:HASH_SHORT_BYTES]
        before = entry.seq - 1
        follows = not self.knows(before) or self.short(before) == entry.previous[:HASH_SHORT_BYTES]
        return Judgement.LATE if fits and follows else Judgement.FORK

    def append(self, raw: bytes, digest: bytes) -> Save:
        """The entry after the head; judged and verified, or our own."""
        self._extend(raw, digest)
        return Save(self._block(self.head), self.head.to_bytes(8), raw)

    def keep_ahead(self, raw: bytes, digest: bytes, entry: Entry) -> None:
        """A verified entry beyond a hole. Of two with one seq the newer stays: the links decide later."""
        self._ahead[entry.seq] = raw, digest, entry
        self.lost = max(self.lost, entry.seq)

    def take_ahead(self) -> tuple[bytes, bytes, Entry] | None:
        """The entry kept for head + 1, if there is one."""
        return self._ahead.pop(self.head + 1, None)

    # -- holes

    def skip(self) -> list[Save]:
        """Nobody has what is missing before the first entry held beyond it: count it as there."""
        assert self.gap is not None, "only what is missing before a later entry is skipped"
        saves: list[Save] = []
        _, _, following = self._ahead[self.gap]
        while self.head + 1 < following.seq:
            self._extend_by_hole()
            saves.append(Save(self._block(self.head), self.head.to_bytes(8), _HOLE))
        self._head_hash = following.previous
        self._learn(self.head, following.previous)
        return saves

    def fill(self, raw: bytes, digest: bytes, entry: Entry) -> Save:
        """The entry of a hole turned up; judged LATE and verified."""
        self.holes.discard(entry.seq)
        self._learn(entry.seq, digest)
        if entry.seq - 1 in self.holes:
            self._learn(entry.seq - 1, entry.previous)
        place = entry.seq - (self.head - len(self._tail) + 1)
        if place >= 0:
            self._tail[place] = raw
            self._tail_bytes += len(raw)
        self.bytes += len(raw)
        return Save(self._block(entry.seq), entry.seq.to_bytes(8), raw)

    def _extend_by_hole(self) -> None:
        self._extend(b"", bytes(len(FIRST_PREVIOUS)))
        self.holes.add(self.head)

    def _learn(self, seq: int, digest: bytes) -> None:
        self._shorts[seq * HASH_SHORT_BYTES : (seq + 1) * HASH_SHORT_BYTES] = digest[:HASH_SHORT_BYTES]

    def _extend(self, raw: bytes, digest: bytes) -> None:
        self.head += 1
        self._head_hash = digest
        self._shorts += digest[:HASH_SHORT_BYTES]
        self._tail.append(raw)
        self._tail_bytes += len(raw)
        self.bytes += len(raw)
        if self.is_full:
            self._ahead.clear()
        while len(self._tail) > limits.CHAT_TAIL_ENTRIES or self._tail_bytes > limits.CHAT_TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    # -- forks

    def fork_seq(self, entry: Entry) -> int:
        """The seq at which a forking entry shows two histories: its own, or that before it."""
        before = entry.seq - 1
        same = before <= self.head and (
            not self.knows(before) or entry.previous[:HASH_SHORT_BYTES] == self.short(before)
        )
        return entry.seq if same or before == 0 else before

    def freeze(self, conflict: int, evidence: bytes) -> Save:
        """Count only up to the entry before `conflict` from now on. evidence: the forking frame."""
        self._ahead.clear()
        ours = next(iter(self.frames(conflict, conflict + 1)), b"")  # of a hole the next entry names the hash
        self.frozen, self.evidence = conflict - 1, tuple(frame for frame in (ours, evidence) if frame)
        return Save(f"{self._space}/fork", b"", codec.encode((self.frozen, self.evidence)))

    # -- reading

    def frames(self, first: int, last: int) -> Iterator[bytes]:
        """Whole frames first..last, as far as they are held; the tail from memory, older ones from disk."""
        last = self.up_to_cut(min(last, self.head))
        tail_first = self.head - len(self._tail) + 1
        on_disk = min(last, tail_first - 1)
        for seq, raw in self._saved(first, on_disk):
            if raw != _HOLE and first <= seq <= on_disk:
                yield raw
        for seq in range(max(first, tail_first), last + 1):
            if raw := self._tail[seq - tail_first]:
                yield raw

    def load(self) -> Iterator[Entry]:
        """Read the chain back from disk, entry by entry, links checked. Stops at the first damaged row:
        the rest is pulled again from others; `lost` tells how far the chain had been. What is above a cut is left."""
        for seq, raw in self._saved(1, self.cut):
            if seq != self.up_to_cut(seq):
                return
            if raw == _HOLE and not self.lost and seq == self.head + 1:
                self._extend_by_hole()
                continue
            entry = None if self.lost else self._reread(seq, raw)
            if entry is None:
                self.lost = max(seq, self.lost)
            else:
                if self.head in self.holes:
                    self._learn(self.head, entry.previous)
                self._extend(raw, blake(raw))
                yield entry

    def _reread(self, seq: int, raw: bytes) -> Entry | None:
        try:
            entry = codec.decode(frames.parse(raw).body, Entry)
        except PeerError:
            return None
        follows = self.head in self.holes or entry.previous == self._head_hash
        return entry if follows and entry.seq == seq == self.head + 1 else None

    def forget(self) -> list[Save]:
        """Delete all of it on disk."""
        entries = [Save(self._block(seq), seq.to_bytes(8), None) for seq, _ in self._saved(1, None)]
        return [*entries, *(Save(f"{self._space}/fork", key, None) for key, _ in self._rows(f"{self._space}/fork"))]

    def _saved(self, first: int, last: int | None) -> Iterator[tuple[int, bytes]]:
        if last is not None and first > last:
            return
        for block in count(first // limits.CHAT_BLOCK_ENTRIES):
            rows = self._rows(self._block(block * limits.CHAT_BLOCK_ENTRIES))
            yield from ((int.from_bytes(key), raw) for key, raw in rows)
            if not rows or (last is not None and last < (block + 1) * limits.CHAT_BLOCK_ENTRIES):
                return

    def _block(self, seq: int) -> str:
        return f"{self._space}/{seq // limits.CHAT_BLOCK_ENTRIES:x}"
