"""One path of a lookup: what it has learned, and whom it would ask next. Kademlia paper, 2.3; S/Kademlia paper, 4.4.

    learn(contact) ──> known here, nearest first ── next() ──> claimed, if no path asked that node before
                          ^                                       │
                          └── contacts of the answer <── answered ┘

What a path learns stays on it, so a liar leads astray its own path only. What was asked is shared: a claimed node
counts to the window of every path that knows it, so many honest paths ask hardly more than one would.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ioa_p2p.dht import space
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact


class State(Enum):
    ASKED = "asked"
    ANSWERED = "answered"
    SLOW = "slow"  # asked, not waited for while there are others
    LOST = "lost"


@dataclass(slots=True, eq=False)
class Claim:
    """A node that was asked. path: number of the one path it serves."""

    distance: int
    contact: Contact
    path: int
    state: State = State.ASKED


class Claims:
    """Who was asked on any path. At most `limits.DHT_SUBNET_TABLE_MAX` nodes of one subnet are, in one lookup."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Claim] = {}
        self._subnets: Counter[bytes] = Counter()

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.by_key.values())

    def of(self, contact: Contact) -> Claim | None:
        """The claim on this node, if it was at this very endpoint."""
        claim = self.by_key.get(contact.key)
        return claim if claim is not None and claim.contact == contact else None

    def add(self, claim: Claim) -> None:
        self.by_key[claim.contact.key] = claim
        subnet = space.subnet(claim.contact.host)
        if subnet is not None:
            self._subnets[subnet] += 1

    def allow(self, contact: Contact) -> bool:
        """Whether one more of its subnet may be asked."""
        subnet = space.subnet(contact.host)
        return subnet is None or self._subnets[subnet] < limits.DHT_SUBNET_TABLE_MAX


class Path:
    """number: which of the lookup's paths. radius: the distance within which k nodes should be, see `region`.

    idle: `next` found nobody, and will not before something is learned or somebody asked turns out slow or lost.
    """

    def __init__(self, number: int, target: int, claims: Claims, k: int, radius: int) -> None:
        self.number = number
        self.calls = 0
        self.under_way = 0
        self.idle = False
        self._target = target
        self._claims = claims
        self._k = k
        self._radius = radius
        self._known: dict[bytes, Contact] = {}
        self._order: list[tuple[int, bytes]] = []

    def begin(self, known: dict[bytes, Contact], order: list[tuple[int, bytes]]) -> None:
        """Know these, by key and nearest first, before anything is learned."""
        self._known, self._order = known.copy(), order.copy()

    def learn(self, contact: Contact) -> None:
        """Hear of a node. Heard of at another endpoint, it counts only if it was lost at the first one."""
        key = contact.key
        if key not in self._known:
            insort(self._order, (space.position(key) ^ self._target, key))
            self._known[key] = contact
            self.idle = False
            if len(self._order) > limits.DHT_SHORTLIST:
                del self._known[self._order.pop()[1]]
        elif self.wants(key):
            self._known[key] = contact
            self.idle = False

    def wants(self, key: bytes) -> bool:
        """Whether a contact of this node would be news."""
        if key not in self._known:
            return True
        claim = self._claims.by_key.get(key)
        return claim is not None and claim.state is State.LOST

    def next(self, suspects: set[Contact]) -> Contact | None:
        """The nearest not yet asked, among the nodes the path must hear before it is finished; suspects are left out.

        Those are the k nearest that may still answer. Are these crowded into half of where they should be, somebody
        made ids to push others out: then all within `radius`, which honest nodes still share.
        """
        counted, reach, claims = 0, 0, self._claims.by_key
        for distance, key in self._order:
            if counted >= self._k and distance > reach:
                return None
            claim = claims.get(key)
            if claim is not None and (claim.state is State.ANSWERED or claim.state is State.ASKED):
                counted += 1
                if counted == self._k and 2 * distance < self._radius:
                    reach = self._radius
            elif (contact := self._known[key]) not in suspects and self._may_ask(claim, contact):
                return contact
        return None

    def _may_ask(self, claim: Claim | None, contact: Contact) -> bool:
        """Once a node, unless it was asked in vain at an endpoint that a liar may have made up."""
        return (claim is None or claim.contact != contact) and self._claims.allow(contact)

    def claim(self, contact: Contact) -> None:
        """Ask it on this path."""
        self._claims.add(Claim(space.position(contact.key) ^ self._target, contact, self.number))
        self.calls += 1
        self.under_way += 1
