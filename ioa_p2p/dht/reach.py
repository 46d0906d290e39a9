"""Can strangers reach us? Until that is proven we are a client: in nobody's table.

    pong: our endpoint as seen ── loopback or private: nothing in between ──────────────> proven
                               └─ public: DialBack ─> peer ─ Introduce ─> third peer ─ Ping ─> proven

Only a peer we never wrote to proves anything: our own datagram opens a home router for its answer.
"""

import random
from collections.abc import Callable

from ioa_p2p.dht import space
from ioa_p2p.dht.calls import Calls
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.space import Scope
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, DialBack, Introduce, Pong, pack_contact, unpack_contact, unpack_endpoint


class Reach:
    """on_proven(now) is called once."""

    def __init__(
        self, rng: random.Random, calls: Calls, peers: Peers, out: list[Effect], on_proven: Callable[[Now], None]
    ) -> None:
        self.seen: tuple[str, int] | None = None
        self._rng = rng
        self._calls = calls
        self._peers = peers
        self._out = out
        self._on_proven = on_proven
        self._asked_s = self._granted_s = float("-inf")

    @property
    def proven(self) -> bool:
        return not self._calls.client

    def pong(self, now: Now, peer: Contact, pong: Pong) -> None:
        """Raises PeerError('bad-endpoint')."""
        self.seen = unpack_endpoint(pong.seen)
        if self.proven:
            return
        if space.scope(self.seen[0]) is not Scope.PUBLIC:
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

    def _prove(self, now: Now) -> None:
        self._calls.client = False
        self._calls.contacted.clear()
        self._on_proven(now)
