"""What a holder keeps for others: one item a slot, newest seq, for a limited time. docs/wire.md, "Holding".

    checked item ── put ──> Verdict        slot = one record, or one pointer of one agent under one key
                     └──> kept until min(first seen + ttl, issued + ttl + 600 s), whatever is put again
    a key with too many pointers ──> keeps a fair sample of them, see `sample`

Deadlines run on boot time, so a jump of the wall clock frees or keeps nothing. Kept in memory only: after a restart
publishers, other holders and neighbours fill it again.
"""

import hashlib
import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ioa_p2p.dht.sample import Sample
from ioa_p2p.effects import Now
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Verdict
from ioa_p2p.wire.records import AgentRecord, Pointer


@dataclass(frozen=True, slots=True)
class Item:
    """One proven frame. key: its 20 B DHT key. slot: 20 B, what it is the newest of. hash: BLAKE2b-256 of raw."""

    key: bytes
    slot: bytes
    hash: bytes
    raw: bytes
    body: AgentRecord | Pointer


@dataclass(frozen=True, slots=True)
class Held:
    """source: the subnet or private peer it came from, for the quota. until_s: boot time."""

    item: Item
    source: bytes
    until_s: float

    @property
    def source_mark(self) -> bytes:
        """The source as readers are told it."""
        return ids.blake(self.source, limits.POINTER_SOURCE_BYTES)


class Store:
    """on_clone(item) is told when two different frames claim one slot and seq: two nodes use one key.

    rng: for the secret by which samples are drawn.
    """

    def __init__(self, on_clone: Callable[[Item], None], rng: random.Random) -> None:
        self._on_clone = on_clone
        self._secret = rng.randbytes(16)
        self._slots: dict[bytes, Held] = {}
        self._samples: dict[bytes, Sample] = {}
        self._hashes: dict[bytes, Held] = {}
        self._nodes: Counter[bytes] = Counter()
        self._sources: Counter[bytes] = Counter()
        self._bytes = 0
        self._deadlines: list[tuple[float, int, Held]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Held]:
        """All, newest put last; some may be past their time."""
        return iter(self._slots.values())

    @property
    def size_bytes(self) -> int:
        """Of all frames held."""
        return self._bytes

    def get(self, now: Now, slot: bytes) -> Held | None:
        return _alive(now, self._slots.get(slot))

    def known(self, now: Now, hash_: bytes) -> Held | None:
        """The frame with this hash (its first 8 B are enough), if held."""
        return _alive(now, self._hashes.get(hash_[:8]))

    def under(self, now: Now, key: bytes, start: int = 0) -> Iterator[Held]:
        """All held under a DHT key: one of each source, then a second of each, and so on. start: see
        `Sample.order`."""
        sample = self._samples.get(key)
        slots = sample.order(start) if sample is not None else (key,)
        held = (self.get(now, slot) for slot in slots)
        return (one for one in held if one is not None)

    def crowded(self, key: bytes) -> bool:
        """Whether as many pointers are held under this key as may be."""
        return len(self._samples.get(key, ())) >= limits.STORE_KEY_ITEMS_MAX

    def put(self, now: Now, item: Item, source: bytes) -> Verdict:
        """Keep a proven item. Expired items go first, so none is refused for their sake. FULL: a quota is met, or it
        is not in the sample of its crowded key."""
        self.expire(now)
        held = self._slots.get(item.slot)
        if held is not None and held.item.hash == item.hash:
            return Verdict.KNOWN
        if held is not None and not self._replaces(item, held.item):
            return Verdict.OLDER
        until_s = keep_until(now, item)
        if until_s <= now.boot:
            return Verdict.OLDER
        if held is not None and held.item.body.seq == item.body.seq:
            until_s = min(until_s, held.until_s)
        if not self._has_room(item, source, held):
            return Verdict.FULL
        if held is not None:
            self._take_out(held)
        self._put_in(Held(item, source, until_s))
        return Verdict.KEPT if self._thin_out(item.key) != item.slot else Verdict.FULL

    def move(self, held: Held, source: bytes) -> None:
        """Its own publisher brought what another had passed on: from now on it counts as the publisher's."""
        if held.source != source and self._sources[source] < self._share():
            self._take_out(held)
            self._put_in(replace(held, source=source))

    def expire(self, now: Now) -> None:
        """Forget all whose time is over."""
        while self._deadlines and self._deadlines[0][0] <= now.boot:
            held = heapq.heappop(self._deadlines)[2]
            if self._slots.get(held.item.slot) is held:
                self._take_out(held)

    def _replaces(self, new: Item, old: Item) -> bool:
        """Newest seq wins. The same seq with other bytes is a clone's: all holders serve the lower hash."""
        if new.body.seq != old.body.seq:
            return new.body.seq > old.body.seq
        self._on_clone(new)
        return new.hash < old.hash

    def _has_room(self, item: Item, source: bytes, replaced: Held | None) -> bool:
        """The quotas, as they would be without the item to be replaced."""
        body, gone = item.body, replaced is not None
        freed_bytes = len(replaced.item.raw) if replaced is not None else 0
        freed_source = replaced is not None and replaced.source == source
        return (
            len(self._slots) - gone < limits.STORE_ITEMS_MAX
            and self._bytes - freed_bytes + len(item.raw) <= limits.STORE_BYTES_MAX
            and self._nodes[body.node] - gone < limits.STORE_NODE_ITEMS_MAX
            and (freed_source or self._sources[source] < self._share())
        )

    def _share(self) -> int:
        """Items one source may have: the fuller the store, the fewer. Twenty sources that take all they get leave a
        tenth of it free.

        As shared packet buffers do it (Choudhury and Hahne, Dynamic queue length thresholds, 1998).
        """
        used = max(len(self._slots) / limits.STORE_ITEMS_MAX, self._bytes / limits.STORE_BYTES_MAX)
        return math.ceil((1 - used) * limits.STORE_SUBNET_ITEMS_MAX)

    def _thin_out(self, key: bytes) -> bytes | None:
        """Bring a crowded key back to its bound: the slot that had to go."""
        sample = self._samples.get(key)
        if sample is None or len(sample) <= limits.STORE_KEY_ITEMS_MAX:
            return None
        last = sample.last()
        self._take_out(self._slots[last])
        return last

    def _rank(self, item: Item) -> bytes:
        """Its lot in the sample of its key."""
        return hashlib.blake2b(item.slot, key=self._secret, digest_size=8).digest()

    def _put_in(self, held: Held) -> None:
        item = held.item
        self._slots[item.slot] = held
        self._hashes[item.hash[:8]] = held
        if item.slot != item.key:
            self._samples.setdefault(item.key, Sample()).add(item.slot, held.source, self._rank(item))
        self._nodes[item.body.node] += 1
        self._sources[held.source] += 1
        self._bytes += len(item.raw)
        heapq.heappush(self._deadlines, (held.until_s, next(self._order), held))

    def _take_out(self, held: Held) -> None:
        item = held.item
        del self._slots[item.slot]
        if self._hashes.get(item.hash[:8]) is held:
            del self._hashes[item.hash[:8]]
        if item.slot != item.key:
            self._samples[item.key].remove(item.slot, held.source, self._rank(item))
            if not len(self._samples[item.key]):
                del self._samples[item.key]
        _count_down(self._nodes, item.body.node)
        _count_down(self._sources, held.source)
        self._bytes -= len(item.raw)


def keep_until(now: Now, item: Item) -> float:
    """Boot time until which an item first seen now is kept."""
    body = item.body
    return now.boot + min(body.ttl, body.issued + body.ttl + limits.CLOCK_SKEW_S - now.wall)


def _alive(now: Now, held: Held | None) -> Held | None:
    return held if held is not None and held.until_s > now.boot else None


def _count_down(counter: Counter[bytes], key: bytes) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
