"""What a node's disk holds of one team, read page by page, while the node may go on writing there.

archive | log | base ──> decided entries, a state where some are gone, who was removed        chat ──> chains
"""

from collections.abc import Iterator

from ioa_p2p.errors import StorageError
from ioa_p2p.gossip.log import Chain
from ioa_p2p.storage.base import Storage
from ioa_p2p.team.audit import cut_in
from ioa_p2p.team.decisions import Base, Decisions, held_of, spaces
from ioa_p2p.team.snapshots import snapshot_of
from ioa_p2p.wire import codec, limits

_SNAPSHOT_TRIES = 3


class SavedTeam:
    """founding: the frame of entry 0. anchor: index of the last entry that a state stands for; 0 without one."""

    def __init__(self, storage: Storage, team: bytes, founding: bytes) -> None:
        self.team, self.founding, self._storage = team, founding, storage
        self._log, self._votes, self._base, self._archive = spaces(team)
        saved = storage.get(self._base, b"base")
        self._rest = codec.decode(saved, Base) if saved is not None else None
        self.anchor = held_of(self._rest.anchor).entry.index if self._rest is not None else 0

    def rows(self, space: str) -> list[tuple[bytes, bytes]]:
        return list(self._storage.scan(space))

    @property
    def commit(self) -> int:
        """The last entry that was decided, as far as this node knew."""
        return int.from_bytes(self._storage.get(self._votes, b"commit") or b"", "big")

    def decided(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """(index, frame) of entries first..last, as far as they are held; a page at a time.

        Of several runs before the anchor only the first and the last: nothing leads over a second gap.
        """
        last_run = self._last_run()
        expected = first
        for index, frame in self._pages(first, last):
            if index == expected or index >= last_run:
                expected = index + 1
                yield index, frame

    def _last_run(self) -> int:
        """Where the entries begin that lead to the anchor without a gap."""
        begin = expected = 1
        for index, _ in self._pages(1, self.anchor):
            begin = begin if index == expected else index
            expected = index + 1
        return begin

    def _pages(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        for start in range(first, last + 1, limits.TRANSCRIPT_PAGE_ROWS):
            keys = _key(start), _key(min(start + limits.TRANSCRIPT_PAGE_ROWS, last + 1))
            page = dict(self._storage.scan(self._log, *keys))
            page |= dict(self._storage.scan(self._archive, *keys))  # after the log: rows move from there to here
            if self._rest is not None and keys[0] <= _key(self.anchor) < keys[1]:
                page.setdefault(_key(self.anchor), self._rest.anchor)
            yield from ((int.from_bytes(key, "big"), page[key]) for key in sorted(page))

    def snapshot(self, network: bytes) -> bytes:
        """What stands for entries up to the anchor, or a later one. Raises StorageError('damaged')."""
        for attempt in range(_SNAPSHOT_TRIES):
            try:
                return snapshot_of(Decisions(held_of(self.founding), network, self.rows))
            except StorageError:  # its rows may have moved between two looks
                if attempt + 1 == _SNAPSHOT_TRIES:
                    raise
        raise AssertionError("it is tried at least once")

    def cuts(self) -> dict[bytes, int]:
        """node -> the last of its lines that counts, of those that were removed."""
        links = [link.frame for link in self._rest.links] if self._rest is not None else []
        removals = (frame for _, frame in self._pages(1, self.commit) if b"remove" in frame)
        found = [cut_in(held_of(frame).entry) for frame in (*links, *removals)]
        return {node: seq for cut in found for node, seq in cut.items()}

    def chains(self) -> dict[bytes, Chain]:
        """Of everybody whose lines were saved, member still or not."""
        prefix = f"chat/{self.team.hex()}/"
        names = {space.removeprefix(prefix).partition("/")[0] for space in self._storage.spaces(prefix)}
        authors = sorted(bytes.fromhex(name) for name in names if len(name) == 2 * limits.NODE_ID_BYTES)
        return {author: Chain(self.team, author, self.rows) for author in authors}


def _key(index: int) -> bytes:
    return index.to_bytes(8, "big")
