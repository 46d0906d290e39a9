"""Names of things: node keys, mesh, DHT keys, skills, agents. See docs/wire.md, "Identifiers"."""

import base64
import binascii
import hashlib
import re

from ioa_p2p.errors import UsageError
from ioa_p2p.wire import limits

NodeId = bytes
"""A node is its Ed25519 public key, 32 B."""

# \A and \Z, for "$" would let a name end in a line break.
SKILL_PATTERN = r"\A[a-z0-9]+([./-][a-z0-9]+){0,5}\Z"
AGENT_PATTERN = r"\A[a-z0-9]+(-[a-z0-9]+)*\Z"


def blake(data: bytes, size: int = 32) -> bytes:
    """BLAKE2b of `size` bytes."""
    return hashlib.blake2b(data, digest_size=size).digest()


def nested_team(key: bytes, node: bytes, attempt: int) -> bytes:
    """16 B: the team that an attempt at a task forms at its worker; key: of the task."""
    return blake(b"nest" + key + node + bytes([attempt]), 16)


def network_id(mesh: str) -> bytes:
    """16 B that bind every signature and datagram to one mesh."""
    return blake(mesh.encode(), limits.NETWORK_ID_BYTES)


def dht_id(node: NodeId) -> bytes:
    """A node's place in the DHT, 20 B."""
    return blake(node, 20)


def record_key(node: NodeId, agent: str) -> bytes:
    """Where an AgentRecord is stored in the DHT, 20 B."""
    return blake(b"record" + node + agent.encode(), 20)


def index_key(text: str) -> bytes:
    """An index key ("skill:stats.outliers", "word:memory", "cell:17") as 16 B."""
    return blake(text.encode(), 16)


def pointer_key(index: bytes, depth: int, publisher: bytes) -> bytes:
    """Where a Pointer is stored: index key, depth, and the first `depth` bits of the publisher's DHT id.

    index: 16 B, depth: 0..SHARD_BITS_MAX bits, publisher: the publisher's 20 B DHT id (ignored at depth 0).
    """
    assert 0 <= depth <= limits.SHARD_BITS_MAX
    shard = publisher[0] >> (8 - depth) if depth else 0
    return blake(b"pointer" + index + bytes([depth, shard]), 20)


def is_skill_name(name: str) -> bool:
    return len(name) <= limits.SKILL_NAME_BYTES_MAX and re.search(SKILL_PATTERN, name) is not None


def is_agent_name(name: str) -> bool:
    return len(name) <= limits.AGENT_NAME_BYTES_MAX and re.search(AGENT_PATTERN, name) is not None


def node_text(node: NodeId) -> str:
    """The key as people see and type it: 52 characters of lower-case base32."""
    return base64.b32encode(node).decode().rstrip("=").lower()


def node_short(node: NodeId) -> str:
    """Eight characters, for logs only: never compare by it."""
    return node_text(node)[:8]


def node_from_text(text: str) -> NodeId:
    """Inverse of `node_text`. Raises UsageError('bad-node-id')."""
    try:
        node = base64.b32decode(text.strip().upper() + "====", casefold=False)
    except (binascii.Error, ValueError):
        node = b""
    if len(node) != limits.NODE_ID_BYTES or node_text(node) != text.strip().lower():
        raise UsageError(
            "bad-node-id",
            f"not a node id: {text[:60]!r}",
            "a node id has 52 letters and digits, as that node's `id` command prints it",
        )
    return node
