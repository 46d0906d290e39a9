"""node/seed_list.py: who is believed, for how long, and that nothing older comes back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.errors import StorageError, UsageError
from ioa_p2p.node import seed_list
from ioa_p2p.node.config import Seed
from ioa_p2p.node.seed_list import ListSeeds
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.wire import limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.seeds import SeedList
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, record

NOW = 1_800_000_000
DAY_S = 86_400
OLD, NEW = Seed(BOB.node, "192.0.2.1", 4701), Seed(BOB.node, "seed.example.org", 4701)


def made(*seeds: Seed, number: int = 1, key: object = ALICE, network: bytes = NETWORK, days: int = 90) -> bytes:
    assert isinstance(key, type(ALICE))
    return seed_list.sign(key, network, seeds or (OLD,), number, NOW, days * DAY_S)


class Reader:
    """A node's view of one file, which may change; `now` may move."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "seeds.list"
        self.storage = MemoryStorage()
        self.now = NOW
        self.source = self.restarted()

    def restarted(self) -> ListSeeds:
        self.source = ListSeeds(self.file, (ALICE.node,), NETWORK, self.storage, lambda: self.now)
        return self.source

    async def after(self, frame: bytes) -> list[Seed]:
        """What is believed once this list is in the file."""
        seed_list.write(self.file, frame)
        return list(await self.source.look())


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as fault:
        call()
    assert fault.value.hint
    return fault.value.code


async def test_a_list_of_a_pinned_signer_is_believed(reader: Reader) -> None:
    assert await reader.after(made(OLD, NEW)) == [OLD, NEW]
    assert reader.source.problem == ""


async def test_no_file_is_no_fault(reader: Reader) -> None:
    assert await reader.source.look() == []
    assert reader.source.problem == ""


async def test_the_list_rotates_when_the_file_changes(reader: Reader) -> None:
    await reader.after(made(OLD, number=1))
    assert await reader.after(made(NEW, number=2)) == [NEW]


async def test_an_older_list_never_comes_back_not_even_after_a_restart(reader: Reader) -> None:
    await reader.after(made(NEW, number=2))
    assert await reader.after(made(OLD, number=1)) == [NEW]
    assert "older" in reader.source.problem
    reader.restarted()
    assert await reader.source.look() == [NEW]
    assert "older" in reader.source.problem


async def test_the_last_list_outlives_its_file(reader: Reader) -> None:
    await reader.after(made(NEW, number=2))
    reader.file.unlink()
    reader.restarted()
    assert await reader.source.look() == [NEW]
    assert reader.source.problem == ""


async def test_two_lists_of_one_number_leave_the_first(reader: Reader) -> None:
    await reader.after(made(OLD, number=2))
    assert await reader.after(made(NEW, number=2)) == [OLD]
    assert "claim number 2" in reader.source.problem


async def test_a_list_ends_when_it_expires(reader: Reader) -> None:
    await reader.after(made(OLD, days=90))
    reader.now = NOW + 90 * DAY_S - 1
    assert await reader.source.look() == [OLD]
    reader.now += 1
    assert await reader.source.look() == []
    assert "expired" in reader.source.problem
    reader.now = NOW
    assert await reader.after(made(NEW, number=2)) == [NEW]
    assert reader.source.problem == ""


def odd(seeds: tuple[str, ...] = ("x",), issued: int = NOW, life_s: int = DAY_S) -> bytes:
    """A list that Alice signs without the checks of `seed_list.sign`."""
    return envelope.seal(ALICE, NETWORK, Kind.SEEDS, SeedList(ALICE.node, 2, issued, issued + life_s, seeds))


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (made(key=MALLORY), "whom this node does not trust"),
        (made(network=OTHER_NETWORK), "another mesh"),
        (made()[:-1] + bytes([made()[-1] ^ 1]), "changed"),
        (made()[:-64] + made(key=MALLORY)[-64:], "changed"),
        (envelope.seal(ALICE, NETWORK, Kind.RECORD, record()), "where seeds belongs"),
        (b"", "no good seed list"),
        (odd(("x",) * (limits.SEED_LIST_MAX + 1)), "length"),
        (odd(life_s=401 * DAY_S), "too long"),
        (odd(issued=NOW + limits.CLOCK_SKEW_S + 1), "future"),
        (odd(issued=NOW - DAY_S), "expired"),
    ],
    ids=["mallory", "other mesh", "bit", "signature", "kind", "empty", "many", "eternal", "future", "expired"],
)
async def test_any_other_list_is_refused_in_clear_words_and_the_last_goes_on(
    reader: Reader, frame: bytes, why: str
) -> None:
    await reader.after(made(OLD))
    assert await reader.after(frame) == [OLD]
    assert why in reader.source.problem


@pytest.mark.parametrize("text", [b"zz", b"\xff" * 9, b"0", b"00" * limits.SEED_LIST_FILE_BYTES_MAX])
async def test_a_file_that_is_something_else_is_refused(reader: Reader, text: bytes) -> None:
    reader.file.write_bytes(text)
    assert await reader.source.look() == []
    assert reader.source.problem


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    assert refused(lambda: seed_list.read(tmp_path)) == "no-list"


async def test_entries_of_a_later_version_are_passed_over(reader: Reader) -> None:
    body = SeedList(ALICE.node, 1, NOW, NOW + DAY_S, ("ticket:something-new", str(OLD)))
    assert await reader.after(envelope.seal(ALICE, NETWORK, Kind.SEEDS, body)) == [OLD]


async def test_a_list_that_cannot_be_written_down_is_tried_again(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise StorageError("disk-full", "no room", "free some")

    with monkeypatch.context() as patch:
        patch.setattr(reader.storage, "commit", full)
        assert await reader.after(made(OLD)) == []
        assert "no room" in reader.source.problem
    assert await reader.source.look() == [OLD]


async def test_a_list_of_another_mesh_kept_on_disk_does_not_count_here(reader: Reader) -> None:
    await reader.after(made(OLD, number=9))
    reader.source = ListSeeds(reader.file, (ALICE.node,), OTHER_NETWORK, reader.storage, lambda: reader.now)
    assert await reader.after(made(NEW, number=1, network=OTHER_NETWORK)) == [NEW]


@pytest.mark.parametrize(("count", "days"), [(0, 90), (limits.SEED_LIST_MAX + 1, 90), (1, 0), (1, 401)])
def test_nobody_signs_what_nobody_would_take(count: int, days: int) -> None:
    seeds = [OLD._replace(port=4_000 + number) for number in range(count)]
    assert refused(lambda: seed_list.sign(ALICE, NETWORK, seeds, 1, NOW, days * DAY_S)) == "bad-list"
