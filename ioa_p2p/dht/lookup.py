"""One lookup over node-disjoint paths: whom to ask next, and when to stop. S/Kademlia paper, 4.4.

    start(what our own table knows) ──> d paths ── next() ──> ask   (each path has a few under way, no rounds)
                                          ^                    │
      learn(on the path that asked) <─────┴───── answered <────┤
                               place freed, not awaited <── slow, lost

All paths start with all that our own table knows, the pool, and claim from it, nearest first, one node one path. Done
when no path has anybody left to ask, or after `calls_max` requests; a path led astray gets at most twice its share of
them. A slow peer's late answer still counts. A search that is done in vain may `widen` it: finished paths then claim
what is left of a larger pool, for liars near the target may have filled all their windows.
"""

from collections.abc import Iterable
from operator import attrgetter

from ioa_p2p.dht import space
from ioa_p2p.dht.path import Claim, Claims, Path, State
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact

_calls = attrgetter("calls")
_distance = attrgetter("distance")


class Lookup:
    """target: a place in the space. radius: see `path.Path`; 0: the k nearest will do. calls: requests made, under_way:
    waited for. met_slow: somebody let us wait. hurried: the slow are given up, suspects never asked. It sends nothing
    and knows no time."""

    def __init__(
        self,
        target: int,
        paths: int,
        radius: int = 0,
        k: int = limits.DHT_K,
        alpha: int = limits.DHT_ALPHA,
        calls_max: int = limits.DHT_LOOKUP_CALLS_MAX,
        *,
        hurried: bool = False,
    ) -> None:
        self.target = target
        self.radius = radius
        self.hurried = hurried
        self.calls = 0
        self.under_way = 0
        self.met_slow = False
        self._claims = Claims()
        self._paths = [Path(number, target, self._claims, k, radius) for number in range(paths)]
        self._pool: list[Contact] = []
        self._suspects: set[Contact] = set()
        self._k = k
        self._alpha = max(1, alpha // paths)
        self._calls_max = calls_max - calls_max // 6  # until it is widened
        self._kept_calls = calls_max // 6
        self._path_calls_max = min(calls_max, -(-2 * calls_max // paths))

    @property
    def paths_under_way(self) -> set[int]:
        return {path.number for path in self._paths if path.under_way}

    def start(self, contacts: Iterable[Contact]) -> None:
        """What our own table knows, or somebody we chose to trust."""
        known = {contact.key: contact for contact in contacts}
        order = sorted((space.position(key) ^ self.target, key) for key in known)
        for path in self._paths:
            path.begin(known, order)

    def widen(self, pool: Iterable[Contact]) -> None:
        """Ask all of the pool too. No answer can spare any of it, so more are asked side by side."""
        self._pool = list(pool)
        self._alpha = limits.DHT_ALPHA
        self._calls_max += self._kept_calls
        self._kept_calls = 0

    def suspect(self, contact: Contact) -> None:
        """Keep it back: it is asked only if all else has failed."""
        self._suspects.add(contact)

    def path_of(self, contact: Contact) -> int | None:
        """The path it was asked on, at this endpoint."""
        claim = self._claims.of(contact)
        return claim.path if claim is not None else None

    def near(self, contact: Contact) -> bool:
        """Whether it is where holders should be, give or take."""
        return not self.radius or space.position(contact.key) ^ self.target <= 2 * self.radius

    def path(self, number: int) -> Path:
        """To learn what somebody asked on it named."""
        return self._paths[number]

    def next(self) -> Contact | None:
        """The peer to ask now, which is then claimed; None if enough are under way or none is left."""
        if self.calls >= self._calls_max:
            return None
        free = [path for path in self._paths if path.under_way < self._alpha]
        free.sort(key=_calls)
        for path in free:
            if (contact := self._next_on(path)) is not None:
                path.claim(contact)
                self.calls += 1
                self.under_way += 1
                return contact
        return None

    def answered(self, contact: Contact) -> None:
        self._leave(contact, State.ANSWERED)

    def slow(self, contact: Contact) -> None:
        self.met_slow = True
        self._leave(contact, State.SLOW)

    def lost(self, contact: Contact) -> None:
        self._leave(contact, State.LOST)

    @property
    def done(self) -> bool:
        """Never while all hope is on the slow, unless hurried."""
        if self.under_way or (self.calls < self._calls_max and any(map(self._next_on, self._paths))):
            return False
        return self.hurried or self._any(State.ANSWERED) or not self._any(State.SLOW)

    def closest(self) -> list[Contact]:
        """Who answered, nearest first: the k nearest; in a crowded region all, up to `limits.DHT_REGION_MAX`."""
        found, count = self._nearest(), self._k
        if self.crowded:
            inside = sum(claim.distance <= self.radius for claim in found)
            count = min(inside, limits.DHT_REGION_MAX)
        return [claim.contact for claim in found[:count]]

    @property
    def crowded(self) -> bool:
        """Whether the k nearest are within half of the distance where they should be."""
        return self.reach is not None and 2 * self.reach < self.radius

    @property
    def reach(self) -> int | None:
        """How far the k-th nearest that answered is; None if fewer did."""
        found = self._nearest()
        return found[self._k - 1].distance if len(found) >= self._k else None

    def _nearest(self) -> list[Claim]:
        return sorted((claim for claim in self._claims if claim.state is State.ANSWERED), key=_distance)

    def _next_on(self, path: Path) -> Contact | None:
        if path.calls >= self._path_calls_max:
            return None
        contact = None if path.idle else path.next(self._suspects)
        path.idle = contact is None
        if contact is None:
            contact = next((one for one in self._pool if one.key not in self._claims.by_key), None)
        if contact is None and self._suspects and not (self.hurried or self.under_way or self._any(State.ANSWERED)):
            contact = path.next(set())
        return contact

    def _any(self, state: State) -> bool:
        return any(claim.state is state for claim in self._claims)

    def _leave(self, contact: Contact, state: State) -> None:
        claim = self._claims.of(contact)
        if claim is None or claim.state in (State.ANSWERED, State.LOST):
            return
        if claim.state is State.ASKED:
            self._paths[claim.path].under_way -= 1
            self.under_way -= 1
        claim.state = state
        if state is not State.ANSWERED:
            for path in self._paths:
                path.idle = False
