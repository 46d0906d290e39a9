"""The channel's messages on the wire: packed, split, bounded; bad bytes raise PeerError and nothing else."""

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, gossip, limits
from ioa_p2p.wire.gossip import (
    BlobNone,
    BlobPiece,
    BlobWant,
    Entries,
    Entry,
    Frontier,
    Head,
    Held,
    Manifest,
    Served,
    Want,
)
from ioa_p2p.wire.link import LinkKind
from tests.gossip.team import KEYS, NODES, TEAM, chain, opened

HASH = bytes(range(32))
MESSAGES = (
    Frontier(TEAM, (Head(NODES[0], 3, bytes(8), True), Head(NODES[1], 0, bytes(8), False)), b"head"),
    Want(TEAM, NODES[0], 1, 9),
    Held(TEAM, ((NODES[1], NODES[0], 7),)),
    BlobWant(TEAM, HASH, -1),
    BlobPiece(TEAM, HASH, 5, b"data"),
    BlobNone(TEAM, HASH),
    Served(TEAM, NODES[0], 1, 0),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_as_it_went(message: gossip.ChannelMessage) -> None:
    kind, body = gossip.pack(message)
    lane = LinkKind.BLOB if isinstance(message, BlobPiece) else LinkKind.CHANNEL
    assert (kind, gossip.unpack(body)) == (lane, message)


def test_entries_travel_as_they_are() -> None:
    [raw] = chain(KEYS[0], 1)
    assert gossip.pack(Entries(raw)) == (LinkKind.SIGNED, raw)
    assert gossip.is_entries(raw)
    assert not gossip.is_entries(raw[:1] + b"\x07" + raw[2:])


def test_the_largest_of_each_fits_its_frame() -> None:
    many = limits.CHAT_MEMBERS_MAX
    seen = ((bytes(32), (1 << 63) - 1),) * many
    body = bytes(limits.CHAT_BODY_BYTES_MAX)
    entry = Entry(bytes(32), TEAM, (1 << 32) - 1, 1 << 62, HASH, seen, "k" * 24, body, (1 << 40) - 1)
    assert len(codec.encode(entry)) <= limits.FRAME_BODY_BYTES_MAX
    head = Head(bytes(32), (1 << 63) - 1, bytes(8), True)
    largest = (
        Frontier(TEAM, (head,) * many, bytes(64)),
        Held(TEAM, ((bytes(32), bytes(32), 1 << 62),) * limits.CHAT_MARKS_MAX),
        BlobPiece(TEAM, HASH, limits.BLOB_CHUNKS_MAX - 1, bytes(limits.BLOB_CHUNK_BYTES)),
    )
    room = limits.LINK_FRAME_BYTES_MAX - limits.LINK_HEADER_BYTES
    assert max(len(gossip.pack(message)[1]) for message in largest) <= room
    manifest = Manifest(limits.BLOB_BYTES_MAX, (HASH,) * limits.BLOB_CHUNKS_MAX)
    assert len(codec.encode(manifest)) <= limits.BLOB_CHUNK_BYTES


def test_batches_hold_as_many_frames_as_fit_and_split_takes_them_apart() -> None:
    raws = [*chain(KEYS[0], 300), b"".join((b"\x01\x03\xff\xff", bytes(0xFFFF + 64)))]
    batches = list(gossip.batches(raws))
    assert [raw for batch in batches for raw in gossip.split(batch.raw)] == raws
    assert len(batches) == 2
    assert all(len(batch.raw) <= limits.CHAT_BATCH_BYTES_MAX for batch in batches)
    assert list(gossip.batches([])) == []


@pytest.mark.parametrize("size", [0, 1, 3, 67, 100])
def test_a_batch_that_ends_early_is_refused(size: int) -> None:
    with pytest.raises(PeerError, match=r"bytes|no entry"):
        list(gossip.split(chain(KEYS[0], 1)[0][:size]))


def test_a_newer_minor_version_may_append_fields() -> None:
    for message in MESSAGES:
        fields = codec.read_any(codec.encode(message))
        assert gossip.unpack(codec.encode([*fields, "a field of tomorrow"])) == message


@given(st.binary(max_size=400))
def test_random_bytes_raise_peer_errors_only(data: bytes) -> None:
    member = opened(0)
    for read in (gossip.unpack, lambda raw: list(gossip.split(raw)), lambda raw: member.hear(NODES[1], Entries(raw))):
        with contextlib.suppress(PeerError):
            read(data)


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_mutated_messages_and_entries_raise_peer_errors_only(seed: int, changes: int) -> None:
    dice, member = random.Random(seed), opened(0)
    for message in (*MESSAGES, Entries(b"".join(chain(KEYS[1], 3)))):
        kind, body = gossip.pack(message)
        mutated = bytearray(body)
        for _ in range(changes):
            mutated[dice.randrange(len(mutated))] = dice.randrange(256)
        cut = bytes(mutated[: dice.randint(1, len(mutated))])
        with contextlib.suppress(PeerError):
            member.hear(NODES[1], Entries(cut) if kind is LinkKind.SIGNED else gossip.unpack(cut))


def test_no_message_decodes_as_another() -> None:
    assert [type(gossip.unpack(gossip.pack(message)[1])) for message in MESSAGES] == [type(one) for one in MESSAGES]
    for message in MESSAGES:
        with pytest.raises(PeerError):
            codec.decode(codec.encode(message), Entry)
