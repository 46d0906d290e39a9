"""What a read of one index key has brought in: one pointer an agent, the newest, and which holders had it.

    items, each with its holder ── add ──> by agent ── pick(wanted) ──> the nearest to the sketch, or a fair sample

A pointer's source is what most of its holders say of where it was stored from: the endpoint that it names itself a
liar may choose at will.
"""

import random
from collections import Counter

from ioa_p2p.dht.sample import Sample
from ioa_p2p.dht.store import Item
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Pointer
from ioa_p2p.wire.sketch import dot_products

Agent = tuple[bytes, str]


class Harvest:
    """sketch: the query's, 64 B, or empty. rng: for the lot."""

    def __init__(self, sketch: bytes, rng: random.Random) -> None:
        self._sketch = sketch
        self._rng = rng
        self._items: dict[Agent, Item] = {}
        self._holders: dict[Agent, dict[bytes, bytes]] = {}
        self._nearness: dict[Agent, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Item, holder: bytes, source: bytes) -> None:
        """source: where it was stored from, as the holder says."""
        agent = item.body.node, item.body.agent
        self._holders.setdefault(agent, {})[holder] = source
        known = self._items.get(agent)
        if known is None or (item.body.seq, known.hash) > (known.body.seq, item.hash):
            self._items[agent] = item
            self._nearness[agent] = self._near(item)

    def top(self) -> list[Agent]:
        """The nearest few to the sketch."""
        return self._nearest()[: limits.POINTERS_TOP]

    def pick(self, wanted: int) -> list[tuple[Pointer, int]]:
        """At most `wanted` pointers, each with the number of holders that had it. Without a sketch a fair sample; with
        one three quarters are the nearest, then come others by lot."""
        order = self._fair()
        if self._sketch:
            nearest = self._nearest()[: wanted - wanted // limits.POINTERS_LOT]
            order = list(dict.fromkeys(nearest + order))
        picked = ((self._items[agent].body, len(self._holders[agent])) for agent in order[:wanted])
        return [(body, holders) for body, holders in picked if isinstance(body, Pointer)]

    def _near(self, item: Item) -> int:
        sketch = item.body.sketch if isinstance(item.body, Pointer) else b""
        if len(self._sketch) != limits.SKETCH_BYTES or len(sketch) != limits.SKETCH_BYTES:
            return -limits.SKETCH_PRODUCT_MAX
        return dot_products(self._sketch, [sketch])[0]

    def _nearest(self) -> list[Agent]:
        return sorted(self._nearness, key=self._nearness.__getitem__, reverse=True)

    def _fair(self) -> list[Agent]:
        sample, by_slot = Sample(), dict[bytes, Agent]()
        for agent in self._items:
            slot = agent[0] + agent[1].encode()
            by_slot[slot] = agent
            sample.add(slot, self._source(agent), self._rng.randbytes(8))
        return [by_slot[slot] for slot in sample.order()]

    def _source(self, agent: Agent) -> bytes:
        return Counter(self._holders[agent].values()).most_common(1)[0][0]
