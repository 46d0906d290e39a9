"""What shows that a row is the one that was written: its commit's number, and two sums beside it.

    space, key, number ── CRC-32 ──┐
    value ─────────────── CRC-32 ──┴──> 8 B        a name that holds tells whose value is lost

Against accidents (a flipped bit, a page of zeros), not against people: who may write the file may write sums too.
"""

from typing import Any, NamedTuple
from zlib import crc32

NAME_BYTES = 4  # of the sums, the name's


class Row(NamedTuple):
    """As a file says it. In a damaged one each part may be of any type. number: of the commit that wrote it."""

    space: Any
    key: Any
    value: Any
    number: Any
    sums: Any

    @property
    def has_name(self) -> bool:
        """Space, key and number are what was written."""
        return self._typed and self.sums[:NAME_BYTES] == _name_sum(self.space, self.key, self.number)

    @property
    def is_whole(self) -> bool:
        return self._typed and self.sums == sums(self.space, self.key, self.value, self.number)

    @property
    def _typed(self) -> bool:
        parts = (self.space, self.key, self.value, self.number, self.sums)
        return all(map(isinstance, parts, (str, bytes, bytes, int, bytes)))


def sums(space: str, key: bytes, value: bytes, number: int) -> bytes:
    return _name_sum(space, key, number) + crc32(value).to_bytes(4)


def _name_sum(space: str, key: bytes, number: int) -> bytes:
    named = crc32(number.to_bytes(8, signed=True), crc32(b"\0", crc32(space.encode(errors="replace"))))
    return crc32(key, named).to_bytes(NAME_BYTES)
