"""From received bytes to a proven Item: the order of checks, cheap to costly. docs/wire.md, "Checks".

    size and kind > sender's budget > key belongs to the signer > seen before > sequence > time window
        > signature > strict decode > ownership > quota > kept

Nothing changes before the signature holds, except what a sender has used of its budget.
"""

from collections.abc import Callable
from functools import cached_property

from ioa_p2p.crypto import envelope
from ioa_p2p.dht.budget import Budget
from ioa_p2p.dht.store import Held, Item, Store
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, ids, limits
from ioa_p2p.wire.dht import Verdict, unpack_endpoint
from ioa_p2p.wire.frames import Frame, Kind
from ioa_p2p.wire.records import AgentRecord, Pointer, RecordHead

_BODY: dict[Kind, type[AgentRecord] | type[Pointer]] = {Kind.RECORD: AgentRecord, Kind.POINTER: Pointer}


class PointerHead(RecordHead, frozen=True):
    """What of a Pointer must be read before its signature is checked."""

    index: bytes
    depth: int


class Claim:
    """A frame as received: what it says of itself, each worked out once, when it is asked for. Proven by nothing.

    Raises PeerError for a wrong size or kind, `head`, `key` and `slot` for a head that cannot be read.
    """

    def __init__(self, raw: bytes) -> None:
        self.frame = _parse(raw)

    @cached_property
    def hash(self) -> bytes:
        return ids.blake(self.frame.raw)

    @cached_property
    def head(self) -> RecordHead:
        return _head(self.frame)

    @cached_property
    def key(self) -> bytes:
        return key_of(self.head)

    @cached_property
    def slot(self) -> bytes:
        return _slot_under(self.key, self.head)


class Gate:
    """The one way in for records and pointers. check: verifies a frame's signature. on_kept(now, old, new) is told
    of what was newly kept, and of what it replaced; on_proven(item) of all that stood the checks."""

    def __init__(
        self,
        network: bytes,
        store: Store,
        check: Callable[[Frame, bytes], None] = envelope.check,
        on_kept: Callable[[Now, Held | None, Item], None] = lambda now, old, new: None,
        on_proven: Callable[[Item], None] = lambda item: None,
    ) -> None:
        self._network = network
        self._store = store
        self._check = check
        self._on_kept = on_kept
        self._on_proven = on_proven
        self._budget = Budget(*limits.STORE_BUDGET, limits.STORE_BUDGET_PEERS_MAX)

    def admit(self, now: Now, claim: Claim, source: bytes, sender: bytes | None = None) -> Verdict:
        """A frame somebody wants kept here. source: for the quota, see `store.Held`. sender: whose budget pays;
        None for what we asked for. Raises PeerError."""
        if sender is not None:
            self._budget.spend(now, sender)
        held = self._store.known(now, claim.hash)
        if held is not None and held.item.hash == claim.hash:
            if sender == held.item.body.node:
                self._store.move(held, source)
            return Verdict.KNOWN
        held = self._store.get(now, claim.slot)
        if held is not None and held.item.body.seq > claim.head.seq:
            return Verdict.OLDER
        item = self._prove(now, claim)
        verdict = self._store.put(now, item, source)
        if verdict is Verdict.KEPT:
            self._on_kept(now, held, item)
        return verdict

    def read(self, now: Now, raw: bytes, key: bytes) -> Item:
        """A frame somebody answered with, when asked for `key`. Raises PeerError."""
        claim = Claim(raw)
        held = self._store.known(now, claim.hash)
        if held is not None and held.item.hash == claim.hash and held.item.key == key:
            return held.item
        if claim.key != key:
            raise PeerError("not-asked-for")
        return self._prove(now, claim)

    def _prove(self, now: Now, claim: Claim) -> Item:
        """Time window, signature, strict decode, ownership."""
        frame = claim.frame
        check_window(now, claim.head)
        self._check(frame, self._network)
        body = codec.decode(frame.body, _BODY[frame.kind])
        _check_own(body)
        item = Item(claim.key, claim.slot, claim.hash, frame.raw, body)
        self._on_proven(item)
        return item


def item_of(raw: bytes) -> Item:
    """An Item of a frame that we signed ourselves."""
    frame = frames.parse(raw)
    body = codec.decode(frame.body, _BODY[frame.kind])
    return Item(key_of(body), slot_of(body), ids.blake(raw), raw, body)


def key_of(head: RecordHead) -> bytes:
    """The DHT key a record or pointer belongs under. Only its signer can have one there."""
    if isinstance(head, Pointer | PointerHead):
        return ids.pointer_key(head.index, head.depth, ids.dht_id(head.node))
    return ids.record_key(head.node, head.agent)


def slot_of(head: RecordHead) -> bytes:
    """Names what this is the newest of: a record's own key, or one agent's pointer under one key."""
    return _slot_under(key_of(head), head)


def _slot_under(key: bytes, head: RecordHead) -> bytes:
    if isinstance(head, Pointer | PointerHead):
        return ids.blake(b"slot" + key + head.node + head.agent.encode(), limits.DHT_ID_BYTES)
    return key


def check_window(now: Now, head: RecordHead) -> None:
    """Raises PeerError('not-yet-valid' | 'expired')."""
    if head.issued > now.wall + limits.CLOCK_SKEW_S:
        raise PeerError("not-yet-valid")
    if is_past(now, head):
        raise PeerError("expired")


def is_past(now: Now, head: RecordHead) -> bool:
    """Whether its time is over for everybody, whenever they first saw it."""
    return head.issued + head.ttl + limits.CLOCK_SKEW_S <= now.wall


def place_of(body: AgentRecord | Pointer) -> tuple[object, ...]:
    """What it says of where its agent is, and whether it is."""
    if isinstance(body, AgentRecord):
        return body.addresses, body.endpoint, body.gone
    return (body.endpoint,)


def _parse(raw: bytes) -> Frame:
    """Size and kind. The claimed signer is the body's first field, its `node`: one and the same by construction."""
    frame = frames.parse(raw)
    if frame.kind not in _BODY:
        raise PeerError("wrong-kind", f"a {frame.kind.name.lower()} is not kept in the DHT")
    return frame


def _head(frame: Frame) -> RecordHead:
    head = codec.decode(frame.body, PointerHead if frame.kind is Kind.POINTER else RecordHead)
    if isinstance(head, PointerHead) and not 0 <= head.depth <= 8:
        raise PeerError("undecodable", f"depth {head.depth}")
    return head


def _check_own(body: AgentRecord | Pointer) -> None:
    """What the types cannot say."""
    may_last = limits.TTL_S_MAX + (limits.GONE_EXTRA_TTL_S if isinstance(body, AgentRecord) and body.gone else 0)
    if body.ttl > may_last:
        raise PeerError("ttl-too-long", f"{body.ttl} s")
    if isinstance(body, Pointer) and body.endpoint:
        unpack_endpoint(body.endpoint)
