"""Reading one index key: at depth 0, and, where it is popular, in some of its shards. docs/wire.md, "Popular keys".

depth 0 ──┬── not split ──────────────────────────────────────────────> done
          └── at least half of the holders say split ──> beside it, some shards of depth 4, drawn by lot
                                                           └── split again ──> one shard of depth 8 in each ──> done
"""

import random
from collections.abc import Callable
from functools import partial

from ioa_p2p.dht.harvest import Harvest
from ioa_p2p.dht.pointers import PointerSearch
from ioa_p2p.dht.search import Means
from ioa_p2p.effects import Now
from ioa_p2p.wire import ids, limits

Place = tuple[int, int]
"""Depth, and the shard's bits as the upper ones of a byte."""


class Reading:
    """index: 16 B. Everything found is in `harvest`. done(now, reading) is called once, in `limits.DHT_LOOKUP_S`."""

    def __init__(
        self,
        means: Means,
        rng: random.Random,
        index: bytes,
        done: Callable[[Now, "Reading"], None],
        *,
        sketch: bytes = b"",
        wanted: int = limits.POINTERS_READ_MAX,
        thorough: bool = False,
    ) -> None:
        self.harvest = Harvest(sketch, rng)
        self.wanted = min(wanted, limits.POINTERS_RANKED_MAX) if sketch else wanted
        self.searches: list[PointerSearch] = []
        self._means = means
        self._rng = rng
        self._index = index
        self._done = done
        self._sketch = sketch
        self._thorough = thorough
        self._open = 0
        self._finished = False

    def start(self, now: Now) -> None:
        self._end = self._means.agenda.at(now.boot + limits.DHT_LOOKUP_S, self._finish)
        self._search(now, (0, 0))

    @property
    def asked(self) -> int:
        """Peers, each once for every place that was read."""
        return sum(search.lookup.calls for search in self.searches)

    @property
    def answered(self) -> int:
        return sum(len(search.tokens) for search in self.searches)

    @property
    def rpcs(self) -> int:
        return sum(search.rpcs for search in self.searches)

    @property
    def size_bytes(self) -> int:
        return sum(search.size_bytes for search in self.searches)

    def _search(self, now: Now, place: Place) -> None:
        depth, bits = place
        self._open += 1
        search = PointerSearch(
            self._means,
            self._rng,
            ids.pointer_key(self._index, depth, bytes([bits])),
            self.harvest,
            self._searched,
            on_split=partial(self._go_deeper, place),
            sketch=self._sketch,
            most=self.wanted,
            thorough=self._thorough,
        )
        self.searches.append(search)
        search.start(now)

    def _go_deeper(self, place: Place, now: Now) -> None:
        """Its shards are read beside it: what is left of its own holders and pages is not waited for."""
        if not self._finished:
            for deeper in self._deeper(*place):
                self._search(now, deeper)

    def _searched(self, now: Now, search: PointerSearch) -> None:
        self._open -= 1
        if not self._open:
            self._finish(now)

    def _finish(self, now: Now) -> None:
        if not self._finished:
            self._finished = True
            self._end.drop()
            self._done(now, self)

    def _deeper(self, depth: int, bits: int) -> list[Place]:
        """Where the publishers of a crowded place are too, each part of them as likely as another."""
        if depth == 0:
            count = limits.POINTERS_SHARDS_THOROUGH if self._thorough else limits.POINTERS_SHARDS
            return [(4, shard << 4) for shard in self._rng.sample(range(16), count)]
        return [(8, bits | self._rng.randrange(16))] if depth == 4 else []
