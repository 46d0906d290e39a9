"""One author's chain: judging, growing, forks, disk."""

from collections.abc import Sequence

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.gossip.log import Chain, Judgement
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.gossip import Entry
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, TEAM, chain, signed

AUTHOR = KEYS[0]


class Disk:
    """Rows as a machine gets them, and what was read."""

    def __init__(self) -> None:
        self.storage = MemoryStorage()
        self.read: list[str] = []

    def rows(self, space: str) -> Sequence[tuple[bytes, bytes]]:
        self.read.append(space)
        return list(self.storage.scan(space))

    def chain(self) -> Chain:
        return Chain(TEAM, AUTHOR.node, self.rows)


def entry_of(raw: bytes) -> Entry:
    return codec.decode(frames.parse(raw).body, Entry)


def grown(disk: Disk, raws: list[bytes]) -> Chain:
    grown = disk.chain()
    for raw in raws:
        disk.storage.commit([grown.append(raw, blake(raw))])
    return grown


def judge(chain: Chain, raw: bytes) -> Judgement:
    return chain.judge(entry_of(raw), blake(raw))


def test_an_entry_is_known_next_ahead_or_a_fork_by_its_number_and_hashes() -> None:
    raws = chain(AUTHOR, limits.CHAT_AHEAD_MAX + 4)
    held = grown(Disk(), raws[:3])
    found = [judge(held, raw) for raw in raws]
    assert found == [
        *[Judgement.KNOWN] * 3,
        Judgement.NEXT,
        *[Judgement.AHEAD] * (limits.CHAT_AHEAD_MAX - 1),
        Judgement.IGNORED,
    ]
    assert judge(held, signed(AUTHOR, 2, blake(raws[0]), b"other")) is Judgement.FORK
    assert judge(held, signed(AUTHOR, 4, blake(raws[1]))) is Judgement.FORK
    assert judge(held, signed(AUTHOR, 1, blake(b"something"))) is Judgement.FORK


def test_judging_changes_nothing() -> None:
    raws = chain(AUTHOR, 6)
    held = grown(Disk(), raws[:3])
    for raw in raws:
        judge(held, raw)
    assert (held.head, held.gap, held.frozen, held.lost) == (3, None, None, 0)


def test_appending_moves_the_head_and_saves_the_frame_under_its_number() -> None:
    raws = chain(AUTHOR, 1)
    held = Disk().chain()
    assert held.append(raws[0], blake(raws[0])) == Save(
        f"chat/{TEAM.hex()}/{NODES[0].hex()}/0", (1).to_bytes(8), raws[0]
    )
    assert (held.head, held.previous, held.short(1), held.short(0)) == (1, blake(raws[0]), blake(raws[0])[:8], bytes(8))


def test_what_came_early_is_taken_when_the_hole_closes() -> None:
    raws = chain(AUTHOR, 3)
    held = grown(Disk(), raws[:1])
    held.keep_ahead(raws[2], blake(raws[2]), entry_of(raws[2]))
    assert held.gap == 3
    assert judge(held, raws[2]) is Judgement.KNOWN
    assert held.take_ahead() is None
    held.append(raws[1], blake(raws[1]))
    assert held.take_ahead() == (raws[2], blake(raws[2]), entry_of(raws[2]))
    assert held.gap is None


def test_old_frames_come_from_disk_and_new_ones_from_memory() -> None:
    disk, raws = Disk(), chain(AUTHOR, limits.CHAT_TAIL_ENTRIES + 150)
    held = grown(disk, raws)
    disk.read.clear()
    assert list(held.frames(len(raws) - 10, len(raws) + 100)) == raws[-11:]
    assert disk.read == []
    assert list(held.frames(100, 170)) == raws[99:170]
    assert [space.rsplit("/", 1)[1] for space in disk.read] == ["1", "2"]


def test_the_tail_in_memory_is_bounded_in_bytes() -> None:
    held, previous = Disk().chain(), bytes(32)
    for seq in range(1, 41):
        raw = signed(AUTHOR, seq, previous, bytes(limits.CHAT_BODY_BYTES_MAX))
        previous = blake(raw)
        held.append(raw, previous)
    assert sum(len(raw) for raw in held._tail) <= limits.CHAT_TAIL_BYTES


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
def test_a_chain_is_read_back_whole(length: int) -> None:
    disk, raws = Disk(), chain(AUTHOR, length)
    before = grown(disk, raws)
    again = disk.chain()
    assert [entry.seq for entry in again.load()] == list(range(1, length + 1))
    assert (again.head, again.previous, again.lost) == (length, before.previous, 0)


@pytest.mark.parametrize("damage", [lambda raw: raw[:50], lambda raw: raw[:-1] + b"\0", lambda raw: b""])
def test_a_damaged_row_ends_what_is_trusted_and_tells_how_far_it_had_been(damage: object) -> None:
    disk, raws = Disk(), chain(AUTHOR, 9)
    grown(disk, raws)
    space = f"chat/{TEAM.hex()}/{NODES[0].hex()}/0"
    disk.storage.commit([Save(space, (4).to_bytes(8), damage(raws[3]))])
    again = disk.chain()
    assert [entry.seq for entry in again.load()] in ([1, 2, 3], [1, 2, 3, 4])
    assert again.head <= 4
    assert again.lost == 9


def test_a_frozen_chain_counts_to_the_last_common_entry_also_after_a_restart() -> None:
    disk, raws = Disk(), chain(AUTHOR, 5)
    held = grown(disk, raws)
    other = signed(AUTHOR, 4, blake(raws[2]), b"other")
    assert held.fork_seq(entry_of(other)) == 4
    late = chain(AUTHOR, 7)[6]
    held.keep_ahead(late, blake(late), entry_of(late))
    disk.storage.commit([held.freeze(4, other)])
    assert held.gap is None
    again = disk.chain()
    list(again.load())
    for frozen in (held, again):
        assert (frozen.counts_to, frozen.head, frozen.evidence) == (3, 5, (raws[3], other))
        assert judge(frozen, raws[4]) is Judgement.IGNORED
        assert judge(frozen, raws[3]) is Judgement.IGNORED
        assert judge(frozen, raws[1]) is Judgement.KNOWN


def test_a_fork_deeper_than_the_first_evidence_lowers_what_counts() -> None:
    disk, raws = Disk(), chain(AUTHOR, 5)
    held = grown(disk, raws)
    deeper = signed(AUTHOR, 5, blake(b"another history"))
    assert held.fork_seq(entry_of(deeper)) == 4
    held.freeze(4, deeper)
    third = signed(AUTHOR, 4, blake(b"yet another"))
    assert judge(held, third) is Judgement.FORK
    held.freeze(held.fork_seq(entry_of(third)), third)
    assert held.counts_to == 2


def test_a_first_entry_that_names_one_before_it_is_a_fork_once() -> None:
    held, raw = Disk().chain(), signed(AUTHOR, 1, blake(b"nothing is before the first"))
    assert judge(held, raw) is Judgement.FORK
    held.freeze(held.fork_seq(entry_of(raw)), raw)
    assert held.counts_to == 0
    assert judge(held, raw) is Judgement.IGNORED
