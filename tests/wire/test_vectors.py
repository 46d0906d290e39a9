"""The vectors of the wire hold twice: read by our codec, and by msgpack and PyNaCl alone. Mutated, they do no harm."""

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.box import Boxes
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.wire import codec, decision, dht, frames, gossip, ids, step, team, transcript
from tests.test_docs import TYPES
from tests.vectors import check, make
from tests.wire.samples import fault_of, mutations

UNIONS: tuple[Any, ...] = (
    dht.Datagram,
    dht.Directory,
    gossip.ChannelMessage,
    decision.DecisionMessage,
    team.TeamMessage,
    step.Step,
    transcript.Record,
)
UNSIGNED = {vector["type"]: bytes.fromhex(vector["bytes"]) for vector in check.load("unsigned")}


def vectors(name: str) -> Any:
    return pytest.mark.parametrize("vector", check.load(name), ids=name_of)


def name_of(vector: check.Vector) -> str:
    return str(vector.get("name") or vector.get("why") or vector["type"])


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


@pytest.mark.parametrize("union", UNIONS, ids=str)
def test_every_message_of_a_union_has_a_vector_and_is_told_from_the_others(union: Any) -> None:
    names = {kind: name for name, kind in TYPES.items()}
    for kind in union.__args__:
        assert type(codec.decode(UNSIGNED[names[kind]], union)) is kind


@pytest.mark.parametrize("kind", UNSIGNED)
@settings(max_examples=30)
@given(data=st.data())
def test_a_mutated_message_is_read_or_undecodable(kind: str, data: st.DataObject) -> None:
    raw = data.draw(mutations(UNSIGNED[kind]))
    for wanted in (TYPES[kind], *UNIONS):
        assert fault_of(codec.decode, raw, wanted) in {"undecodable", None}


@settings(max_examples=300)
@given(st.sampled_from(UNIONS), st.binary(max_size=100))
def test_random_bytes_are_no_message_or_undecodable(union: Any, raw: bytes) -> None:
    assert fault_of(codec.decode, raw, union) in {"undecodable", None}


@pytest.mark.parametrize("vector", check.load("datagrams"))
def test_our_boxes_open_the_datagrams(vector: check.Vector) -> None:
    raw = {key: bytes.fromhex(text) for key, text in vector.items() if key != "mesh"}
    receiver = Boxes(NodeKey(raw["receiver"]), ids.network_id(vector["mesh"]), raw["secret"])
    assert receiver.open(raw["datagram"]) == (NodeKey(raw["sender"]).node, raw["message"])


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
