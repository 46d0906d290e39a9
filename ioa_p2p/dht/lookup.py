"""One lookup's shortlist: whom to ask next, and when to stop. Kademlia paper, 2.3.

    learn(contact) ──> candidates, nearest first (3k) ── next() ──> ask  (alpha under way, no rounds)
                          ^                                          │
                          └── contacts of the answer <── answered ───┤
                              place freed, not awaited <── slow, lost┘

Done when the k nearest that answer have all answered, or after `calls_max` requests. A slow peer's late answer still
counts. `asked` is shared: lookups over disjoint paths to one target hand in the same set and never ask a peer twice.
"""

from bisect import insort
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from ioa_p2p.dht import space
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact


class State(Enum):
    NEW = "new"
    ASKED = "asked"
    ANSWERED = "answered"
    SLOW = "slow"  # asked, not waited for while there are others
    SUSPECT = "suspect"  # slow of late, asked only if all else has failed
    LOST = "lost"


@dataclass(slots=True, eq=False)
class Candidate:
    distance: int
    contact: Contact
    state: State = State.NEW


_distance = attrgetter("distance")


class Lookup:
    """target: a place in the space. A plain shortlist: it sends nothing and knows no time."""

    def __init__(
        self,
        target: int,
        asked: set[bytes] | None = None,
        k: int = limits.DHT_K,
        alpha: int = limits.DHT_ALPHA,
        calls_max: int = limits.DHT_LOOKUP_CALLS_MAX,
    ) -> None:
        self.target = target
        self.calls = 0
        self.under_way = 0
        self._asked: set[bytes] = set() if asked is None else asked
        self._k = k
        self._alpha = alpha
        self._calls_max = calls_max
        self._by_key: dict[bytes, Candidate] = {}
        self._order: list[Candidate] = []

    def learn(self, contact: Contact, *, suspect: bool = False) -> None:
        """Hear of a peer. A suspect is kept back and asked only if all else has failed."""
        known = self._by_key.get(contact.key)
        if known is None:
            self._insert(Candidate(space.position(contact.key) ^ self.target, contact, _first_state(suspect)))
        elif known.contact != contact and known.state is State.LOST:
            # An old endpoint must not hide the one that works.
            known.contact, known.state = contact, State.NEW
            self._asked.discard(contact.key)

    def wants(self, key: bytes) -> bool:
        """Whether a contact of this node would be news."""
        known = self._by_key.get(key)
        return known is None or known.state is State.LOST

    def next(self) -> Contact | None:
        """The peer to ask now, which then counts as asked; None if enough are under way or none is left."""
        if self.under_way >= self._alpha or self.calls >= self._calls_max:
            return None
        candidate = self._next_new() or self._next_suspect()
        if candidate is None:
            return None
        candidate.state = State.ASKED
        self._asked.add(candidate.contact.key)
        self.under_way += 1
        self.calls += 1
        return candidate.contact

    def answered(self, key: bytes) -> None:
        self._leave(key, State.ANSWERED)

    def slow(self, key: bytes) -> None:
        self._leave(key, State.SLOW)

    def lost(self, key: bytes) -> None:
        self._leave(key, State.LOST)

    @property
    def done(self) -> bool:
        """Never while all hope is on the slow."""
        if self.under_way or (self.calls < self._calls_max and not self._idle()):
            return False
        return self._has(State.ANSWERED) or not self._has(State.SLOW)

    def closest(self) -> list[Contact]:
        """The peers that answered, nearest first, at most k."""
        found = [candidate.contact for candidate in self._order if candidate.state is State.ANSWERED]
        return found[: self._k]

    def _idle(self) -> bool:
        return self._next_new() is None and self._next_suspect() is None

    def _next_new(self) -> Candidate | None:
        """The nearest not yet asked among the k nearest that may still answer."""
        window = self._k
        for candidate in self._order:
            if candidate.state is State.NEW and candidate.contact.key not in self._asked:
                return candidate
            if candidate.state in (State.ASKED, State.ANSWERED):
                window -= 1
                if not window:
                    return None
        return None

    def _next_suspect(self) -> Candidate | None:
        if self.under_way or self._has(State.ANSWERED):
            return None
        suspects = (candidate for candidate in self._order if candidate.state is State.SUSPECT)
        return next((candidate for candidate in suspects if candidate.contact.key not in self._asked), None)

    def _has(self, state: State) -> bool:
        return any(candidate.state is state for candidate in self._order)

    def _leave(self, key: bytes, state: State) -> None:
        candidate = self._by_key.get(key)
        if candidate is None or candidate.state in (State.ANSWERED, State.LOST):
            return
        if candidate.state is State.ASKED:
            self.under_way -= 1
        candidate.state = state

    def _insert(self, candidate: Candidate) -> None:
        insort(self._order, candidate, key=_distance)
        self._by_key[candidate.contact.key] = candidate
        if len(self._order) > limits.DHT_SHORTLIST:
            self._forget_farthest()

    def _forget_farthest(self) -> None:
        """One under way stays: its answer must find it."""
        for index in range(len(self._order) - 1, -1, -1):
            if self._order[index].state is not State.ASKED:
                del self._by_key[self._order.pop(index).contact.key]
                return


def _first_state(suspect: bool) -> State:
    return State.SUSPECT if suspect else State.NEW
