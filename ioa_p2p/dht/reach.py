"""Where are we, and can strangers reach us? Until that is proven we are a client: in nobody's table.

    pong: our endpoint as seen, not where we thought ── ask others ── most agree ──> moved
    pong: our endpoint as seen ── loopback or private: nothing in between ──────────────> proven
                               └─ public: DialBack ─> peer ─ Introduce ─> third peer ─ Ping ─> proven

Only a peer we never wrote to proves anything: our own datagram opens a home router for its answer.
"""

import random
from collections import OrderedDict
from collections.abc import Callable

from ioa_p2p.dht import space
from ioa_p2p.dht.calls import Calls
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.space import Scope
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, DialBack, Introduce, pack_contact, unpack_contact


class Reach:
    """on_proven(now) is called whenever it was proven, on_moved(now) whenever peers agree that we are elsewhere."""

    def __init__(
        self,
        rng: random.Random,
        calls: Calls,
        peers: Peers,
        out: list[Effect],
        on_proven: Callable[[Now], None],
        on_moved: Callable[[Now], None],
    ) -> None:
        self.seen: tuple[str, int] | None = None
        self._rng = rng
        self._calls = calls
        self._peers = peers
        self._out = out
        self._on_proven = on_proven
        self._on_moved = on_moved
        self._voices: OrderedDict[bytes, tuple[str, int]] = OrderedDict()
        self._asked_s = self._granted_s = self._doubted_s = float("-inf")

    @property
    def proven(self) -> bool:
        return not self._calls.client

    def pong(self, now: Now, peer: Contact, endpoint: tuple[str, int]) -> None:
        """A peer told where it sees us."""
        seen = self._hear(now, peer, endpoint)
        if self.proven:
            return
        if space.scope(seen[0]) is not Scope.PUBLIC:
            self._prove(now)
        elif now.boot - self._asked_s >= limits.DHT_DIAL_BACK_S:
            self._asked_s = now.boot
            self._out.append(Send(peer, DialBack(self._rng.getrandbits(32), True)))

    def request(self, now: Now, peer: Contact) -> None:
        """A request came in: of a peer we never wrote to, it is the proof."""
        if not self.proven:
            wrote_s = self._calls.contacted.get(peer.key, float("-inf"))
            if now.boot - wrote_s > limits.DHT_CONTACTED_S:
                self._prove(now)

    def dial_back(self, now: Now, peer: Contact) -> None:
        """Have somebody else ping the asker; one in a while, so that we are no tool against anybody."""
        others = [entry for entry in self._peers.table if entry.contact.key != peer.key and not entry.misses]
        if others and now.boot - self._granted_s >= limits.DHT_DIAL_BACK_S / limits.DHT_K:
            self._granted_s = now.boot
            stranger = self._rng.choice(others).contact
            introduce = Introduce(self._rng.getrandbits(32), self._calls.client, pack_contact(peer))
            self._out.append(Send(stranger, introduce))

    def introduce(self, now: Now, peer: Contact, introduce: Introduce) -> None:
        """Ping who asked for a stranger. Raises PeerError('bad-endpoint' | 'unwelcome')."""
        contact = unpack_contact(introduce.contact)
        if self._peers.table.get(space.position(peer.key)) is not None and self._peers.usable(contact, peer):
            self._peers.ping(now, contact)

    def _hear(self, now: Now, peer: Contact, endpoint: tuple[str, int]) -> tuple[str, int]:
        """Where we are, as most of those asked of late say; one voice a subnet, or private peer."""
        if self.seen is None:
            self.seen = endpoint
        if endpoint != self.seen and now.boot - self._doubted_s >= limits.REACH_DOUBT_S:
            self._doubted_s = now.boot
            self._voices.clear()
            self._peers.ask_some(now, self._rng)
        voice = space.subnet(peer.host) or peer.key
        self._voices.pop(voice, None)
        self._voices[voice] = endpoint
        if len(self._voices) > limits.REACH_VOICES_MAX:
            self._voices.popitem(last=False)
        if endpoint != self.seen and self._agreed(endpoint):
            self._move(now, endpoint)
        return self.seen

    def _agreed(self, endpoint: tuple[str, int]) -> bool:
        """More than half of the voices, and two where there are two to ask."""
        votes = sum(other == endpoint for other in self._voices.values())
        return 2 * votes > len(self._voices) and votes >= min(2, self._peers.table.good)

    def _move(self, now: Now, endpoint: tuple[str, int]) -> None:
        """From elsewhere nothing is proven: another router may stand in between."""
        self.seen = endpoint
        self._asked_s = self._doubted_s = float("-inf")
        if space.scope(endpoint[0]) is Scope.PUBLIC:
            self._calls.client = True
        self._on_moved(now)

    def _prove(self, now: Now) -> None:
        self._calls.client = False
        self._on_proven(now)
