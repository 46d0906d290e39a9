"""Publishers by the thousand, without a machine each: they store their pointers as `dht.publisher` does.

    Crowd ── publish(publisher) ──> the 20 holders nearest to the key ── most say split ──> those of its shard ...

Their Stores go straight into the holders, who answer and keep as they do on the wire.
"""

from dataclasses import dataclass
from functools import cached_property

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Now
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact, Ping, Store, Stored, pack_endpoint
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import Pointer
from tests.dht.mesh import Mesh
from tests.wire.samples import NETWORK


@dataclass(frozen=True)
class Publisher:
    """host: from where it stores. named: the host its pointers name; a liar's is another."""

    number: int
    host: str
    named: str
    sketch: bytes = b""

    @cached_property
    def key(self) -> NodeKey:
        return NodeKey(b"crowd" + self.number.to_bytes(27))


class Crowd:
    """text: the index key that all publish under."""

    def __init__(self, mesh: Mesh, text: str) -> None:
        self.mesh = mesh
        self.index = ids.index_key(text)
        self._nearest: dict[bytes, list[Contact]] = {}

    def publish(self, publisher: Publisher, issue: int = 0, least_depth: int = 0) -> None:
        """At depth 0, and deeper as long as at least half of the holders say split; least_depth: known from before."""
        for depth in limits.SHARD_DEPTHS:
            stored = self._store(publisher, issue, depth)
            if 2 * sum(each.split for each in stored) < len(stored) and depth >= least_depth:
                return

    def holders(self, key: bytes) -> list[Contact]:
        if key not in self._nearest:
            place = int.from_bytes(key)
            distance = lambda contact: int.from_bytes(ids.dht_id(contact.key)) ^ place  # noqa: E731
            self._nearest[key] = sorted(self.mesh.contacts, key=distance)[: limits.DHT_K]
        return self._nearest[key]

    def _store(self, publisher: Publisher, issue: int, depth: int) -> list[Stored]:
        now = self.mesh.world.now(self.mesh.world.hosts[self.mesh.contacts[0]])
        frame = self._frame(publisher, now, issue, depth)
        key = ids.pointer_key(self.index, depth, ids.dht_id(publisher.key.node))
        contact = Contact(publisher.key.node, publisher.host, 4_001)
        return [self._stored(now, holder, contact, frame) for holder in self.holders(key)]

    def _frame(self, publisher: Publisher, now: Now, issue: int, depth: int) -> bytes:
        pointer = Pointer(
            node=publisher.key.node,
            agent="crowd",
            seq=1 + issue,
            issued=int(now.wall),
            ttl=limits.TTL_S_DEFAULT,
            index=self.index,
            depth=depth,
            sketch=publisher.sketch,
            endpoint=pack_endpoint(publisher.named, 4_001),
        )
        return envelope.seal(publisher.key, NETWORK, Kind.POINTER, pointer)

    def _stored(self, now: Now, holder: Contact, contact: Contact, frame: bytes) -> Stored:
        desk = self.mesh.machine(holder)._holder
        token = desk.pong(now, contact, Ping(1, True), False).token
        return desk.stored(now, contact, Store(1, True, token, frame), False)
