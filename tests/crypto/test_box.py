"""Boxed datagrams: sender, receiver, and Mallory in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.crypto.box import NONCE_BYTES, Boxes
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.wire import limits
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, fault_of

NONCE = bytes(range(NONCE_BYTES))
SECRET = b"mesh secret of the epoch"


def sealed(message: bytes = b"hello") -> bytes:
    return Boxes(ALICE, NETWORK).seal(BOB.node, NONCE, message)


def test_what_is_sealed_opens_at_the_receiver_with_its_senders_key():
    assert Boxes(BOB, NETWORK).open(sealed()) == (ALICE.node, b"hello")


def test_a_datagram_has_version_kind_sender_and_nonce_before_the_box():
    datagram = sealed(b"")
    assert datagram[:58] == b"\x01\x01" + ALICE.node + NONCE
    assert len(datagram) == 74


@given(st.binary(max_size=limits.DATAGRAM_BODY_BYTES_MAX))
def test_every_message_that_fits_comes_back(message: bytes):
    datagram = sealed(message)
    assert len(datagram) <= limits.DATAGRAM_BYTES_MAX
    assert Boxes(BOB, NETWORK).open(datagram) == (ALICE.node, message)


def test_both_directions_of_a_pair_open():
    alice, bob = Boxes(ALICE, NETWORK), Boxes(BOB, NETWORK)
    assert alice.open(bob.seal(ALICE.node, NONCE, b"back")) == (BOB.node, b"back")
    assert bob.open(alice.seal(BOB.node, NONCE, b"forth")) == (ALICE.node, b"forth")


@pytest.mark.parametrize(
    "receiver",
    [Boxes(MALLORY, NETWORK), Boxes(BOB, OTHER_NETWORK), Boxes(BOB, NETWORK, SECRET)],
    ids=["not for her", "another mesh", "without the mesh secret"],
)
def test_nobody_else_opens_it(receiver: Boxes):
    assert fault_of(receiver.open, sealed()) == "not-opened"


def test_members_of_a_private_mesh_open_each_others_datagrams():
    datagram = Boxes(ALICE, NETWORK, SECRET).seal(BOB.node, NONCE, b"inside")
    assert Boxes(BOB, NETWORK, SECRET).open(datagram) == (ALICE.node, b"inside")


def test_mallory_cannot_send_in_alices_name():
    own = Boxes(MALLORY, NETWORK).seal(BOB.node, NONCE, b"I am Alice")
    assert fault_of(Boxes(BOB, NETWORK).open, own[:2] + ALICE.node + own[34:]) == "not-opened"


def test_a_datagram_thrown_back_at_its_sender_does_not_open_as_the_receivers():
    datagram = sealed()
    assert fault_of(Boxes(ALICE, NETWORK).open, datagram[:2] + BOB.node + datagram[34:]) == "not-opened"


@pytest.mark.parametrize("place", [34, 57, 58, 73, -1])
def test_a_flipped_bit_in_nonce_or_box_does_not_open(place: int):
    datagram = bytearray(sealed())
    datagram[place] ^= 1
    assert fault_of(Boxes(BOB, NETWORK).open, bytes(datagram)) == "not-opened"


@pytest.mark.parametrize(
    ("datagram", "code"),
    [
        (b"", "datagram-size"),
        (sealed()[:73], "datagram-size"),
        (bytes(limits.DATAGRAM_BYTES_MAX + 1), "datagram-size"),
        (b"\x02" + sealed()[1:], "unknown-version"),
        (b"\x01\x02" + sealed()[2:], "unknown-version"),
        (b"\x01\x01" + bytes(32) + sealed()[34:], "bad-key"),
        (b"\x01\x01" + b"\xff" * 32 + sealed()[34:], "bad-key"),
    ],
)
def test_garbage_has_a_code_each(datagram: bytes, code: str):
    assert fault_of(Boxes(BOB, NETWORK).open, datagram) == code


@given(st.binary(max_size=1_300))
def test_random_bytes_raise_nothing_but_a_peers_fault(data: bytes):
    assert fault_of(Boxes(BOB, NETWORK).open, data) is not None


def test_a_key_that_is_no_point_cannot_be_sealed_to():
    assert fault_of(Boxes(BOB, NETWORK).seal, b"\xff" * 32, NONCE, b"") == "bad-key"


def test_keys_of_strangers_that_proved_nothing_push_out_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "BOX_PEERS_MAX", 2)
    bob = Boxes(BOB, NETWORK)
    bob.open(sealed())
    agreed: list[bytes] = []
    agree = bob._agree
    monkeypatch.setattr(bob, "_agree", lambda peer: agreed.append(peer) or agree(peer))
    for number in range(10, 14):
        stranger = NodeKey(bytes([number]) * 32)
        assert fault_of(bob.open, b"\x01\x01" + stranger.node + sealed()[34:]) == "not-opened"
    agreed.clear()
    bob.open(sealed())
    assert agreed == []


def test_no_more_keys_are_kept_than_allowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "BOX_PEERS_MAX", 3)
    bob = Boxes(BOB, NETWORK)
    for number in range(10, 20):
        bob.seal(NodeKey(bytes([number]) * 32).node, NONCE, b"")
    assert len(bob._keys) == 3
