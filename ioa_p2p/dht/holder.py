"""Answering others: what a node does as one of the holders. docs/wire.md, "DHT".

    request ──> Holder ──> Pong | Found (frames first, then a card or the closest contacts, as fit) | Stored | Had

An answer is built from what is held now; nothing is remembered of who asked.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from ioa_p2p.dht import ranking, space
from ioa_p2p.dht.cards import Cards
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.records import Claim, Gate
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
    pack_cursor,
    pack_endpoint,
    unpack_cursor,
)
from ioa_p2p.wire.records import AgentRecord

_FOUND_FIXED_BYTES = 30  # a Found without cursor, frames, contacts, sources and card
_FRAME_HEAD_BYTES = 3
_CARD_HEAD_BYTES = 1  # more than an empty one has
_POINTER_HEAD_BYTES = _FRAME_HEAD_BYTES + limits.POINTER_SOURCE_BYTES
_CONTACT_BYTES = 52  # the larger, IPv6, with its head
_CONTACTS_FIRST = 5  # for which a first page leaves room beyond that


_REFUSED = {"not-yet-valid": Verdict.TIME, "expired": Verdict.TIME, "over-budget": Verdict.BUSY}


class Holder:
    """faults: refusals that are answered are counted here."""

    def __init__(
        self, peers: Peers, kept: Kept, gate: Gate, tokens: Tokens, cards: Cards, faults: Counter[str]
    ) -> None:
        self._peers = peers
        self._kept = kept
        self._gate = gate
        self._tokens = tokens
        self._cards = cards
        self._faults = faults

    def pong(self, now: Now, peer: Contact, ping: Ping, client: bool) -> Pong:
        seen = pack_endpoint(peer.host, peer.port)
        return Pong(ping.id, client, self._tokens.give(now, peer), seen, max(0, int(now.wall)))

    def found(self, now: Now, peer: Contact, find: FindNode | FindRecord | FindPointers, client: bool) -> Found:
        """A record comes without contacts: who has it needs to be sent no further."""
        cursor, split, sources, card = b"", False, b"", b""
        frames: list[bytes] = []
        contacts: tuple[bytes, ...] = ()
        if isinstance(find, FindRecord):
            held = self._kept.get(now, find.key)
            if held is not None:
                frames, card = [held.item.raw], self._card(held)
        elif isinstance(find, FindPointers):
            page, cursor = self._page(now, find)
            frames, sources = [held.item.raw for held in page], b"".join(held.source_mark for held in page)
            split = self._kept.crowded(find.key)
        if not frames or (isinstance(find, FindPointers) and not find.cursor):
            room = _room(frames, cursor + sources)
            contacts = self._contacts(peer, find.key, room // _CONTACT_BYTES)
        return Found(
            find.id, client, self._tokens.give(now, peer), tuple(frames), contacts, cursor, split, sources, card
        )

    def stored(self, now: Now, peer: Contact, store: Store, client: bool) -> Stored:
        """Raises PeerError for a frame that is not to be kept by anybody. What an honest node may cause, by clock
        or zeal, is answered: silence would mean to it that we are dead."""
        if not self._tokens.holds(now, peer, store.token):
            return Stored(store.id, client, Verdict.TOKEN)
        claim, source = Claim(store.frame), space.subnet(peer.host) or peer.key
        try:
            verdict = self._gate.admit(now, claim, source, sender=peer.key)
        except PeerError as fault:
            if fault.code not in _REFUSED:
                raise
            self._faults[fault.code] += 1
            return Stored(store.id, client, _REFUSED[fault.code])
        return Stored(store.id, client, verdict, self._kept.crowded(claim.key))

    def had(self, now: Now, peer: Contact, have: Have, client: bool) -> Had:
        asked = (have.hashes[i : i + 8] for i in range(0, len(have.hashes) - 7, 8))
        held = bytes(self._kept.known(now, hash_) is not None for hash_ in asked)
        return Had(have.id, client, self._tokens.give(now, peer), held)

    def _card(self, held: Held) -> bytes:
        """Of one of our own agents, if it fits beside the record: who asks us for that is about to ask for this."""
        assert isinstance(held.item.body, AgentRecord), "records alone have record keys"
        card = self._cards.ours(held.item.body.card)
        return card if len(card) <= _room([held.item.raw], b"") - _CARD_HEAD_BYTES else b""

    def _page(self, now: Now, find: FindPointers) -> tuple[list[Held], bytes]:
        """What follows the cursor, and the cursor after it, empty at the end."""
        start, given = unpack_cursor(find.cursor) if find.cursor else (find.id, 0)
        room = _room([], bytes(limits.POINTERS_CURSOR_BYTES))
        spare = 0 if find.cursor else _CONTACTS_FIRST * _CONTACT_BYTES
        page: list[Held] = []
        for held, places in self._order(now, find, start, given):
            room -= len(held.item.raw) + _POINTER_HEAD_BYTES
            if room < (spare if len(page) >= limits.POINTERS_PAGE else 0) or len(page) == 16:
                return page, pack_cursor(start, given)
            page.append(held)
            given += places
        return page, b""

    def _order(self, now: Now, find: FindPointers, start: int, given: int) -> Iterator[tuple[Held, int]]:
        """Fair among sources; with a sketch by merit too. With each, how many places it takes."""
        lot = self._kept.under(now, find.key, start)
        if len(find.sketch) != limits.SKETCH_BYTES:
            return ((held, 1) for held in islice(lot, given, None))
        held = list(lot)
        return ranking.mixed(ranking.ranked(find.sketch, held), held, given)

    def _contacts(self, peer: Contact, key: bytes, room: int) -> tuple[bytes, ...]:
        count = min(room, limits.DHT_CONTACTS_MAX)
        closest = self._peers.table.around(space.at(key), count + 1)
        return tuple([entry.packed for entry in closest if entry.contact.key != peer.key][:count])


def _room(frames: list[bytes], cursor: bytes) -> int:
    """Bytes left in a Found with these."""
    used = _FOUND_FIXED_BYTES + len(cursor) + sum(len(frame) + _FRAME_HEAD_BYTES for frame in frames)
    return limits.DATAGRAM_BODY_BYTES_MAX - used
