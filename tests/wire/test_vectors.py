"""The vectors of the wire hold twice: read by our codec, and by msgpack and PyNaCl alone."""

import ast
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.wire import codec, frames, ids
from tests.vectors import check, make
from tests.wire.samples import fault_of

TYPES = {
    type(body).__name__: type(body) for body in [*make.UNSIGNED.values(), *(body for _, body in make.SIGNED.values())]
}


def vectors(name: str) -> Any:
    return pytest.mark.parametrize(
        "vector", check.load(name), ids=lambda vector: vector.get("name") or vector.get("why")
    )


def test_the_stored_vectors_are_those_the_code_makes_today() -> None:
    assert make.build() == {name: check.load(name) for name in make.build()}


@vectors("signed")
def test_our_codec_opens_and_seals_the_signed_vectors(vector: check.Vector) -> None:
    raw = bytes.fromhex(vector["frame"])
    frame = frames.parse(raw)
    body = envelope.open_frame(frame, ids.network_id(vector["mesh"]), frame.kind, TYPES[vector["type"]])
    assert codec.encode(body) == frame.body
    assert frame.kind.name.lower() == vector["kind"]


@vectors("unsigned")
def test_our_codec_reads_and_writes_the_unsigned_vectors(vector: check.Vector) -> None:
    value = codec.decode(bytes.fromhex(vector["bytes"]), TYPES[vector["type"]])
    assert codec.encode(value).hex() == vector["bytes"]


@vectors("refused")
def test_our_codec_refuses_with_the_code_of_the_vector(vector: check.Vector) -> None:
    def receive() -> None:
        envelope.check(frames.parse(bytes.fromhex(vector["frame"])), ids.network_id(vector["mesh"]))

    assert fault_of(receive) == vector["code"]


@pytest.mark.parametrize("name", check.CHECKS)
def test_msgpack_and_pynacl_alone_agree(name: str) -> None:
    stored = check.load(name)
    assert stored
    for vector in stored:
        check.CHECKS[name](vector)


def test_the_second_check_uses_nothing_of_ours() -> None:
    nodes = list(ast.walk(ast.parse(Path(check.__file__).read_text())))
    plain = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    members = {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    assert plain | members == {"base64", "hashlib", "json", "pathlib", "typing", "msgpack", "nacl"}
