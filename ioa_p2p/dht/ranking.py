"""In what order a holder gives the pointers of a key to who asks with a sketch. docs/wire.md, "Popular keys".

    sketches ── dot products with the query's ──> best first, the third and later of one source after all others
                                                     └── three of these, one by lot, and so on ──> pages

The one by lot is for those whom no sketch made by a flooder can push out of sight.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from ioa_p2p.dht.store import Held
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Pointer
from ioa_p2p.wire.sketch import dot_products


def ranked(query: bytes, held: Iterable[Held]) -> list[Held]:
    """The nearest to the query first, those without a sketch last. Between equals the slot decides, so that a place
    means the same at every holder."""
    with_sketch, without = list[Held](), list[Held]()
    for one in held:
        (with_sketch if len(sketch_of(one)) == limits.SKETCH_BYTES else without).append(one)
    products = dot_products(query, [sketch_of(one) for one in with_sketch])
    order = sorted(range(len(products)), key=lambda number: (-products[number], with_sketch[number].item.slot))
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
