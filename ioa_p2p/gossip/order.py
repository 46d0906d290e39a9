"""Causal order: an entry is shown after everything its author had seen when writing it.

    accepted entry ── add ──> its author's queue ── met? ──> shown (in list order)
                                   │ 60 s
                                   └── overdue: shown all the same; what it missed is `late` if it turns up

A dependency is met when it was shown, when it can never come (no member any more, or beyond a fork), or when its
entry waited 60 s. Which entries were shown so is durable: after a restart the same entries count as shown.
"""

from collections import deque
from collections.abc import Collection, Iterator

from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Entry


class Order:
    """Entries of one team come in per author in seq order, and leave in causal order, each once."""

    def __init__(
        self, authors: Collection[bytes], forced: dict[bytes, int], given_up: dict[bytes, int] | None = None
    ) -> None:
        """authors: the live set of members. forced: author -> seq shown without its dependencies. given_up: as below,
        both as they were saved."""
        self.shown: dict[bytes, int] = {}
        self._ends: dict[bytes, int] = {}
        self._authors = authors
        self._forced = forced
        self._given_up = dict(given_up or {})
        self._waiting: dict[bytes, deque[tuple[float, Entry]]] = {}

    def add(self, boot: float, entry: Entry) -> list[Entry]:
        """Take the author's next entry; return what may be shown now."""
        if entry.seq > self._ends.get(entry.node, entry.seq):
            return []
        if not self._waiting and self._met(entry):
            self.shown[entry.node] = entry.seq
            return [entry]
        self._waiting.setdefault(entry.node, deque()).append((boot, entry))
        return list(self._release())

    def release(self) -> list[Entry]:
        """What may be shown now, after an end or a change of members."""
        return list(self._release())

    def waiting(self, author: bytes) -> int:
        queue = self._waiting.get(author)
        return len(queue) if queue else 0

    @property
    def given_up(self) -> dict[bytes, int]:
        """author -> the seq up to which others' entries were shown without waiting any longer."""
        return dict(self._given_up)

    def is_late(self, entry: Entry) -> bool:
        return entry.seq <= self._given_up.get(entry.node, 0)

    @property
    def next_due(self) -> float | None:
        """Boot time when the oldest waiting entry is shown all the same."""
        oldest = min((queue[0][0] for queue in self._waiting.values()), default=None)
        return None if oldest is None else oldest + limits.CHAT_GAP_S

    def force(self, boot: float) -> tuple[list[Entry], dict[bytes, int]]:
        """Give up on what the overdue entries wait for: entries to show, and marks to make durable."""
        forced: dict[bytes, int] = {}
        for author, queue in self._waiting.items():
            if queue[0][0] + limits.CHAT_GAP_S <= boot + limits.CHAT_EARLY_S:
                forced[author] = self._forced[author] = queue[0][1].seq
                self._give_up(queue[0][1])
        return list(self._release()), forced

    def _give_up(self, entry: Entry) -> None:
        """What it had seen is its author's word alone: of lines that nobody showed us, the next few are believed."""
        for author, seq in self._missing(entry):
            told = min(seq, self.shown.get(author, 0) + limits.CHAT_HEARSAY_MAX)
            self._given_up[author] = max(told, self._given_up.get(author, 0))

    def end(self, author: bytes, seq: int | None) -> None:
        """Nothing of `author` above `seq` counts any more: a fork begins there. None: no end."""
        if seq is None:
            return
        self._ends[author] = seq
        queue = self._waiting.pop(author, deque[tuple[float, Entry]]())
        kept = deque(item for item in queue if item[1].seq <= seq)
        if kept:
            self._waiting[author] = kept

    def _release(self) -> Iterator[Entry]:
        """Show the first of each queue while any can be shown."""
        moved = True
        while moved:
            moved = False
            for author in list(self._waiting):
                for entry in self._ready(author):
                    moved = True
                    yield entry

    def _ready(self, author: bytes) -> Iterator[Entry]:
        queue = self._waiting[author]
        while queue and self._met(queue[0][1]):
            _, entry = queue.popleft()
            self.shown[author] = entry.seq
            yield entry
        if not queue:
            del self._waiting[author]

    def _met(self, entry: Entry) -> bool:
        return entry.seq <= self._forced.get(entry.node, 0) or not self._missing(entry)

    def _missing(self, entry: Entry) -> list[tuple[bytes, int]]:
        return [(author, seq) for author, seq in entry.seen if not self._has(author, seq)]

    def _has(self, author: bytes, seq: int) -> bool:
        shown = self.shown.get(author, 0)
        return shown >= seq or author not in self._authors or seq > self._ends.get(author, seq)
