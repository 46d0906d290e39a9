"""Blobs: pieces checked as they come, members that fail, links that break, restarts."""

import random

import pytest

from ioa_p2p.effects import Effect, Emit, Now, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip import blobs
from ioa_p2p.gossip.commands import CloseChannel, DropBlob, GetBlob, LinkPeer, PutBlob, PutManifest, PutPiece
from ioa_p2p.gossip.events import BlobHave, BlobKept, BlobMissing
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.gossip import BlobNone, BlobPiece, BlobWant, Manifest
from ioa_p2p.wire.ids import blake
from tests.gossip.team import NODES, NOW, TEAM, Member, events, opened, pump, sends

CHUNK = limits.BLOB_CHUNK_BYTES
DATA = b"".join(number.to_bytes(4) for number in range(CHUNK))  # four chunks
NAME = blobs.name_of(DATA)
SMALL = b"a small one"


def later(seconds: float) -> Now:
    return Now(NOW.wall, NOW.boot + seconds)


def read(member: Member, name: bytes = NAME) -> bytes | None:
    return blobs.read(member._rows, name)


def wanted(effects: list[Effect], of: int) -> list[int]:
    """Pieces asked of a member."""
    return [message.piece for message in sends(effects, NODES[of]) if isinstance(message, BlobWant)]


def source(effects: list[Effect]) -> int:
    """The one member that is asked."""
    [node] = {effect.to for effect in effects if isinstance(effect, Send)}
    return NODES.index(node)


def manifest_of(data: bytes) -> bytes:
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    return codec.encode(Manifest(len(data), tuple(blake(chunk) for chunk in chunks)))


def piece(number: int, data: bytes = DATA) -> BlobPiece:
    body = manifest_of(data) if number < 0 else data[number * CHUNK : (number + 1) * CHUNK]
    return BlobPiece(TEAM, blobs.name_of(data), number, body)


def fetching(pieces: int = 0, members: int = 2) -> tuple[Member, list[Effect]]:
    """A member that has got the manifest and so many chunks of DATA; and its last effects."""
    member = opened(0, members)
    effects = member.do(GetBlob(TEAM, NAME))
    for number in range(-1, pieces):
        effects = member.hear(NODES[source(effects)] if number < 0 else NODES[1], piece(number))
    return member, effects


def test_a_blob_is_named_by_the_hash_of_its_manifest() -> None:
    assert blake(manifest_of(DATA)) == NAME
    assert blobs.name_of(b"") == blake(codec.encode(Manifest(0, ())))


def test_putting_saves_the_manifest_and_every_chunk_and_tells() -> None:
    member = opened(0)
    name = blobs.name_of(SMALL)
    assert member.do(PutBlob(SMALL)) == [
        Save(f"blob/{name.hex()}/-1", b"", manifest_of(SMALL)),
        Save(f"blob/{name.hex()}/0", b"", SMALL),
        Save("blobs", name, len(SMALL).to_bytes(8)),
        Emit(BlobHave(name, len(SMALL))),
    ]
    assert member.do(PutBlob(SMALL)) == [Emit(BlobHave(name, len(SMALL)))]
    assert read(member, name) == SMALL


@pytest.mark.parametrize("data", [b"", b"x", DATA[:CHUNK], DATA[: CHUNK + 1], DATA, bytes(20 * CHUNK)])
def test_a_blob_is_fetched_whole(data: bytes) -> None:
    giver, taker = opened(1, 2), opened(0, 2)
    name = blobs.name_of(data)
    giver.do(PutBlob(data))
    heard = pump([giver, taker], {taker.node: taker.do(GetBlob(TEAM, name))})
    assert heard == [(taker.node, BlobHave(name, len(data)))]
    assert read(taker, name) == data
    assert taker.do(GetBlob(TEAM, name)) == [Emit(BlobHave(name, len(data)))]


def test_the_largest_blob_fits_and_a_larger_one_is_refused() -> None:
    member, largest = opened(0), bytes(limits.BLOB_BYTES_MAX)
    assert events(member.do(PutBlob(largest))) == [BlobHave(blobs.name_of(largest), len(largest))]
    with pytest.raises(UsageError, match="67108865 bytes"):
        member.do(PutBlob(largest + b"x"))


def test_the_manifest_is_asked_first_then_four_chunks_at_a_time() -> None:
    member = opened(0, 2)
    data = bytes(10 * CHUNK)
    effects = member.do(GetBlob(TEAM, blobs.name_of(data)))
    assert effects == [
        Send(NODES[1], BlobWant(TEAM, blobs.name_of(data), -1)),
        SetTimer("blobs", NOW.boot + limits.BLOB_ANSWER_S),
    ]
    assert wanted(member.hear(NODES[1], piece(-1, data)), 1) == list(range(limits.BLOB_PIECES_AT_ONCE))
    assert wanted(member.hear(NODES[1], piece(0, data)), 1) == [4]
    assert member.do(GetBlob(TEAM, blobs.name_of(data))) == []


@pytest.mark.parametrize("number", [-1, 0, 3])
def test_a_piece_that_does_not_match_its_hash_is_refused_and_changes_nothing(number: int) -> None:
    member = opened(0, 2)
    member.do(GetBlob(TEAM, NAME))
    if number >= 0:
        member.hear(NODES[1], piece(-1))
    rows = member.disk.spaces()
    wrong = BlobPiece(TEAM, NAME, number, piece(number).data[:-1] + b"?")
    with pytest.raises(PeerError) as refused:
        member.hear(NODES[1], wrong)
    assert (refused.value.code, member.disk.spaces()) == ("bad-blob-piece", rows)
    assert isinstance(member.hear(NODES[1], piece(number))[0], Save)


def test_a_manifest_whose_numbers_do_not_fit_is_refused() -> None:
    lie = codec.encode(Manifest(CHUNK + 1, (bytes(32),)))
    member = opened(0, 2)
    member.do(GetBlob(TEAM, blake(lie)))
    with pytest.raises(PeerError, match="does not match"):
        member.hear(NODES[1], BlobPiece(TEAM, blake(lie), -1, lie))


def test_pieces_nobody_asked_for_are_dropped() -> None:
    member, _ = fetching(1)
    assert member.hear(NODES[1], piece(0)) == []
    assert member.hear(NODES[1], BlobPiece(TEAM, NAME, 99, b"")) == []
    assert member.hear(NODES[1], BlobPiece(TEAM, bytes(32), 0, b"")) == []
    assert opened(2).hear(NODES[1], piece(-1)) == []


def test_a_member_without_it_says_so_and_the_next_is_asked() -> None:
    member = opened(0, 3)
    first = source(member.do(GetBlob(TEAM, NAME)))
    other = 3 - first
    assert member.hear(NODES[other], BlobNone(TEAM, NAME)) == []
    assert wanted(member.hear(NODES[first], BlobNone(TEAM, NAME)), other) == [-1]
    assert events(member.hear(NODES[other], BlobNone(TEAM, NAME))) == [BlobMissing(NAME)]


def test_a_silent_member_is_left_for_another_that_gets_what_is_still_missing() -> None:
    member, effects = fetching(members=3)
    asked = [wanted(effects, one) for one in (1, 2)]
    assert sorted(map(len, asked)) == [2, 2]
    for number in asked[0]:
        member.hear(NODES[1], piece(number), later(1.0))
    effects = member.time("blobs", later(limits.BLOB_ANSWER_S))
    assert (source(effects), wanted(effects, 1)) == (1, asked[1])


def test_when_nobody_answers_for_half_a_minute_the_blob_is_missing() -> None:
    member, _ = fetching(1)
    told = [
        (second, event)
        for second in range(int(limits.BLOB_GIVE_UP_S) + 1)
        for event in events(member.time("blobs", later(second)))
    ]
    assert told == [(limits.BLOB_GIVE_UP_S, BlobMissing(NAME))]
    assert member.time("blobs", later(100)) == []


def test_a_lost_link_costs_only_what_was_under_way() -> None:
    member, _ = fetching(2)
    assert wanted(member.do(LinkPeer(NODES[1], False)), 1) == []
    assert wanted(member.do(LinkPeer(NODES[1], True)), 1) == [2, 3]
    for number in (2, 3):
        effects = member.hear(NODES[1], piece(number))
    assert events(effects) == [BlobHave(NAME, len(DATA))]
    assert read(member) == DATA


def test_a_restart_goes_on_with_the_pieces_on_disk() -> None:
    member, _ = fetching(2)
    again = member.restarted()
    assert read(again) is None
    again.do(LinkPeer(NODES[1], True))
    assert wanted(again.do(GetBlob(TEAM, NAME)), 1) == [2, 3]


def test_a_damaged_piece_on_disk_is_fetched_again() -> None:
    member, _ = fetching(2)
    member.disk.commit([Save(f"blob/{NAME.hex()}/1", b"", b"damaged")])
    again = member.restarted()
    again.do(LinkPeer(NODES[1], True))
    assert wanted(again.do(GetBlob(TEAM, NAME)), 1) == [1, 2, 3]


def test_several_members_share_a_blob_and_each_piece_is_asked_of_one() -> None:
    data = bytes(20 * CHUNK)
    member = opened(0, 6)
    effects = member.do(GetBlob(TEAM, blobs.name_of(data)))
    effects = member.hear(NODES[source(effects)], piece(-1, data))
    asked = [wanted(effects, one) for one in range(1, 6)]
    assert sorted(map(len, asked)) == [0] + [limits.BLOB_PIECES_AT_ONCE] * limits.BLOB_SOURCES_MAX
    assert sorted(number for one in asked for number in one) == list(range(16))
    first = next(one for one in range(1, 6) if asked[one - 1])
    assert wanted(member.hear(NODES[first], piece(asked[first - 1][0], data)), first) == [16]


def test_a_member_that_goes_leaves_its_pieces_to_the_others() -> None:
    member, effects = fetching(members=3)
    asked = [wanted(effects, one) for one in (1, 2)]
    assert wanted(member.do(LinkPeer(NODES[1], False)), 2) == asked[0]


def put_in_pieces(member: Member, data: bytes) -> tuple[bytes, list[Effect]]:
    manifest = codec.decode(manifest_of(data), Manifest)
    effects = member.do(PutManifest(manifest))
    name = blake(codec.encode(manifest))
    for number, chunk in enumerate(blobs.cut(data)):
        effects += member.do(PutPiece(name, number, chunk))
    return name, effects


@pytest.mark.parametrize("data", [b"", SMALL, DATA])
def test_a_blob_put_in_pieces_is_the_same_as_one_put_at_once(data: bytes) -> None:
    member = opened(0)
    name, effects = put_in_pieces(member, data)
    assert name == blobs.name_of(data)
    assert BlobHave(name, len(data)) in events(effects)
    assert [event.piece for event in events(effects, BlobKept)] == list(range(-(-len(data) // CHUNK)))
    assert b"".join(blobs.chunks(member._rows, name)) == data
    assert member.restarted().do(GetBlob(TEAM, name)) == [Emit(BlobHave(name, len(data)))]
    assert put_in_pieces(member, data)[1][0] == Emit(BlobHave(name, len(data)))


def test_a_file_that_changes_while_it_is_put_is_refused() -> None:
    member = opened(0)
    manifest = codec.decode(manifest_of(DATA), Manifest)
    member.do(PutManifest(manifest))
    with pytest.raises(UsageError, match="does not match") as refused:
        member.do(PutPiece(NAME, 0, DATA[1 : CHUNK + 1]))
    assert refused.value.code == "file-changed"
    assert member.hear(NODES[1], BlobWant(TEAM, NAME, 0)) == [Send(NODES[1], BlobNone(TEAM, NAME))]


def test_what_is_damaged_on_disk_is_not_read() -> None:
    member = opened(0)
    member.do(PutBlob(DATA))
    member.disk.commit([Save(f"blob/{NAME.hex()}/2", b"", b"damaged")])
    with pytest.raises(PeerError, match="piece 2 is damaged"):
        list(blobs.chunks(member._rows, NAME))
    with pytest.raises(PeerError, match="not on this disk"):
        list(blobs.chunks(member._rows, blobs.name_of(SMALL)))


def test_a_full_store_takes_no_more_blobs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BLOBS_KEPT_BYTES_MAX", len(DATA))
    member = opened(0, 2)
    member.do(PutBlob(SMALL))
    for put in (PutBlob(DATA), PutManifest(codec.decode(manifest_of(DATA), Manifest))):
        with pytest.raises(UsageError, match="1 blobs are kept"):
            member.do(put)
    member.do(GetBlob(TEAM, NAME))
    assert member.hear(NODES[1], piece(-1)) == [Emit(BlobMissing(NAME))]
    member.do(DropBlob(blobs.name_of(SMALL)))
    assert put_in_pieces(member, DATA)[0] == NAME


def test_parts_that_nobody_went_on_with_for_a_day_are_deleted() -> None:
    member, _ = fetching(2)
    day = Now(NOW.wall + limits.BLOB_PART_S, NOW.boot)
    assert [one for one in member.time("blob-parts", day) if isinstance(one, Save)] == []  # it is still being fetched
    again = member.restarted(Now(NOW.wall + limits.BLOB_PART_S - 1, NOW.boot))
    assert again.disk.spaces("blob")
    assert SetTimer("blob-parts", NOW.boot + limits.BLOB_CLEAN_S) in again.effects
    again.time("blob-parts", day)
    assert again.disk.spaces("blob") == []


def test_of_too_many_parts_the_oldest_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BLOB_PARTS_MAX", 2)
    member = opened(0, 2)
    data = [bytes([number]) * (CHUNK + 1) for number in range(3)]
    for second, one in enumerate(data):
        member.do(GetBlob(TEAM, blobs.name_of(one)))
        member.hear(NODES[1], piece(-1, one), Now(NOW.wall + second, NOW.boot))
    left = member.restarted().disk.spaces("blob/")
    assert left == sorted(f"blob/{blobs.name_of(one).hex()}/-1" for one in data[1:])


def test_only_whole_blobs_are_served() -> None:
    member, _ = fetching(2)
    none = [Send(NODES[1], BlobNone(TEAM, NAME))]
    assert member.hear(NODES[1], BlobWant(TEAM, NAME, 0)) == none
    for number in (2, 3):
        member.hear(NODES[1], piece(number))
    assert member.hear(NODES[1], BlobWant(TEAM, NAME, 3)) == [Send(NODES[1], piece(3))]
    assert member.hear(NODES[1], BlobWant(TEAM, NAME, 4)) == none


def test_four_blobs_are_fetched_at_once_and_the_fifth_when_one_is_done() -> None:
    member = opened(0, 2)
    data = [b"%d" % number for number in range(6)]
    asked = [wanted(member.do(GetBlob(TEAM, blobs.name_of(one))), 1) for one in data]
    assert asked == [[-1]] * limits.BLOB_FETCHES_MAX + [[], []]
    member.hear(NODES[1], piece(-1, data[0]))
    effects = member.hear(NODES[1], piece(0, data[0]))
    assert sends(effects) == [BlobWant(TEAM, blobs.name_of(data[4]), -1)]


def test_a_fetch_that_waited_its_turn_gets_its_whole_time() -> None:
    member = opened(0, 2)
    data = [b"%d" % number for number in range(5)]
    for one in data:
        member.do(GetBlob(TEAM, blobs.name_of(one)))
    effects = member.time("blobs", later(limits.BLOB_GIVE_UP_S))
    assert events(effects) == [BlobMissing(blobs.name_of(one)) for one in data[:4]]
    assert sends(effects) == [BlobWant(TEAM, blobs.name_of(data[4]), -1)]
    member.do(LinkPeer(NODES[1], True), later(limits.BLOB_GIVE_UP_S + 1.0))
    assert events(member.time("blobs", later(2 * limits.BLOB_GIVE_UP_S - 0.1))) == []
    assert events(member.time("blobs", later(2 * limits.BLOB_GIVE_UP_S))) == [BlobMissing(blobs.name_of(data[4]))]


def test_a_member_that_comes_back_is_asked_again() -> None:
    member = opened(0, 3)
    first = source(member.do(GetBlob(TEAM, NAME)))
    member.do(LinkPeer(NODES[3 - first], False))
    assert sends(member.hear(NODES[first], BlobNone(TEAM, NAME))) == []
    assert wanted(member.do(LinkPeer(NODES[first], True)), first) == [-1]


def test_a_slow_member_is_asked_only_if_there_is_no_other() -> None:
    for seed in range(8):
        member = opened(0, 3)
        member.machine._blobs._rng = random.Random(seed)
        first = source(member.do(GetBlob(TEAM, NAME)))
        assert source(member.time("blobs", later(limits.BLOB_ANSWER_S))) == 3 - first


def test_a_blob_whose_pieces_are_all_on_disk_is_here_at_once() -> None:
    member = opened(0)
    member.do(PutBlob(DATA))
    member.disk.commit([Save("blobs", NAME, None)])
    assert member.restarted().do(GetBlob(TEAM, NAME)) == [
        Save("blobs", NAME, len(DATA).to_bytes(8)),
        Emit(BlobHave(NAME, len(DATA))),
    ]


def test_more_fetches_than_can_wait_are_refused() -> None:
    member = opened(0, 2)
    for number in range(limits.BLOB_FETCHES_MAX + limits.BLOB_FETCHES_WAITING_MAX):
        member.do(GetBlob(TEAM, blake(b"%d" % number)))
    with pytest.raises(UsageError, match="on their way"):
        member.do(GetBlob(TEAM, NAME))


def test_a_closed_channel_ends_its_fetches() -> None:
    member, _ = fetching(1)
    member.do(CloseChannel(TEAM))
    assert events(member.time("blobs", later(1.0))) == [BlobMissing(NAME)]


def test_a_dropped_blob_leaves_nothing_on_disk() -> None:
    member = opened(0)
    member.do(PutBlob(DATA))
    member.do(DropBlob(NAME))
    assert member.disk.spaces("blob") == []
    assert member.hear(NODES[1], BlobWant(TEAM, NAME, 0)) == [Send(NODES[1], BlobNone(TEAM, NAME))]
    half, _ = fetching(2)
    half.do(DropBlob(NAME))
    assert half.disk.spaces("blob") == []
