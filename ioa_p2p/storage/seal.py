"""Beside the store, the number of its last commit: a store that knows fewer has lost some.

    commit n durable ──> seal n, not synced        a crash may leave an older seal, never a newer one

A store whose end was cut off, or that was put back from a backup, is a sound file all the same; votes and sequence
numbers of the time between would be given out twice. Source for what SQLite forgets silently at a damaged frame of
its WAL: https://sqlite.org/fileformat2.html#the_write_ahead_log
"""

import os
from contextlib import suppress
from pathlib import Path
from zlib import crc32

_BYTES = 12  # number u64be, its CRC-32: within one sector, so written whole or not at all


def seal_of(database: Path) -> Path:
    return database.with_suffix(".seal")


def sealed(database: Path) -> int:
    """The number that the seal tells; 0 without one, or if it is damaged itself: then the store is believed."""
    try:
        text = seal_of(database).read_bytes()
    except OSError:
        return 0
    number = text[:8]
    return int.from_bytes(number) if text == number + crc32(number).to_bytes(4) and len(text) == _BYTES else 0


class Seal:
    """An open seal. What the system refuses here is let go: an older number is no harm."""

    def __init__(self, database: Path) -> None:
        self._handle = -1
        with suppress(OSError):
            self._handle = os.open(seal_of(database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, number: int) -> None:
        text = number.to_bytes(8)
        with suppress(OSError):
            os.pwrite(self._handle, text + crc32(text).to_bytes(4), 0)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._handle)
        self._handle = -1
