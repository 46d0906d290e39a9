"""Ed25519 as a node uses it: deterministic, secret in prints, strict against garbage keys and signatures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.crypto.keys import NodeKey, verify
from tests.wire.samples import ALICE, MALLORY, fault_of

ORDER = 2**252 + 27742317777372353535851937790883648493  # of the Ed25519 group (RFC 8032, 5.1)

# Points of order 1, 2, 4 and 8, and encodings of y >= p: with such a key, one signature fits many messages.
SMALL_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    (2**255 - 20).to_bytes(32, "little"),  # y = -1
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    (2**255 - 19).to_bytes(32, "little"),  # y = p, not canonical
    (2**255 - 18).to_bytes(32, "little"),  # y = p + 1
    b"\xff" * 32,
]


def test_the_test_vector_of_rfc_8032_holds() -> None:
    """Section 7.1, TEST 2."""
    key = NodeKey(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    assert key.node.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert key.sign(b"\x72").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=100))
def test_what_a_key_signs_verifies_under_it_alone(seed: bytes, data: bytes) -> None:
    key = NodeKey(seed)
    signature = key.sign(data)
    verify(key.node, data, signature)
    assert signature == NodeKey(seed).sign(data)
    assert fault_of(verify, MALLORY.node, data, signature) == "bad-signature"
    assert fault_of(verify, key.node, data + b"\x00", signature) == "bad-signature"


@pytest.mark.parametrize("bit", range(0, 512, 37))
def test_one_flipped_bit_of_a_signature_is_noticed(bit: int) -> None:
    signature = bytearray(ALICE.sign(b"text"))
    signature[bit // 8] ^= 1 << bit % 8
    assert fault_of(verify, ALICE.node, b"text", bytes(signature)) == "bad-signature"


def test_a_signature_cannot_be_rewritten_into_a_second_valid_one() -> None:
    """s + order solves the same equation; a strict verifier refuses it (malleability)."""
    signature = ALICE.sign(b"text")
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    assert fault_of(verify, ALICE.node, b"text", signature[:32] + scalar.to_bytes(32, "little")) == "bad-signature"


@pytest.mark.parametrize("key", SMALL_ORDER, ids=bytes.hex)
def test_a_key_of_small_order_signs_nothing(key: bytes) -> None:
    """For such keys the all-zero scalar with R = identity would satisfy a lax verifier for some or all texts."""
    for point in SMALL_ORDER:
        for text in (b"", b"one", b"other"):
            assert fault_of(verify, key, text, point + bytes(32)) == "bad-signature"


@pytest.mark.parametrize(("key", "signature"), [(b"", bytes(64)), (bytes(31), bytes(64)), (bytes(33), bytes(64))])
def test_a_key_of_another_length_is_a_bad_signature(key: bytes, signature: bytes) -> None:
    assert fault_of(verify, key, b"text", signature) == "bad-signature"


@given(st.binary(max_size=70))
def test_random_signatures_are_bad(signature: bytes) -> None:
    assert fault_of(verify, ALICE.node, b"text", signature) == "bad-signature"


def test_a_key_never_shows_its_seed() -> None:
    key = NodeKey(b"s" * 32)
    assert "ssss" not in repr(key)
    assert b"s" * 32 not in repr(key).encode("latin-1")


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_seed_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32"):
        NodeKey(bytes(size))
