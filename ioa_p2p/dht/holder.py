"""Answering others: what a node does as one of the holders. docs/wire.md, "DHT".

    request ──> Holder ──> Pong | Found (frames first, then the closest contacts, as fit) | Stored | Had

An answer is built from what is held now; nothing is remembered of who asked.
"""

import struct
from collections.abc import Iterator
from itertools import islice

from ioa_p2p.dht import ranking, space
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.records import Gate
from ioa_p2p.dht.store import Held
from ioa_p2p.dht.store import Store as Kept
from ioa_p2p.dht.tokens import Tokens
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import (
    Contact,
    FindNode,
    FindPointers,
    FindRecord,
    Found,
    Had,
    Have,
    Ping,
    Pong,
    Store,
    Stored,
    Verdict,
    pack_endpoint,
)

_CURSOR = struct.Struct(">IH")  # where in each turn's ring to begin, and how many were given
_FOUND_FIXED_BYTES = 26  # a Found without cursor, frames and contacts
_FRAME_HEAD_BYTES = 3
_CONTACT_BYTES = 52  # the larger, IPv6, with its head
_POINTERS_MIN = 4  # a page holds as many whatever their size
_CONTACTS_FIRST = 5  # for which a first page leaves room beyond that


class Holder:
    def __init__(self, peers: Peers, kept: Kept, gate: Gate, tokens: Tokens) -> None:
        self._peers = peers
        self._kept = kept
        self._gate = gate
        self._tokens = tokens

    def pong(self, now: Now, peer: Contact, ping: Ping, client: bool) -> Pong:
        seen = pack_endpoint(peer.host, peer.port)
        return Pong(ping.id, client, self._tokens.give(now, peer), seen, max(0, int(now.wall)))

    def found(self, now: Now, peer: Contact, find: FindNode | FindRecord | FindPointers, client: bool) -> Found:
        """A record is given alone: who has it needs to be sent no further."""
        cursor, split = b"", False
        frames: list[bytes] = []
        contacts: tuple[bytes, ...] = ()
        if isinstance(find, FindRecord):
            held = self._kept.get(now, find.key)
            frames = [held.item.raw] if held is not None else []
        elif isinstance(find, FindPointers):
            frames, cursor = self._page(now, find)
            split = self._kept.crowded(find.key)
        if not frames or (isinstance(find, FindPointers) and not find.cursor):
            contacts = self._contacts(peer, find.key, _room(frames, cursor) // _CONTACT_BYTES)
        return Found(find.id, client, self._tokens.give(now, peer), tuple(frames), contacts, cursor, split)

    def stored(self, now: Now, peer: Contact, store: Store, client: bool) -> Stored:
        """Raises PeerError for a frame that is not to be kept by anybody."""
        if not self._tokens.holds(now, peer, store.token):
            return Stored(store.id, client, Verdict.TOKEN)
        source = space.subnet(peer.host) or peer.key
        verdict = self._gate.admit(now, store.frame, source, sender=peer.key)
        return Stored(store.id, client, verdict, self._kept.crowded(self._gate.key(store.frame)))

    def had(self, now: Now, peer: Contact, have: Have, client: bool) -> Had:
        asked = (have.hashes[i : i + 8] for i in range(0, len(have.hashes) - 7, 8))
        held = bytes(self._kept.known(now, hash_) is not None for hash_ in asked)
        return Had(have.id, client, self._tokens.give(now, peer), held)

    def _page(self, now: Now, find: FindPointers) -> tuple[list[bytes], bytes]:
        """Frames after the cursor, and the cursor after them, empty at the end."""
        start, given = _read_cursor(find)
        room = _room([], bytes(_CURSOR.size))
        spare = 0 if find.cursor else _CONTACTS_FIRST * _CONTACT_BYTES
        frames: list[bytes] = []
        for held in islice(self._order(now, find, start), given, None):
            room -= len(held.item.raw) + _FRAME_HEAD_BYTES
            if room < (spare if len(frames) >= _POINTERS_MIN else 0) or len(frames) == 16:
                return frames, _CURSOR.pack(start, given + len(frames))
            frames.append(held.item.raw)
        return frames, b""

    def _order(self, now: Now, find: FindPointers, start: int) -> Iterator[Held]:
        """Fair among sources; with a sketch by merit too."""
        lot = self._kept.under(now, find.key, start)
        if len(find.sketch) != limits.SKETCH_BYTES:
            return lot
        held = list(lot)
        return ranking.mixed(ranking.ranked(find.sketch, held), held)

    def _contacts(self, peer: Contact, key: bytes, room: int) -> tuple[bytes, ...]:
        count = min(room, limits.DHT_CONTACTS_MAX)
        closest = self._peers.table.closest(space.at(key), count + 1)
        return tuple([entry.packed for entry in closest if entry.contact.key != peer.key][:count])


def _read_cursor(find: FindPointers) -> tuple[int, int]:
    """Whoever has none yet begins at a place of its own. Raises PeerError('bad-cursor')."""
    if not find.cursor:
        return find.id, 0
    if len(find.cursor) != _CURSOR.size:
        raise PeerError("bad-cursor", f"{len(find.cursor)} bytes")
    return _CURSOR.unpack(find.cursor)


def _room(frames: list[bytes], cursor: bytes) -> int:
    """Bytes left in a Found with these."""
    used = _FOUND_FIXED_BYTES + len(cursor) + sum(len(frame) + _FRAME_HEAD_BYTES for frame in frames)
    return limits.DATAGRAM_BODY_BYTES_MAX - used
