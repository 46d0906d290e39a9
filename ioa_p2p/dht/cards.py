"""Cards by hash: our own, and a bounded cache of others'. Untrusted text, true to its hash.

FetchCard ── had? ──> CardFound            neighbour ── CardWanted ──> CardGiven (empty: not had)
          └── CardWanted ──> node ── CardGiven ──> hash and type checked ──> cache, CardFound

A small card comes along with its record, if the agent's own node gives that.
"""

from collections import OrderedDict
from functools import partial

from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.events import CardFound, CardHeard
from ioa_p2p.effects import Effect, Emit, Now, Send
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import CardGiven, CardWanted
from ioa_p2p.wire.records import Card


class Cards:
    def __init__(self, agenda: Agenda, out: list[Effect]) -> None:
        self._agenda = agenda
        self._out = out
        self._own: dict[str, tuple[bytes, bytes]] = {}
        self._others: OrderedDict[bytes, bytes] = OrderedDict()
        self._wanted: dict[tuple[bytes, bytes], list[int]] = {}

    def own(self, card: Card) -> bytes:
        """Serve a card of ours from now on; its hash. Raises UsageError('card-too-large')."""
        encoded = codec.encode(card)
        if len(encoded) > limits.CARD_BYTES_MAX:
            raise UsageError(
                "card-too-large",
                f"the card of {card.name} has {len(encoded)} bytes, at most {limits.CARD_BYTES_MAX} are sent",
                "shorten descriptions, examples or schemas",
            )
        hash_ = ids.blake(encoded)
        self._own[card.name] = (hash_, encoded)
        return hash_

    def kept(self, hash_: bytes) -> Card | None:
        """The card with this hash, if it is our own or cached."""
        encoded = self._get(hash_)
        return codec.decode(encoded, Card) if encoded else None

    def fetch(self, now: Now, request: int, node: bytes, hash_: bytes) -> None:
        encoded = self._get(hash_)
        if encoded is not None:
            self._found(request, encoded)
            return
        waiting = self._wanted.setdefault((node, hash_), [])
        waiting.append(request)
        if len(waiting) == 1:
            self._out.append(Send(node, CardWanted(hash_)))
            self._agenda.at(now.boot + limits.CARD_WAIT_S, partial(self._give_up, (node, hash_), waiting))

    def wanted(self, peer: bytes, message: CardWanted) -> None:
        self._out.append(Send(peer, CardGiven(message.hash, self._get(message.hash) or b"")))

    def given(self, peer: bytes, message: CardGiven) -> None:
        """Raises PeerError: 'unasked-card', 'wrong-card', 'undecodable'; whoever waits goes on waiting."""
        if (peer, message.hash) not in self._wanted:
            raise PeerError("unasked-card")
        if message.card:
            _check(message.hash, message.card)
            self._keep(message.hash, message.card)
        for request in self._wanted.pop((peer, message.hash)):
            self._found(request, message.card)

    def ours(self, hash_: bytes) -> bytes:
        """Encoded, of one of our agents; else empty."""
        return next((encoded for known, encoded in self._own.values() if known == hash_), b"")

    def came_along(self, hash_: bytes, encoded: bytes) -> None:
        """Beside the record that names it. Raises PeerError: 'wrong-card', 'undecodable'."""
        _check(hash_, encoded)
        self._keep(hash_, encoded)

    def _get(self, hash_: bytes) -> bytes | None:
        return self.ours(hash_) or self._others.get(hash_)

    def _keep(self, hash_: bytes, encoded: bytes) -> None:
        self._out.append(Emit(CardHeard(hash_, encoded)))
        self._others[hash_] = encoded
        self._others.move_to_end(hash_)
        if len(self._others) > limits.CARDS_KEPT_MAX:
            self._others.popitem(last=False)

    def _found(self, request: int, encoded: bytes) -> None:
        self._out.append(Emit(CardFound(request, codec.decode(encoded, Card) if encoded else None)))

    def _give_up(self, wanted: tuple[bytes, bytes], waiting: list[int], now: Now) -> None:
        if self._wanted.get(wanted) is waiting:
            for request in self._wanted.pop(wanted):
                self._found(request, b"")


def _check(hash_: bytes, encoded: bytes) -> None:
    if ids.blake(encoded) != hash_:
        raise PeerError("wrong-card", "a card that is not what its hash names")
    codec.decode(encoded, Card)
