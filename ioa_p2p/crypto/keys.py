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


@dataclass(slots=True)
class Checks:
    """How many signatures this process checked, and how many of them were bad."""

    made: int = 0
    bad: int = 0


CHECKS = Checks()
"""A metric of the process, the one thing here that is not a function of its arguments; nothing depends on it."""


def verify(node: bytes, data: bytes, signature: bytes) -> None:
    """Raises PeerError('bad-signature')."""
    CHECKS.made += 1
    try:
        VerifyKey(node).verify(data, signature)
    except (BadSignatureError, ValueError):
        CHECKS.bad += 1
        raise PeerError("bad-signature") from None
