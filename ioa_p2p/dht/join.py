"""Getting into the mesh and staying in it.

seeds, remembered peers ── Ping ──> Pong ──> search for ourselves ──> filled, far parts too ── every 5 min again
    ^                        │
    └── 1 s, 2 s ... 60 s <──┘ silent: for ever; heard: looked after once a minute, so that no island stays one
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ioa_p2p.dht import space
from ioa_p2p.dht.calls import Call
from ioa_p2p.dht.search import Means, Search
from ioa_p2p.effects import Now
from ioa_p2p.errors import UsageError
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact, Ping, Pong


@dataclass(slots=True, eq=False)
class Seed:
    contact: Contact
    wait_s: float = limits.DHT_SEED_RETRY_S[0]
    heard: bool = False


class Joining:
    """An Asker: its pings. on_filled(now) is called after every search for ourselves that found somebody, and once
    when it is clear that nobody else is there."""

    def __init__(self, means: Means, rng: random.Random, on_filled: Callable[[Now], None]) -> None:
        self._means = means
        self._rng = rng
        self._on_filled = on_filled
        self._seeds: dict[bytes, Seed] = {}
        self._open = 0
        self._begun = False
        self._searching = False
        self._again = False
        self._looked_afar = False
        self._wait_s = limits.DHT_SEED_RETRY_S[0]

    def join(self, now: Now, seeds: tuple[Contact, ...], peers: tuple[Contact, ...]) -> None:
        """Raises UsageError('too-many-seeds')."""
        if len({seed.key for seed in seeds}) > limits.DHT_SEEDS_MAX:
            raise UsageError("too-many-seeds", f"more than {limits.DHT_SEEDS_MAX} seeds", "name a few that stay up")
        self._begun = True
        known, self._seeds = self._seeds, {}
        for contact in seeds:
            if contact.key != self._means.peers.own:
                self._seeds[contact.key] = self._kept(known, contact) or Seed(contact)
        for seed in [seed for key, seed in self._seeds.items() if known.get(key) is not seed]:
            self._try(seed, now)
        self._recall(now, peers)
        self._settle(now)

    @property
    def heard(self) -> frozenset[bytes]:
        """The seeds that answered when last asked."""
        return frozenset(key for key, seed in self._seeds.items() if seed.heard)

    def refresh(self, now: Now) -> None:
        """Try all seeds at once, look around, and let all who know us hear where we are now."""
        for seed in self._seeds.values():
            self._ping(now, seed.contact, None)
        self._recall(now)
        self._means.peers.announce(now)
        self.search(now)

    def search(self, now: Now) -> None:
        """Look for ourselves: that fills the table where it matters and tells our neighbours of us."""
        if self._searching:
            self._again = True
            return
        self._searching, self._again = True, False
        seeds = [seed.contact for seed in self._seeds.values() if seed.heard]
        Search(self._means, ids.dht_id(self._means.peers.own), self._searched).start(now, seeds)

    def met(self, now: Now, contact: Contact) -> None:
        """Nobody answered before. Who came by itself leads on to others at once; a seed's answer does so anyway."""
        if self._begun and contact.key not in self._seeds:
            self.search(now)

    def look_around(self, now: Now) -> None:
        """Every few minutes: our own place and a random one."""
        self._recall(now)
        self.search(now)
        if self._means.peers.table.good:
            Search(self._means, self._rng.randbytes(limits.DHT_ID_BYTES), _nothing).start(now)

    def _look_afar(self, now: Now) -> None:
        """Once in a life: a place in each bucket farther than our neighbours', if it has room. Kademlia paper, 2.3.

        Who knows its own neighbours only takes itself for the nearest to whatever lies far off.
        """
        table, own = self._means.peers.table, space.position(self._means.peers.own)
        neighbours = table.closest(own, limits.DHT_K)
        if self._looked_afar or len(neighbours) < limits.DHT_K:
            return
        self._looked_afar = True
        for bit in range((neighbours[-1].long_id ^ own).bit_length(), space.ID_BITS):
            place = own ^ (1 << bit) ^ self._rng.getrandbits(bit)
            if table.has_room_for(place):
                Search(self._means, place.to_bytes(limits.DHT_ID_BYTES), _nothing, limits.DHT_PATHS_READ).start(now)

    def answered(self, now: Now, call: Call, answer: Any) -> None:
        self._open -= 1
        if call.subject is None:
            self.search(now)
        else:
            self._heard(call.subject, now)

    def slow(self, now: Now, call: Call) -> None:
        pass

    def lost(self, now: Now, call: Call) -> None:
        self._open -= 1
        seed: Seed | None = call.subject
        if seed is not None:
            seed.heard = False
            self._try_later(seed, now, seed.wait_s)
            seed.wait_s = min(2 * seed.wait_s, limits.DHT_SEED_RETRY_S[1])
            self._recall(now)
        self._settle(now)

    def _recall(self, now: Now, peers: tuple[Contact, ...] = ()) -> None:
        """Ask those we once knew, again and again while nobody answers: we may have been off the air."""
        known = () if self._means.peers.table.good else self._means.peers.remembered
        for contact in dict.fromkeys((*peers, *known)):
            if contact.key not in self._seeds and contact.key != self._means.peers.own:
                self._ping(now, contact, None)

    def _kept(self, known: dict[bytes, Seed], contact: Contact) -> Seed | None:
        """What we know of a seed that is named again at the same place."""
        seed = known.get(contact.key)
        return seed if seed is not None and seed.contact == contact else None

    def _try(self, seed: Seed, now: Now) -> None:
        """Ping it, unless it was heard of late anyway."""
        entry = self._means.peers.table.get(space.position(seed.contact.key))
        if self._seeds.get(seed.contact.key) is not seed:
            return
        if entry is not None and not entry.misses and now.boot - entry.heard_s < limits.DHT_SEED_RETRY_S[1] / 2:
            self._heard(seed, now)
        else:
            self._ping(now, seed.contact, seed)

    def _heard(self, seed: Seed, now: Now) -> None:
        """A seed heard after silence may know a part of the mesh that we do not: search anew."""
        news, seed.heard, seed.wait_s = not seed.heard, True, limits.DHT_SEED_RETRY_S[0]
        self._try_later(seed, now, limits.DHT_SEED_RETRY_S[1])
        if news:
            self.search(now)

    def _try_later(self, seed: Seed, now: Now, wait_s: float) -> None:
        self._means.agenda.at(now.boot + wait_s * self._rng.uniform(0.8, 1.0), partial(self._try, seed))

    def _ping(self, now: Now, contact: Contact, seed: Seed | None) -> None:
        self._open += 1
        self._means.calls.ask(now, contact, Ping, Pong, self, seed)

    def _searched(self, now: Now, search: Search) -> None:
        """Somebody answered: filled. Nobody: again in a while, for somebody may be there."""
        self._searching = False
        if search.holders:
            self._wait_s = limits.DHT_SEED_RETRY_S[0]
            self._look_afar(now)
            self._on_filled(now)
        elif self._seeds or len(self._means.peers.table):
            self._means.agenda.at(now.boot + self._wait_s * self._rng.uniform(0.8, 1.0), self.search)
            self._wait_s = min(2 * self._wait_s, limits.DHT_SEED_RETRY_S[1])
        if self._again:
            self.search(now)

    def _settle(self, now: Now) -> None:
        """No seeds, and nobody remembered who answers: we are the first, or were found before we looked."""
        if self._open or self._seeds:
            return
        if len(self._means.peers.table):
            self.search(now)
        else:
            self._on_filled(now)


def _nothing(now: Now, search: Search) -> None:
    """The search itself fills the table."""
