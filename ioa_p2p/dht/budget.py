"""What a sender may cost us: token buckets, a bounded number of them.

    spend(now, sender) ──> one token of the sender's bucket ── empty ──> PeerError('over-budget')
                             └── refilled steadily, up to the burst; the longest idle sender is forgotten first

`Requests` keeps two for the DHT's requests: of each key, and of each address, behind which many keys may stand.
"""

from collections import OrderedDict

from ioa_p2p.dht import space
from ioa_p2p.dht.space import Scope
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact


class Budget:
    """burst: tokens of a full bucket. per_s: how fast it fills. senders_max: buckets kept."""

    def __init__(self, burst: int, per_s: float, senders_max: int) -> None:
        self._burst = float(burst)
        self._per_s = per_s
        self._senders_max = senders_max
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def spend(self, now: Now, sender: bytes) -> None:
        """Raises PeerError('over-budget')."""
        left, at_s = self._left.pop(sender, (self._burst, now.boot))
        left = min(self._burst, left + (now.boot - at_s) * self._per_s)
        self._left[sender] = (left - 1 if left >= 1 else left, now.boot)
        if len(self._left) > self._senders_max:
            self._left.popitem(last=False)
        if left < 1:
            raise PeerError("over-budget")


class Requests:
    """The key pays first: who has used up its own budget cannot use up the address's by claiming to come from there."""

    def __init__(self) -> None:
        self._keys = Budget(*limits.REQUEST_BUDGET_KEY, limits.REQUEST_SENDERS_MAX)
        self._addresses = Budget(*limits.REQUEST_BUDGET_ADDRESS, limits.REQUEST_SENDERS_MAX)

    def spend(self, now: Now, peer: Contact) -> None:
        """Raises PeerError('over-budget'). Loopback has no bucket: whoever runs on this device may do worse."""
        self._keys.spend(now, peer.key)
        if space.scope(peer.host) is not Scope.LOOPBACK:
            self._addresses.spend(now, _network(peer.host))


def _network(host: str) -> bytes:
    """An IPv4 address; of a public IPv6 one its /48, for its owner has all addresses in it."""
    wide = space.subnet(host) if ":" in host else None
    return wide or host.encode()
