"""A team's chains woven into one talk, for a file: each line with its frame, after the lines that its author had read.

    chains on disk ── the earliest head whose readings are all out ──> (entry, frame)
                  └── no head is ready, or one is missing ──> Lost, then on

Holds one entry an author, however long the chains are. In causal order, and by the authors' clocks where that leaves
a choice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ioa_p2p.gossip.log import Chain
from ioa_p2p.wire.gossip import Entry


@dataclass(frozen=True, slots=True)
class Lost:
    """Lines first..last of `author` that others had read, or that its next line follows, and that are not here."""

    author: bytes
    first: int
    last: int


def weave(chains: Mapping[bytes, Chain], cuts: Mapping[bytes, int]) -> Iterator[tuple[Entry, bytes] | Lost]:
    """chains: fresh, by author. cuts: author -> the last seq that counts, for those that were removed."""
    return _Loom(chains, cuts).run()


def proof_of_fork(chain: Chain) -> tuple[bytes, bytes] | None:
    """Two frames that show the author's two histories; one alone (the other is a hole here) shows nothing."""
    return (chain.evidence[0], chain.evidence[1]) if len(chain.evidence) == 2 else None


class _Loom:
    def __init__(self, chains: Mapping[bytes, Chain], cuts: Mapping[bytes, int]) -> None:
        self._chains = chains
        frozen = {author: chain.frozen for author, chain in chains.items() if chain.frozen is not None}
        self._ends = {**cuts, **{author: min(seq, cuts.get(author, seq)) for author, seq in frozen.items()}}
        self._forks = {author: seq for author, seq in frozen.items() if proof_of_fork(chains[author])}
        self._out: dict[bytes, int] = {}  # author -> how far its lines are out, or told to be lost
        self._readers = {author: chain.load() for author, chain in chains.items()}
        self._heads: dict[bytes, tuple[Entry, bytes]] = {}
        for author in chains:
            self._advance(author)

    def run(self) -> Iterator[tuple[Entry, bytes] | Lost]:
        while self._heads:
            ready = [author for author, (entry, _) in self._heads.items() if not any(self._unread(entry))]
            entry, raw = self._heads[min(ready or self._heads, key=self._age)]
            yield from self._before(entry)
            yield entry, raw
            self._out[entry.node] = max(entry.seq, self._out.get(entry.node, 0))
            self._advance(entry.node)
        for author, chain in self._chains.items():
            yield from self._lose(author, min(chain.lost, self._forks.get(author, chain.lost)))

    def _age(self, author: bytes) -> tuple[int, bytes]:
        return self._heads[author][0].at, author

    def _advance(self, author: bytes) -> None:
        """The author's next line that counts becomes its head."""
        self._heads.pop(author, None)
        entry = next(self._readers[author], None)
        if entry is not None and entry.seq <= self._ends.get(author, entry.seq):
            (raw,) = self._chains[author].frames(entry.seq, entry.seq)
            self._heads[author] = entry, raw

    def _unread(self, entry: Entry) -> Iterator[tuple[bytes, int]]:
        """What its author had read and is not out yet. Beyond a proven fork nothing counts, so nobody waits."""
        for author, seq in entry.seen:
            counts = min(seq, self._forks.get(author, seq))
            if self._out.get(author, 0) < counts:
                yield author, counts

    def _before(self, entry: Entry) -> Iterator[Lost]:
        for author, seq in self._unread(entry):
            yield from self._lose(author, seq)
        yield from self._lose(entry.node, entry.seq - 1)

    def _lose(self, author: bytes, last: int) -> Iterator[Lost]:
        first = self._out.get(author, 0) + 1
        if first <= last:
            self._out[author] = last
            yield Lost(author, first, last)
