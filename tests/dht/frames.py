"""Signed frames for tests of the DHT's rules: valid ones, and what Mallory makes."""

from types import SimpleNamespace
from typing import Any, cast

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht.records import item_of
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Now
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord, Pointer
from tests.wire.samples import ALICE, MALLORY, NETWORK, record

WALL = 1_800_000_000
NOW = Now(float(WALL), 5_000.0)


def later(seconds: float) -> Now:
    return Now(NOW.wall + seconds, NOW.boot + seconds)


def sealed(body: AgentRecord | Pointer, key: NodeKey = ALICE, network: bytes = NETWORK) -> bytes:
    kind = Kind.RECORD if isinstance(body, AgentRecord) else Kind.POINTER
    return envelope.seal(key, network, kind, body)


def forged(body: AgentRecord | Pointer, claimed: NodeKey = ALICE, signer: NodeKey = MALLORY) -> bytes:
    """A frame that names `claimed` as its signer and is signed by another."""
    liar = SimpleNamespace(node=claimed.node, sign=signer.sign)
    return sealed(body, cast(Any, liar))


def item(body: AgentRecord | Pointer | None = None, key: NodeKey = ALICE) -> Item:
    return item_of(sealed(record(key) if body is None else body, key))
