"""A sketch: what a text is about as 256 numbers of two bits, four to a byte. docs/wire.md, "Records".

    256 numbers ── pack ──> 64 B ── dot_products ──> how near, as integers

Two bits of 256 axes tell more than eight bits of 64 (docs/search.md, "Sketch"). The first of four numbers has the
lowest bits of its byte; the bits 00, 01, 10, 11 stand for -3, -1, 1, 3.
"""

import math
import operator
import struct
from collections.abc import Sequence
from functools import lru_cache

from ioa_p2p.wire import limits

NUMBERS = 4 * limits.SKETCH_BYTES
_LEVELS = (-3, -1, 1, 3)
_BYTE_PRODUCT_MAX = limits.SKETCH_PRODUCT_MAX // limits.SKETCH_BYTES  # of the four numbers of two bytes


def pack(numbers: Sequence[float], step: float) -> bytes:
    """`NUMBERS` numbers to `limits.SKETCH_BYTES` bytes. step: the borders are at -step, 0 and step."""
    bits = [(number >= -step) + (number >= 0) + (number >= step) for number in numbers]
    return bytes(
        bits[at] | bits[at + 1] << 2 | bits[at + 2] << 4 | bits[at + 3] << 6 for at in range(0, NUMBERS, 4)
    )  # fmt: skip


def dot_products(query: bytes, sketches: Sequence[bytes]) -> list[int]:
    """Of one sketch with many. All at once: one large integer holds the sums of all sketches side by side."""
    lanes, values, total = bytearray(2 * len(sketches)), b"".join(sketches), 0
    for place, byte in enumerate(query):
        lanes[::2] = values[place :: limits.SKETCH_BYTES].translate(_products(byte))
        total += int.from_bytes(lanes, "little")
    sums = struct.unpack(f"<{len(sketches)}H", total.to_bytes(len(lanes), "little"))
    return [each - limits.SKETCH_PRODUCT_MAX for each in sums]


def likeness(numbers: Sequence[float], sketch: bytes) -> float:
    """Cosine of `NUMBERS` numbers, not rounded, with a sketch; 0 if either is none. Nearer to the truth than that of
    two sketches: docs/search.md, "Sketch"."""
    if len(numbers) != NUMBERS or len(sketch) != limits.SKETCH_BYTES:
        return 0.0
    others = [number for byte in sketch for number in _numbers(byte)]
    both = sum(map(operator.mul, numbers, others))
    return both / math.sqrt(sum(map(operator.mul, numbers, numbers)) * sum(map(operator.mul, others, others)) or 1.0)


@lru_cache(maxsize=256)
def _products(byte: int) -> bytes:
    """For each other byte the dot product of its four numbers with this one's, made positive."""
    ours = _numbers(byte)
    return bytes(
        sum(a * b for a, b in zip(ours, _numbers(other), strict=True)) + _BYTE_PRODUCT_MAX for other in range(256)
    )


@lru_cache(maxsize=256)
def _numbers(byte: int) -> list[int]:
    return [_LEVELS[byte >> shift & 3] for shift in (0, 2, 4, 6)]
