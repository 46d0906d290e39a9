"""The DHT's messages: all fit a datagram, none gives a forged address more than three times what it sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.crypto.box import NONCE_BYTES, Boxes
from ioa_p2p.errors import UsageError
from ioa_p2p.wire import codec, dht, ids, limits
from tests.wire.samples import ALICE, BOB, NETWORK, fault_of

ID = 0xFFFFFFFF
KEY = bytes(limits.DHT_ID_BYTES)
TOKEN = bytes(limits.DHT_TOKEN_BYTES)
CURSOR = bytes(limits.POINTERS_CURSOR_BYTES)
V6_CONTACT = ALICE.node + bytes(range(1, 19))
RECORD = bytes(limits.RECORD_FRAME_BYTES_MAX)
POINTER = bytes(limits.FRAME_HEADER_BYTES + limits.POINTER_BODY_BYTES_MAX + limits.SIGNATURE_BYTES)

LARGEST: list[Any] = [
    dht.Ping(ID, True),
    dht.Pong(ID, True, TOKEN, bytes(18)),
    dht.FindNode(ID, True, KEY),
    dht.FindRecord(ID, True, KEY),
    dht.FindPointers(ID, True, KEY, CURSOR, bytes(64)),
    dht.Found(ID, True, TOKEN, (RECORD,)),
    dht.Found(ID, True, TOKEN, (), (V6_CONTACT,) * limits.DHT_CONTACTS_MAX),
    dht.Found(ID, True, TOKEN, (POINTER,) * 4, (), CURSOR, True, bytes(16)),
    dht.Store(ID, True, TOKEN, RECORD),
    dht.Stored(ID, True, 255, True),
    dht.Have(ID, True, bytes(8 * limits.HAVE_MAX)),
    dht.Had(ID, True, TOKEN, bytes(limits.HAVE_MAX)),
    dht.DialBack(ID, True),
    dht.Introduce(ID, True, V6_CONTACT),
]
PADDED = (dht.FindNode, dht.FindRecord, dht.FindPointers)


def sealed_bytes(message: Any) -> int:
    return len(Boxes(ALICE, NETWORK).seal(BOB.node, bytes(NONCE_BYTES), codec.encode(message)))


PING_BYTES = sealed_bytes(LARGEST[0])


@pytest.mark.parametrize("message", LARGEST, ids=lambda message: type(message).__name__)
def test_the_largest_of_each_message_fits_a_datagram_and_comes_back(message: Any):
    assert codec.decode(codec.encode(message), dht.Datagram) == message
    assert sealed_bytes(message) <= limits.DATAGRAM_BYTES_MAX


@pytest.mark.parametrize(
    ("smallest", "largest_answer_bytes"),
    [
        (dht.Ping(0, False), sealed_bytes(LARGEST[1])),
        (dht.Store(0, False, TOKEN, b""), sealed_bytes(LARGEST[9])),
        (dht.Have(0, False, b""), sealed_bytes(dht.Had(ID, True, TOKEN, b""))),
        (dht.Have(0, False, bytes(8)), sealed_bytes(dht.Had(ID, True, TOKEN, b"\x01"))),
        (dht.DialBack(0, False), sealed_bytes(LARGEST[13])),
        (dht.Introduce(0, False, V6_CONTACT), sealed_bytes(LARGEST[0])),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else "",
)
def test_no_request_is_answered_with_more_than_three_times_its_size(smallest: Any, largest_answer_bytes: int):
    """Nor with the Ping by which whoever was asked looks whether the asker is one for its table."""
    assert largest_answer_bytes + PING_BYTES <= 3 * sealed_bytes(smallest)


@pytest.mark.parametrize("kind", PADDED)
def test_a_request_for_much_is_padded_to_a_third_of_all_that_it_may_bring_upon_its_address(kind: Any):
    assert limits.DATAGRAM_BYTES_MAX + PING_BYTES <= 3 * limits.DATAGRAM_PADDED_BYTES_MIN
    assert sealed_bytes(kind(0, False, KEY)) >= limits.DATAGRAM_PADDED_BYTES_MIN


def test_a_request_for_much_without_its_padding_is_refused():
    bare = codec.encode([3, 0, False, KEY, b""])
    assert fault_of(codec.decode, bare, dht.Datagram) == "undecodable"


@pytest.mark.parametrize(
    "fields",
    [
        [2, 0, False, TOKEN[:7], bytes(6)],
        [6, 0, False, TOKEN, [bytes(limits.RECORD_FRAME_BYTES_MAX + 1)]],
        [6, 0, False, TOKEN, [], [bytes(37)]],
        [6, 0, False, TOKEN, [], [bytes(38)] * 17],
        [9, 0, False, bytes(8 * limits.HAVE_MAX + 1)],
        [1, 1 << 32, False],
        [99, 0, False],
        [],
    ],
)
def test_a_message_out_of_bounds_is_refused(fields: list[Any]):
    assert fault_of(codec.decode, codec.encode(fields), dht.Datagram) == "undecodable"


@given(st.binary(max_size=1_200))
def test_random_bytes_raise_nothing_but_a_peers_fault(data: bytes):
    assert fault_of(codec.decode, data, dht.Datagram) in ("undecodable", None)
    assert fault_of(codec.decode, data, dht.Directory) in ("undecodable", None)


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7", "2001:db8::1", "::1"])
def test_a_contact_packs_and_unpacks(host: str):
    contact = dht.Contact(ALICE.node, host, 4001)
    assert dht.unpack_contact(dht.pack_contact(contact)) == contact


@pytest.mark.parametrize(
    "packed",
    [
        bytes(4) + b"\x10\x00",
        b"\xe0\0\0\x01\x10\x00",
        b"\x7f\0\0\x01\0\0",
        bytes(7),
        b"",
        bytes(16) + b"\x10\x00",
        bytes(10) + b"\xff\xff\x5d\xb8\xd8\x22\x10\x00",
    ],
    ids=["unspecified", "multicast", "port 0", "odd size", "empty", "unspecified v6", "v4 as v6"],
)
def test_an_endpoint_that_nobody_can_be_sent_to_is_refused(packed: bytes):
    assert fault_of(dht.unpack_endpoint, packed) == "bad-endpoint"


@pytest.mark.parametrize("host", ["127.0.0.1", "seed.example.org", "2001:db8::1"])
def test_a_seed_is_read_as_it_is_written(host: str):
    seed = dht.Contact(ALICE.node, host, 4001)
    assert dht.parse_seed(f" {seed}\n") == seed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:4001",
        f"{ids.node_text(ALICE.node)}@127.0.0.1",
        f"{ids.node_text(ALICE.node)}@:4001",
        f"{ids.node_text(ALICE.node)}@127.0.0.1:0",
        f"{ids.node_text(ALICE.node)}@127.0.0.1:65536",
        f"{ids.node_text(ALICE.node)}@127.0.0.1:x",
        "short@127.0.0.1:4001",
    ],
)
def test_a_seed_written_wrongly_is_the_users_fault_with_a_hint(text: str):
    with pytest.raises(UsageError) as refused:
        dht.parse_seed(text)
    assert refused.value.hint


def test_a_name_is_not_packed():
    with pytest.raises(UsageError, match="not a literal"):
        dht.pack_endpoint("seed.example.org", 4001)
