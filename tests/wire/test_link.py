"""The first frame of a link: strict, bounded, open to newer minor versions."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec
from ioa_p2p.wire.link import VERSION, Hello, LinkKind
from tests.wire.samples import NETWORK, fault_of

HELLO = Hello(
    VERSION, NETWORK, 1_800_000_000_000, "ioa-p2p 0.1.0", ("relay",), ("/ip4/127.0.0.1/tcp/1",), "127.0.0.1:1"
)


def test_a_hello_survives_the_wire() -> None:
    assert codec.decode(codec.encode(HELLO), Hello) == HELLO


def test_a_hello_needs_only_version_network_and_boot() -> None:
    assert codec.decode(codec.encode((VERSION, NETWORK, 7)), Hello) == Hello(VERSION, NETWORK, 7)


def test_a_newer_hello_is_read_without_what_is_new() -> None:
    assert codec.decode(codec.encode((*msgspec.structs.astuple(HELLO), "new")), Hello) == HELLO


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 256},
        {"version": "1"},
        {"network": bytes(15)},
        {"boot": -1},
        {"software": "x" * 49},
        {"software": "ioa\x1b[2J"},
        {"features": ("x",) * 17},
        {"addresses": ("x",) * 5},
        {"endpoint": "x" * 65},
        {"certificate": bytes(257)},
    ],
    ids=str,
)
def test_a_hello_with_one_wrong_field_is_undecodable(wrong: dict[str, Any]) -> None:
    with pytest.raises(PeerError, match="Expected"):
        codec.decode(codec.encode(msgspec.structs.replace(HELLO, **wrong)), Hello)


@given(st.binary(max_size=120))
def test_random_bytes_are_a_hello_or_undecodable(data: bytes) -> None:
    assert fault_of(codec.decode, data, Hello) in {"undecodable", None}


def test_kinds_of_link_frames_keep_their_numbers() -> None:
    """A number is a promise to every node that runs; new kinds go to the end."""
    assert [kind.name for kind in sorted(LinkKind)][:9] == (
        ["HELLO", "PING", "PONG", "DATAGRAM", "SIGNED", "CHANNEL", "DECISION", "TEAM", "DIRECTORY"]
    )
    assert sorted(LinkKind)[:9] == list(range(1, 10))
