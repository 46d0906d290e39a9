"""Writes the test vectors anew: `python -m tests.vectors.make`. Keys, times and texts are fixed: same bytes each run.

samples ──> build() ──> {file: [vector, ...]} ──> tests/vectors/*.json

A vector holds bytes as hex, and the same value in plain JSON ({"hex": ...} for bytes) with its fields' names.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ioa_p2p.crypto import envelope
from ioa_p2p.wire import codec, frames, ids, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.link import VERSION, Hello, LinkKind
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, card, pointer, record

FOLDER = Path(__file__).parent
MESH = "test-mesh"
Vector = dict[str, Any]

HELLO = Hello(
    VERSION,
    NETWORK,
    1_799_999_999_000,
    software="ioa-p2p 0.1.0",
    features=("relay",),
    addresses=("/ip4/127.0.0.1/tcp/4001",),
    endpoint="127.0.0.1:4001",
)

# Every signed body and every unsigned one, by name. A new wire type is added here.
SIGNED: dict[str, tuple[Kind, Any]] = {
    "a record": (Kind.RECORD, record()),
    "a record that says gone": (Kind.RECORD, record(gone=True, ttl=limits.TTL_S_DEFAULT + limits.GONE_EXTRA_TTL_S)),
    "a record with an owner's certificate": (Kind.RECORD, record(owner_cert=bytes(range(140)))),
    "a pointer": (Kind.POINTER, pointer()),
    "a pointer of a shard, with a sketch": (
        Kind.POINTER,
        pointer(depth=4, sketch=bytes(range(64)), endpoint=bytes(18)),
    ),
}
UNSIGNED: dict[str, Any] = {
    "a card": card(),
    "a hello": HELLO,
    "a hello of few words": Hello(VERSION, NETWORK, 0),
}


def build() -> dict[str, list[Vector]]:
    return {
        "identifiers": list(identifiers()),
        "signed": [signed(name, kind, body) for name, (kind, body) in SIGNED.items()],
        "unsigned": [unsigned(name, value) for name, value in UNSIGNED.items()],
        "link": [link(kind, body) for kind, body in ((LinkKind.HELLO, codec.encode(HELLO)), (LinkKind.PING, b"\x01"))],
        "refused": list(refused()),
    }


def identifiers() -> Iterator[Vector]:
    """docs/wire.md, "Identifiers"."""
    index = ids.index_key("skill:stats.outliers")
    place = ids.dht_id(ALICE.node)
    yield {"what": "network", "mesh": MESH, "id": ids.network_id(MESH).hex()}
    for key in (ALICE, BOB, MALLORY):
        yield {"what": "node", "seed": key.seed.hex(), "id": key.node.hex(), "text": ids.node_text(key.node)}
    yield {"what": "dht", "node": ALICE.node.hex(), "id": place.hex()}
    yield {
        "what": "record",
        "node": ALICE.node.hex(),
        "agent": "analyst",
        "id": ids.record_key(ALICE.node, "analyst").hex(),
    }
    yield {"what": "index", "text": "skill:stats.outliers", "id": index.hex()}
    for depth in (0, 4, 8):
        key = ids.pointer_key(index, depth, place)
        yield {"what": "pointer", "index": index.hex(), "depth": depth, "publisher": place.hex(), "id": key.hex()}
    yield {"what": "card", "card": codec.encode(card()).hex(), "id": ids.blake(codec.encode(card())).hex()}


def signed(name: str, kind: Kind, body: Any) -> Vector:
    """docs/wire.md, "Signed frames"."""
    frame = envelope.seal(ALICE, NETWORK, kind, body)
    head = {"name": name, "kind": kind.name.lower(), "number": int(kind), "seed": ALICE.seed.hex(), "mesh": MESH}
    return {**head, **described(body), "frame": frame.hex()}


def unsigned(name: str, value: Any) -> Vector:
    return {"name": name, **described(value), "bytes": codec.encode(value).hex()}


def link(kind: LinkKind, body: bytes) -> Vector:
    """docs/wire.md, "Link"."""
    frame = (1 + len(body)).to_bytes(4, "big") + bytes([kind]) + body
    return {"kind": kind.name.lower(), "number": int(kind), "body": body.hex(), "frame": frame.hex()}


def refused() -> Iterator[Vector]:
    """Frames that a node must not accept, with the code it counts them under."""
    good = envelope.seal(ALICE, NETWORK, Kind.RECORD, record())
    body = frames.parse(good).body
    forged = envelope.seal(MALLORY, NETWORK, Kind.RECORD, record(MALLORY))[-limits.SIGNATURE_BYTES :]
    for why, code, frame in (
        ("the signature is another's", "bad-signature", good[: -limits.SIGNATURE_BYTES] + forged),
        ("it belongs to another mesh", "bad-signature", envelope.seal(ALICE, OTHER_NETWORK, Kind.RECORD, record())),
        ("one bit of the body differs", "bad-signature", good[:60] + bytes([good[60] ^ 1]) + good[61:]),
        ("its kind was changed", "bad-signature", good[:1] + bytes([Kind.BID]) + good[2:]),
        ("its version is unknown", "unknown-version", b"\x02" + good[1:]),
        ("its kind is unknown", "unknown-kind", good[:1] + b"\xff" + good[2:]),
        ("it is cut short", "short-frame", good[:-1]),
        ("something follows it", "frame-length", good + b"\x00"),
        ("it says to be too large", "frame-too-large", good[:2] + b"\x04\x01" + good[4:]),
        ("its body begins with no key", "no-signer", good[:4] + b"\x80" + body[1:] + good[-limits.SIGNATURE_BYTES :]),
    ):
        yield {"why": why, "code": code, "mesh": MESH, "frame": frame.hex()}


def described(value: Any) -> Vector:
    plain = jsonable(codec.read_any(codec.encode(value)))
    if isinstance(plain, dict):
        return {"type": type(value).__name__, "value": plain}
    tag = ["tag"] if type(value).__struct_config__.tag is not None else []
    return {"type": type(value).__name__, "fields": [*tag, *type(value).__struct_fields__], "value": plain}


def jsonable(value: Any) -> Any:
    match value:
        case bytes():
            return {"hex": value.hex()}
        case list():
            return [jsonable(item) for item in value]
        case dict():
            return {key: jsonable(item) for key, item in value.items()}
        case _:
            return value


def main() -> None:
    for name, vectors in build().items():
        (FOLDER / f"{name}.json").write_text(json.dumps(vectors, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
