"""The routing table: who is known, by distance from us. Kademlia paper, 2.2 and 2.4.

    proven peer ── enter ──> bucket of its distance (k entries, subnet caps) ── closest(target) ──> answers, lookups
                              └─ full: waits as a replacement; enters when an entry misses

A peer is proven when it answered a request at the endpoint entered, and does not call itself a client. A bucket is
the kademlia package's KBucket, one for each bit of distance; its `last_updated` is never read (it reads a clock).
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, cast

from kademlia.node import Node as KademliaNode  # pyright: ignore[reportMissingTypeStubs]
from kademlia.routing import KBucket  # pyright: ignore[reportMissingTypeStubs]

from ioa_p2p.dht.space import ID_BITS, position, subnet
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact, pack_contact


class Entry(KademliaNode):
    """One known peer. heard_s: boot time of its last answer. misses: requests unanswered since then."""

    id: bytes
    long_id: int

    def __init__(self, contact: Contact, heard_s: float) -> None:
        self.id, self.long_id, self.packed, self.subnet = _described(contact)  # all that its base would set
        self.contact = contact
        self.heard_s = heard_s
        self.misses = 0


@lru_cache(maxsize=limits.PLACES_CACHED)
def _described(contact: Contact) -> tuple[bytes, int, bytes, bytes | None]:
    """DHT id, place, packed form, subnet: made once for a peer that comes and goes."""
    id_ = ids.dht_id(contact.key)
    return id_, position(contact.key), pack_contact(contact), subnet(contact.host)


class Table:
    """own: our place, see `space.position`."""

    def __init__(self, own: int, k: int = limits.DHT_K) -> None:
        self._own = own
        self._k = k
        self._buckets: dict[int, Any] = {}
        self._entries: dict[int, Entry] = {}
        self._subnets: Counter[bytes] = Counter()
        self._suspects: set[int] = set()
        # Worked out when needed, forgotten when the table changes:
        self._good: dict[int, list[int]] = {}  # places of the good entries, a list a bucket
        self._reach: int | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, place: int) -> Entry | None:
        return self._entries.get(place)

    @property
    def good(self) -> int:
        """How many entries answered when last asked."""
        return len(self._entries) - len(self._suspects)

    def enter(self, contact: Contact, boot_s: float) -> bool:
        """A proven peer: add it or note that it was heard. True if it is new in the table."""
        place = position(contact.key)
        known = self._entries.get(place)
        if known is not None and known.contact == contact:
            known.heard_s = boot_s
            if known.misses:
                known.misses = 0
                self._suspects.discard(place)
                self._changed(place)
            return False
        if known is not None:
            self._drop(known)
        if place == self._own:
            return False
        return self._add(Entry(contact, boot_s)) and known is None

    def has_room_for(self, place: int) -> bool:
        """Whether a peer there might be entered: worth a ping."""
        if place == self._own or place in self._entries:
            return False
        bucket = self._buckets.get(self._index(place))
        return bucket is None or len(bucket.nodes) < self._k or self._suspect_in(bucket) is not None

    def missed(self, place: int, *, blamed: bool = True) -> None:
        """The peer left a request unanswered: kept out of answers, and, if it is to be blamed, dropped after three
        times or as soon as a proven one waits for its place."""
        entry = self._entries.get(place)
        if entry is None:
            return
        entry.misses += blamed or not entry.misses
        self._suspects.add(place)
        self._changed(place)
        if blamed and (entry.misses >= limits.DHT_MISSES_MAX or self._bucket(place).replacement_nodes):
            self._drop(entry)
            self._promote(self._index(place))

    def remove(self, place: int) -> None:
        """It turned out to be no peer for a table."""
        entry = self._entries.get(place)
        if entry is not None:
            self._drop(entry)
            self._promote(self._index(place))

    def closest(self, target: int, count: int) -> list[Entry]:
        """Up to `count` peers nearest to `target`, nearest first, none that missed."""
        found: list[Entry] = []
        for buckets in self._outward(target):
            places = [place for bucket in buckets for place in self._good_in(bucket)]
            places.sort(key=target.__xor__)
            found += [self._entries[place] for place in places[: count - len(found)]]
            if len(found) == count:
                break
        return found

    def around(self, target: int, count: int) -> list[Entry]:
        """Whom to name to a stranger who looks for `target`, nearest first: the closest. Where those are crowded into
        half of where they should be, only half of them, and others evenly from all around: else ids made to be
        closest would hide all honest ones from whoever asks."""
        found = self.closest(target, count)
        if len(found) < count or 2 * (found[-1].long_id ^ target) * self._k >= self.reach * count:
            return found
        rest = self.closest(target, 2 * limits.DHT_REGION_MAX)[count // 2 :]
        rest = [entry for entry in rest if entry.long_id ^ target <= self.reach]
        wanted = count - count // 2
        return found[: count // 2] + [rest[number * len(rest) // wanted] for number in range(wanted)]

    @property
    def reach(self) -> int:
        """How far from us the k-th nearest is: how dense the mesh is. 0 if fewer are known."""
        if self._reach is None:
            nearest = self.closest(self._own, self._k)
            self._reach = nearest[-1].long_id ^ self._own if len(nearest) == self._k else 0
        return self._reach

    def rank(self, target: int) -> int:
        """How many good peers are nearer to `target` than we are."""
        own = self._own ^ target
        return sum(not entry.misses and entry.long_id ^ target < own for entry in self)

    def longest_unheard(self) -> Entry | None:
        return min(self, key=lambda entry: entry.heard_s, default=None)

    def _good_in(self, bucket: int) -> list[int]:
        places = self._good.get(bucket)
        if places is None:
            nodes = self._buckets[bucket].nodes.values()
            places = self._good[bucket] = [entry.long_id for entry in nodes if not entry.misses]
        return places

    def _changed(self, place: int) -> None:
        self._good.pop(self._index(place), None)
        self._reach = None

    def _outward(self, target: int) -> Iterator[list[int]]:
        """Groups of buckets, the entries of each group farther from `target` than those of the one before.

        All of the target's own bucket share more leading bits with it than any other entry; those nearer to us
        than that bucket share the bits up to it; each farther bucket shares one bit less.
        """
        index = self._index(target)
        if index in self._buckets:
            yield [index]
        yield [bucket for bucket in self._buckets if bucket < index]
        for higher in sorted(bucket for bucket in self._buckets if bucket > index):
            yield [higher]

    def _suspect_in(self, bucket: Any) -> Entry | None:
        """An entry that missed, if there is one."""
        if not self._suspects:
            return None
        nodes = cast("Iterable[Entry]", bucket.nodes.values())
        return next((entry for entry in nodes if entry.misses), None)

    def _index(self, place: int) -> int:
        """The highest bit in which `place` differs from us; -1 for our own place."""
        return (self._own ^ place).bit_length() - 1

    def _bucket(self, place: int) -> Any:
        index = self._index(place)
        bucket = self._buckets.get(index)
        if bucket is None:
            low = ((self._own >> index) ^ 1) << index
            assert index < ID_BITS
            bucket = self._buckets[index] = KBucket(low, low + (1 << index) - 1, self._k, 1)
        return bucket

    def _add(self, entry: Entry) -> bool:
        bucket = self._bucket(entry.long_id)
        if not self._allowed(entry, bucket):
            return False
        if len(bucket) >= self._k:
            suspect = self._suspect_in(bucket)
            if suspect is not None:
                self._drop(suspect)
        if not bucket.add_node(entry):
            return False
        self._entries[entry.long_id] = entry
        self._changed(entry.long_id)
        if entry.subnet:
            self._subnets[entry.subnet] += 1
        return True

    def _allowed(self, entry: Entry, bucket: Any) -> bool:
        if entry.subnet is None or not self._subnets[entry.subnet]:
            return True
        here = sum(other.subnet == entry.subnet for other in bucket.get_nodes())
        return here < limits.DHT_SUBNET_BUCKET_MAX and self._subnets[entry.subnet] < limits.DHT_SUBNET_TABLE_MAX

    def _drop(self, entry: Entry) -> None:
        """Take it out. KBucket.remove_node would put a replacement in unasked, past the subnet caps."""
        bucket = self._bucket(entry.long_id)
        del bucket.nodes[entry.id]
        del self._entries[entry.long_id]
        self._changed(entry.long_id)
        self._suspects.discard(entry.long_id)
        if entry.subnet:
            self._subnets[entry.subnet] -= 1
            if not self._subnets[entry.subnet]:
                del self._subnets[entry.subnet]

    def _promote(self, index: int) -> None:
        """Give a free place to the newest replacement that the caps allow; the others go on waiting."""
        bucket = self._buckets[index]
        waiting = cast("OrderedDict[bytes, Entry]", bucket.replacement_nodes)
        chosen = next((entry for entry in reversed(waiting.values()) if self._allowed(entry, bucket)), None)
        if chosen is not None:
            del waiting[chosen.id]
            self._add(chosen)
