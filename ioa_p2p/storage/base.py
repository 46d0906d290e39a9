"""What must last: one ordered map of (space, key) -> value, written in durable groups.

    machine ── Save ──> runtime ── commit([Save, ...]) ──> Storage (memory | sqlite)

`commit` returns when the whole group is durable (SQLite WAL, synchronous=FULL): all of it or nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ioa_p2p.effects import Save


class Storage(Protocol):
    """One contract suite (tests/contracts/) holds for all implementations.

    damaged: spaces of rows that the disk changed while it was open; they read as if they were not there.
    """

    damaged: set[str]

    def commit(self, saves: Sequence[Save]) -> None:
        """Apply all saves in order, atomically and durably. Raises StorageError('disk-full' |
        'damaged' | 'unreadable' | 'closed'); then nothing of the group was applied."""
        ...

    def get(self, space: str, key: bytes) -> bytes | None: ...

    def scan(self, space: str, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end, in key order, as of the call."""
        ...

    def spaces(self, prefix: str = "") -> list[str]:
        """The names of non-empty spaces that begin with `prefix`, sorted."""
        ...

    def drop(self, space: str) -> None:
        """Delete a whole space, durably."""
        ...

    def close(self) -> None: ...
