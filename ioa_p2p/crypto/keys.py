"""A node's key: Ed25519, also its libp2p key, so peer id, record signer and link identity are one thing."""

from dataclasses import dataclass, field

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from ioa_p2p.errors import PeerError


@dataclass(frozen=True, slots=True)
class NodeKey:
    """seed: 32 secret bytes, handed in (from the key file, or from dice at the edge)."""

    seed: bytes = field(repr=False)
    _signing: SigningKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_signing", SigningKey(self.seed))

    @property
    def node(self) -> bytes:
        """The public key, 32 B."""
        return bytes(self._signing.verify_key)

    def sign(self, data: bytes) -> bytes:
        """A 64 B signature. Deterministic (RFC 8032)."""
        return self._signing.sign(data).signature


def verify(node: bytes, data: bytes, signature: bytes) -> None:
    """Raises PeerError('bad-signature')."""
    try:
        VerifyKey(node).verify(data, signature)
    except (BadSignatureError, ValueError):
        raise PeerError("bad-signature") from None
