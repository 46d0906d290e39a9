"""Putting one frame on the nodes closest to its key. docs/wire.md, "DHT".

search ──> holders found ── Store with each one's token ──> confirmed by 75 % (at least 1): done, the rest behind
                              ^      └─ no answer: again     └──> too few, or nobody found: failed
                              └──────────────┘ (twice: else a lost datagram leaves an old version there)
"""

import math
from collections.abc import Callable

from ioa_p2p.dht.calls import Call, Calls
from ioa_p2p.dht.search import Search
from ioa_p2p.effects import Now
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Store, Stored, Verdict


class Put:
    """An Asker: its Stores. done(now, put) is called once. `succeeded` is then final; counts may still grow.

    hurried: it is done, too, once whoever has not answered yet is slow. They have been told; all that is missing is
    their word.
    """

    def __init__(self, calls: Calls, raw: bytes, done: Callable[[Now, "Put"], None], *, hurried: bool = False) -> None:
        self.raw = raw
        self.confirmed = 0
        self.holders = 0
        self.finished = False
        self._calls = calls
        self._done = done
        self._heard = 0
        self._crowded = 0
        self._open = 0
        self._hurried = hurried
        self._slow = 0  # of the open

    @property
    def succeeded(self) -> bool:
        """Whether enough of the holders found have it. Those beyond k are there for a crowded region only, where
        many may be liars that never confirm."""
        return self.confirmed >= max(1, math.ceil(limits.DHT_PUT_QUORUM * min(self.holders, limits.DHT_K)))

    @property
    def split(self) -> bool:
        """Whether at least half of the holders that answered say that the key is crowded."""
        return 0 < self._heard <= 2 * self._crowded

    def store(self, now: Now, search: Search) -> None:
        """Give it to all that a finished search found."""
        holders = search.holders
        self.holders = self._open = len(holders)
        for contact in holders:
            self._give(now, contact, search.tokens[contact.key], limits.DHT_STORE_TRIES)
        self._settle(now)

    def answered(self, now: Now, call: Call, answer: Stored) -> None:
        self._close(call)
        self._heard += 1
        self._crowded += answer.split
        self.confirmed += answer.verdict in (Verdict.KEPT, Verdict.KNOWN)
        self._settle(now)

    def slow(self, now: Now, call: Call) -> None:
        self._slow += 1
        self._settle(now)

    def lost(self, now: Now, call: Call) -> None:
        token, tries = call.subject
        self._close(call)
        if tries > 1:
            self._open += 1
            self._give(now, call.to, token, tries - 1)
        else:
            self._settle(now)

    def _close(self, call: Call) -> None:
        self._open -= 1
        self._slow -= call.slow

    def _give(self, now: Now, contact: Contact, token: bytes, tries: int) -> None:
        self._calls.ask(now, contact, Store, Stored, self, (token, tries), token, self.raw)

    def _settle(self, now: Now) -> None:
        waits_for = self._open - self._slow * self._hurried
        if not self.finished and (self.succeeded or not waits_for):
            self.finished = True
            self._done(now, self)
