"""Checks the vectors with msgpack, PyNaCl and hashlib alone: a second reading of docs/wire.md, none of our code.

`python -m tests.vectors.check` prints what was checked; any AssertionError or BadSignatureError is a fault.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import msgpack
from nacl import bindings
from nacl.signing import SigningKey, VerifyKey

FOLDER = Path(__file__).parent
Vector = dict[str, Any]


def load(name: str) -> list[Vector]:
    return json.loads((FOLDER / f"{name}.json").read_text())


def blake(data: bytes, size: int) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()


def plain(value: Any) -> Any:
    """Undo {"hex": ...}."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return (
            bytes.fromhex(value["hex"]) if set(value) == {"hex"} else {key: plain(item) for key, item in value.items()}
        )
    return value


def check_identifier(vector: Vector) -> None:
    """The hash inputs, written out anew."""
    raw = {
        key: bytes.fromhex(text)
        for key, text in vector.items()
        if key in ("node", "index", "publisher", "card", "seed", "key")
    }
    match vector["what"]:
        case "network":
            expected = blake(vector["mesh"].encode(), 16)
        case "node":
            expected = bytes(SigningKey(raw["seed"]).verify_key)
            assert vector["text"] == base64.b32encode(expected).decode().strip("=").lower()
        case "dht":
            expected = blake(raw["node"], 20)
        case "nested-team":
            expected = blake(b"nest" + raw["key"] + raw["node"] + bytes([vector["attempt"]]), 16)
        case "record":
            expected = blake(b"record" + raw["node"] + vector["agent"].encode(), 20)
        case "index":
            expected = blake(vector["text"].encode(), 16)
        case "pointer":
            shard = int.from_bytes(raw["publisher"], "big") >> (160 - vector["depth"])
            expected = blake(b"pointer" + raw["index"] + bytes([vector["depth"], shard]), 20)
        case "card":
            expected = blake(raw["card"], 32)
        case other:
            raise AssertionError(other)
    assert vector["id"] == expected.hex()


def check_signed(vector: Vector) -> None:
    frame = bytes.fromhex(vector["frame"])
    head, body, signature = frame[:4], frame[4:-64], frame[-64:]
    assert head == bytes([1, vector["number"]]) + len(body).to_bytes(2, "big")
    assert msgpack.unpackb(body) == plain(vector["value"])
    assert msgpack.packb(plain(vector["value"])) == body
    assert len(vector["fields"]) == len(vector["value"])
    key = SigningKey(bytes.fromhex(vector["seed"]))
    assert bytes(key.verify_key) == plain(vector["value"])[0]
    assert key.sign(covered(vector, head, body)).signature == signature
    VerifyKey(bytes(key.verify_key)).verify(covered(vector, head, body), signature)


def covered(vector: Vector, head: bytes, body: bytes) -> bytes:
    network = blake(vector["mesh"].encode(), 16)
    return b"ioa-p2p/" + vector["kind"].encode() + b"\0" + head[:2] + b"\x10" + network + head[2:] + body


def check_unsigned(vector: Vector) -> None:
    data = bytes.fromhex(vector["bytes"])
    assert msgpack.unpackb(data) == plain(vector["value"])
    assert msgpack.packb(plain(vector["value"])) == data


def check_datagram(vector: Vector) -> None:
    raw = {key: bytes.fromhex(text) for key, text in vector.items() if key != "mesh"}
    sender, receiver = (bytes(SigningKey(raw[name]).verify_key) for name in ("sender", "receiver"))
    private = SigningKey(raw["receiver"]).to_curve25519_private_key()
    shared = bindings.crypto_scalarmult(bytes(private), bytes(VerifyKey(sender).to_curve25519_public_key()))
    mesh = blake(vector["mesh"].encode(), 16) + raw["secret"]
    key = hashlib.blake2b(shared + sender + receiver + mesh, digest_size=32, person=b"ioa-p2p/box").digest()
    assert raw["datagram"][:58] == b"\x01\x01" + sender + raw["nonce"]
    assert bindings.crypto_secretbox_open(raw["datagram"][58:], raw["nonce"], key) == raw["message"]


def check_link(vector: Vector) -> None:
    frame, body = bytes.fromhex(vector["frame"]), bytes.fromhex(vector["body"])
    assert frame == (len(body) + 1).to_bytes(4, "big") + bytes([vector["number"]]) + body


CHECKS = {
    "identifiers": check_identifier,
    "signed": check_signed,
    "unsigned": check_unsigned,
    "datagrams": check_datagram,
    "link": check_link,
}


def main() -> None:
    for name, check in CHECKS.items():
        vectors = load(name)
        for vector in vectors:
            check(vector)
        print(f"{name}: {len(vectors)} vectors hold")


if __name__ == "__main__":
    main()
