"""In what order a holder gives the pointers of a key to who asks with a sketch. docs/wire.md, "Popular keys".

    sketches ── dot products with the query's ──> best first, the third and later of one source after all others
                                                     └── three of these, one by lot, and so on ──> pages

The one by lot is for those whom no sketch made by a flooder can push out of sight.
"""

import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ioa_p2p.dht.store import Held
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Pointer

_LANE_BYTES = 4  # holds any dot product of 64 signed bytes, made positive
_UNSIGNED = bytes(byte ^ 0x80 for byte in range(256))  # a signed byte plus 128


def dot_products(query: bytes, sketches: Sequence[bytes]) -> list[int]:
    """Of one sketch with many, each `limits.SKETCH_BYTES` signed bytes.

    All at once: for each dimension one large integer holds the values of all sketches side by side, and 64
    multiplications of it by a small one do the work. At 1,024 sketches 0.45 CPU-ms; one by one 3.
    """
    lanes = bytearray(_LANE_BYTES * len(sketches))
    values = b"".join(sketches).translate(_UNSIGNED)
    weights = array("b", query)
    middle = bytes(_LANE_BYTES - 1) + b"\x80"
    total = int.from_bytes(middle * len(sketches), "little")
    for dimension, weight in enumerate(weights):
        lanes[::_LANE_BYTES] = values[dimension :: limits.SKETCH_BYTES]
        total += weight * int.from_bytes(lanes, "little")
    excess = int.from_bytes(middle, "little") + 128 * sum(weights)
    sums = struct.unpack(f"<{len(sketches)}I", total.to_bytes(len(lanes), "little"))
    return [value - excess for value in sums]


def ranked(query: bytes, held: Iterable[Held]) -> list[Held]:
    """The nearest to the query first, those without a sketch last."""
    with_sketch, without = list[Held](), list[Held]()
    for one in held:
        (with_sketch if len(sketch_of(one)) == limits.SKETCH_BYTES else without).append(one)
    products = dot_products(query, [sketch_of(one) for one in with_sketch])
    order = sorted(range(len(products)), key=products.__getitem__, reverse=True)
    return _spread([with_sketch[number] for number in order]) + without


def mixed(best: list[Held], lot: Iterable[Held], given: int) -> Iterator[tuple[Held, int]]:
    """From place `given` of the best on: three by merit, one by lot, and so on. With each, how many places it takes:
    one by lot takes none, so that a place means the same at every holder."""
    by_merit = islice(best, given, None)
    shown = {held.item.slot for held in best[: given + 2 * limits.POINTERS_LOT]}
    by_lot = islice((held for held in lot if held.item.slot not in shown), given // (limits.POINTERS_LOT - 1), None)
    for number, held in enumerate(by_merit, 1):
        yield held, 1
        if number % (limits.POINTERS_LOT - 1) == 0:
            yield from ((held, 0) for held in islice(by_lot, 1))


def sketch_of(held: Held) -> bytes:
    body = held.item.body
    return body.sketch if isinstance(body, Pointer) else b""


def _spread(held: list[Held]) -> list[Held]:
    """As they stand, but no more than a few of one source before all others had a place."""
    of_source = Counter[bytes]()
    first, later = list[Held](), list[Held]()
    for one in held:
        of_source[one.source] += 1
        (first if of_source[one.source] <= limits.POINTERS_SOURCE_FIRST else later).append(one)
    return first + later
