"""Writes the test vectors anew: `python -m tests.vectors.make`. Keys, times and texts are fixed: same bytes each run.

samples ──> build() ──> {file: [vector, ...]} ──> tests/vectors/*.json

A vector holds bytes as hex, and the same value in plain JSON ({"hex": ...} for bytes) with its fields' names.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.box import Boxes
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.wire import codec, dht, frames, ids, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.link import LinkKind
from tests.vectors.samples import HELLO, KEY, LINE, SIGNED, UNSIGNED
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, card, record

FOLDER = Path(__file__).parent
MESH = "test-mesh"
SECRET = bytes(range(32))
Vector = dict[str, Any]


def build() -> dict[str, list[Vector]]:
    return {
        "identifiers": list(identifiers()),
        "signed": [signed(name, kind, body) for name, (kind, body) in SIGNED.items()],
        "unsigned": [unsigned(value) for value in UNSIGNED],
        "datagrams": [datagram(ALICE, BOB, b""), datagram(BOB, ALICE, SECRET)],
        "link": list(links()),
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
    team = ids.nested_team(KEY, ALICE.node, 1)
    yield {"what": "nested-team", "key": KEY.hex(), "node": ALICE.node.hex(), "attempt": 1, "id": team.hex()}
    yield {"what": "card", "card": codec.encode(card()).hex(), "id": ids.blake(codec.encode(card())).hex()}


def signed(name: str, kind: Kind, body: Any) -> Vector:
    """docs/wire.md, "Signed frames"."""
    frame = envelope.seal(ALICE, NETWORK, kind, body)
    head = {"name": name, "kind": kind.name.lower(), "number": int(kind), "seed": ALICE.seed.hex(), "mesh": MESH}
    return {**head, **described(body), "frame": frame.hex()}


def unsigned(value: Any) -> Vector:
    return {**described(value), "bytes": codec.encode(value).hex()}


def datagram(sender: NodeKey, receiver: NodeKey, secret: bytes) -> Vector:
    """docs/wire.md, "Datagrams". The nonce is random in a node."""
    message, nonce = codec.encode(dht.Ping(1, False)), bytes(range(24))
    return {
        "sender": sender.seed.hex(),
        "receiver": receiver.seed.hex(),
        "mesh": MESH,
        "secret": secret.hex(),
        "nonce": nonce.hex(),
        "message": message.hex(),
        "datagram": Boxes(sender, NETWORK, secret).seal(receiver.node, nonce, message).hex(),
    }


def links() -> Iterator[Vector]:
    """docs/wire.md, "Link"."""
    line = envelope.seal(ALICE, NETWORK, Kind.LOG, LINE)
    bodies = ((LinkKind.HELLO, codec.encode(HELLO)), (LinkKind.PING, b"\x01"), (LinkKind.SIGNED, line + line))
    for kind, body in bodies:
        frame = (1 + len(body)).to_bytes(4, "big") + bytes([kind]) + body
        yield {"kind": kind.name.lower(), "number": int(kind), "body": body.hex(), "frame": frame.hex()}


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
    """The type as docs/wire.md names it, the names of its fields, and the value in plain JSON."""
    kind = type(value)
    plain = jsonable(codec.read_any(codec.encode(value)))
    name = f"{kind.__module__.rsplit('.')[-1]}.{kind.__name__}"
    if isinstance(plain, dict):
        return {"type": name, "value": plain}
    tag = ["tag"] if kind.__struct_config__.tag is not None else []
    return {"type": name, "fields": [*tag, *kind.__struct_fields__], "value": plain}


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
