"""Proof of address: a token that only who receives at an endpoint can know. Kademlia as BitTorrent uses it (BEP 5).

A token is a keyed hash of the asker's key and endpoint; nothing is stored for it. Its secret changes every
`limits.DHT_TOKEN_S` seconds and the last one still counts.
"""

import hashlib
import random

from ioa_p2p.effects import Now
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, pack_contact


class Tokens:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._secrets = (rng.randbytes(16), rng.randbytes(16))
        self._since_s: float | None = None

    def give(self, now: Now, to: Contact) -> bytes:
        self._turn(now)
        return _token(self._secrets[0], to)

    def holds(self, now: Now, of: Contact, token: bytes) -> bool:
        """Whether `token` was given to this very key and endpoint of late."""
        self._turn(now)
        return any(token == _token(secret, of) for secret in self._secrets)

    def _turn(self, now: Now) -> None:
        if self._since_s is None or now.boot - self._since_s >= limits.DHT_TOKEN_S:
            self._secrets = (self._rng.randbytes(16), self._secrets[0])
            self._since_s = now.boot


def _token(secret: bytes, contact: Contact) -> bytes:
    return hashlib.blake2b(pack_contact(contact), key=secret, digest_size=limits.DHT_TOKEN_BYTES).digest()
