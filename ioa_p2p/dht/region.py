"""How densely the mesh is settled: within what distance of a key its k holders should be.

    finished searches ── distance of the k-th nearest, a key each ──> median ──> radius
    our own neighbours in the table ── likewise ────────────────────────^

Node ids are hashes of keys, so honest nodes lie evenly. Whoever makes ids close to one key changes one sample, not the
median. As in the public work on provider records under Sybil attack (Sridhar et al., "Content Censorship in the
InterPlanetary File System", NDSS 2024), where stores and reads cover the region instead of the k nearest.
"""

from collections import OrderedDict

from ioa_p2p.dht.table import Table
from ioa_p2p.wire import limits


class Density:
    """Samples: the last `limits.DHT_REGION_SAMPLES` keys that were searched to the end, and our own place."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._reaches: OrderedDict[bytes, int] = OrderedDict()

    @property
    def radius(self) -> int:
        """0 if nothing is known: then the k nearest have to do. Of two middle samples the smaller, for a mesh that
        still grows was less dense when the older ones were taken."""
        ordered = sorted(reach for reach in (self._table.reach, *self._reaches.values()) if reach)
        return ordered[(len(ordered) - 1) // 2] if ordered else 0

    def note(self, key: bytes, reach: int | None) -> None:
        """reach: the distance of the k-th nearest to `key` that answered; None if fewer did."""
        if reach is None:
            return
        self._reaches.pop(key, None)
        self._reaches[key] = reach
        if len(self._reaches) > limits.DHT_REGION_SAMPLES:
            self._reaches.popitem(last=False)
