"""Boxed datagrams between sender, receiver and mallory: each opens for its receiver alone, in its mesh, one way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.crypto.box import Boxes
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.wire import limits
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, fault_of, mutations

NONCE = bytes(24)
SECRET = b"s" * 32
SEALED = Boxes(ALICE, NETWORK).seal(BOB.node, NONCE, b"hello")
CODES = {"datagram-size", "unknown-version", "bad-key", "not-opened"}


def receive(datagram: bytes, key: NodeKey = BOB, network: bytes = NETWORK, secret: bytes = b"") -> tuple[bytes, bytes]:
    return Boxes(key, network, secret).open(datagram)


@given(st.binary(max_size=limits.DATAGRAM_BODY_BYTES_MAX), st.binary(min_size=24, max_size=24))
def test_the_receiver_reads_what_the_sender_sealed_and_knows_the_sender(message: bytes, nonce: bytes) -> None:
    assert receive(Boxes(ALICE, NETWORK).seal(BOB.node, nonce, message)) == (ALICE.node, message)


def test_the_largest_message_fills_a_datagram() -> None:
    sealed = Boxes(ALICE, NETWORK).seal(BOB.node, NONCE, bytes(limits.DATAGRAM_BODY_BYTES_MAX))
    assert len(sealed) == limits.DATAGRAM_BYTES_MAX
    with pytest.raises(AssertionError, match="fit"):
        Boxes(ALICE, NETWORK).seal(BOB.node, NONCE, bytes(limits.DATAGRAM_BODY_BYTES_MAX + 1))


def test_nobody_but_the_receiver_can_read_it() -> None:
    assert fault_of(receive, SEALED, MALLORY) == "not-opened"


def test_mallory_cannot_send_in_the_name_of_another() -> None:
    hers = Boxes(MALLORY, NETWORK).seal(BOB.node, NONCE, b"hello")
    assert fault_of(receive, hers[:2] + ALICE.node + hers[34:]) == "not-opened"


def test_mallory_cannot_pass_on_what_another_sent_as_her_own() -> None:
    assert fault_of(receive, SEALED[:2] + MALLORY.node + SEALED[34:]) == "not-opened"


def test_a_datagram_thrown_back_at_its_sender_does_not_open() -> None:
    """Both directions have keys of their own, so a reflection proves nothing."""
    assert fault_of(receive, SEALED[:2] + BOB.node + SEALED[34:], ALICE) == "not-opened"


def test_a_datagram_of_another_mesh_does_not_open() -> None:
    assert fault_of(receive, SEALED, BOB, OTHER_NETWORK) == "not-opened"


def test_a_private_mesh_and_an_outsider_do_not_hear_each_other() -> None:
    private = Boxes(ALICE, NETWORK, SECRET).seal(BOB.node, NONCE, b"hello")
    assert receive(private, secret=SECRET) == (ALICE.node, b"hello")
    assert fault_of(receive, private) == "not-opened"
    assert fault_of(receive, SEALED, BOB, NETWORK, SECRET) == "not-opened"


@pytest.mark.parametrize("head", [b"\x00\x01", b"\x02\x01", b"\x01\x00", b"\x01\x02"])
def test_another_version_or_kind_is_refused_by_name(head: bytes) -> None:
    assert fault_of(receive, head + SEALED[2:]) == "unknown-version"


@pytest.mark.parametrize("size", [0, 1, 73, limits.DATAGRAM_BYTES_MAX + 1])
def test_a_datagram_of_an_impossible_size_is_refused(size: int) -> None:
    assert fault_of(receive, (SEALED + bytes(2_000))[:size]) == "datagram-size"


@pytest.mark.parametrize("key", [bytes(32), (1).to_bytes(32, "little"), b"\xff" * 32], ids=bytes.hex)
def test_a_key_of_small_order_is_no_peer(key: bytes) -> None:
    """With such a key everyone would share the same secret."""
    assert fault_of(receive, SEALED[:2] + key + SEALED[34:]) == "bad-key"
    assert fault_of(Boxes(ALICE, NETWORK).seal, key, NONCE, b"hello") == "bad-key"


@given(mutations(SEALED))
def test_no_mutation_of_a_datagram_opens(raw: bytes) -> None:
    if raw != SEALED:
        assert fault_of(receive, raw) in CODES


@given(st.binary(max_size=200))
def test_random_bytes_never_open(raw: bytes) -> None:
    assert fault_of(receive, raw) in CODES


def test_garbage_under_many_names_leaves_no_keys_behind() -> None:
    boxes = Boxes(BOB, NETWORK)
    boxes.open(SEALED)
    for number in range(20):
        stranger = NodeKey(bytes([number + 10]) * 32).node
        assert fault_of(boxes.open, SEALED[:2] + stranger + SEALED[34:]) == "not-opened"
    assert list(boxes._keys) == [ALICE.node]
