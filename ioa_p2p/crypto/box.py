"""Boxed datagrams: `version 1 | kind 1 | sender key 32 | nonce 24 | box`. docs/wire.md, "Datagrams".

    message ── seal(to, nonce) ──> datagram ── open ──> (sender's key, message) | PeerError, and silence

The box key is BLAKE2b over the X25519 secret that two nodes share, the network, the mesh secret (or nothing),
sender and receiver. So a datagram proves its sender, its mesh and its direction at no extra byte: an outsider's
does not open, and one thrown back at its sender does not either.
"""

import hashlib
from collections import OrderedDict

import nacl.bindings as sodium
from nacl.exceptions import CryptoError

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits

VERSION = 1
KIND = 1
NONCE_BYTES = sodium.crypto_secretbox_NONCEBYTES
_HEAD = bytes((VERSION, KIND))
_BOX_AT = len(_HEAD) + limits.NODE_ID_BYTES + NONCE_BYTES
_OVERHEAD = _BOX_AT + sodium.crypto_secretbox_MACBYTES


class Boxes:
    """Seals and opens for one node in one mesh. Keys are kept for `limits.BOX_PEERS_MAX` peers.

    network: 16 B. secret: the mesh secret of a private mesh, or empty.
    """

    def __init__(self, key: NodeKey, network: bytes, secret: bytes = b"") -> None:
        self._node = key.node
        self._mesh = network + secret
        self._private = sodium.crypto_sign_ed25519_sk_to_curve25519(key.seed + key.node)
        self._keys: OrderedDict[bytes, tuple[bytes, bytes]] = OrderedDict()

    def seal(self, to: bytes, nonce: bytes, message: bytes) -> bytes:
        """A datagram for the node `to`. nonce: 24 random bytes, never used twice.

        Raises PeerError('bad-key') if `to` is no usable public key.
        """
        assert len(message) <= limits.DATAGRAM_BODY_BYTES_MAX, "the message must fit one datagram"
        outward, _ = self._keys_with(to)
        return b"".join((_HEAD, self._node, nonce, sodium.crypto_secretbox(message, nonce, outward)))

    def open(self, datagram: bytes) -> tuple[bytes, bytes]:
        """(sender's key, message). Raises PeerError: 'datagram-size', 'unknown-version', 'bad-key',
        'not-opened' (another mesh, a wrong secret, not for us, or garbage)."""
        if not _OVERHEAD <= len(datagram) <= limits.DATAGRAM_BYTES_MAX:
            raise PeerError("datagram-size", f"{len(datagram)} bytes")
        if datagram[:2] != _HEAD:
            raise PeerError("unknown-version", f"datagram version {datagram[0]}, kind {datagram[1]}")
        sender, nonce = datagram[2:34], datagram[34:_BOX_AT]
        known = sender in self._keys
        keys = self._keys_with(sender)
        try:
            return sender, sodium.crypto_secretbox_open(datagram[_BOX_AT:], nonce, keys[1])
        except CryptoError:
            if not known:
                # Who never proved itself must not push out the key of one who did.
                del self._keys[sender]
            raise PeerError("not-opened") from None

    def _keys_with(self, peer: bytes) -> tuple[bytes, bytes]:
        keys = self._keys.get(peer)
        if keys is None:
            keys = self._keys[peer] = self._agree(peer)
            if len(self._keys) > limits.BOX_PEERS_MAX:
                self._keys.popitem(last=False)
        else:
            self._keys.move_to_end(peer)
        return keys

    def _agree(self, peer: bytes) -> tuple[bytes, bytes]:
        """The keys (to the peer, from the peer)."""
        try:
            shared = sodium.crypto_scalarmult(self._private, sodium.crypto_sign_ed25519_pk_to_curve25519(peer))
        except (CryptoError, RuntimeError, TypeError, ValueError):
            raise PeerError("bad-key") from None
        return self._derive(shared, self._node, peer), self._derive(shared, peer, self._node)

    def _derive(self, shared: bytes, sender: bytes, receiver: bytes) -> bytes:
        secret = b"".join((shared, sender, receiver, self._mesh))
        return hashlib.blake2b(secret, digest_size=32, person=b"ioa-p2p/box").digest()
