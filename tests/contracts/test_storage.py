"""One contract for every Storage."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError
from ioa_p2p.storage.base import Storage
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.storage.sqlite import SqliteStorage

MAKERS: dict[str, Callable[[Path], Storage]] = {
    "memory": lambda folder: MemoryStorage(),
    "sqlite": lambda folder: SqliteStorage(folder / "state.sqlite"),
}


@pytest.fixture(params=MAKERS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def test_what_was_committed_is_read_back(storage: Storage) -> None:
    storage.commit([Save("votes", b"\x00\xff", b"yes"), Save("log", b"1", b"")])
    assert storage.get("votes", b"\x00\xff") == b"yes"
    assert storage.get("log", b"1") == b""
    assert storage.get("log", b"2") is None
    assert storage.get("nowhere", b"1") is None


def test_the_last_save_of_a_row_wins_within_a_group(storage: Storage) -> None:
    storage.commit([Save("s", b"k", b"old"), Save("s", b"k", None), Save("s", b"k", b"new")])
    storage.commit([Save("s", b"gone", b"x"), Save("s", b"gone", None)])
    assert list(storage.scan("s")) == [(b"k", b"new")]


def test_a_delete_of_an_unknown_row_changes_nothing(storage: Storage) -> None:
    storage.commit([Save("s", b"k", None)])
    assert storage.spaces() == []


def test_an_empty_group_is_allowed(storage: Storage) -> None:
    storage.commit([])
    assert storage.spaces() == []


def test_a_scan_is_in_byte_order_and_half_open(storage: Storage) -> None:
    keys = [b"", b"\x00", b"\x01", b"\x01\x00", b"a", b"\xff", b"\xff\xff"]
    storage.commit([Save("s", key, key) for key in reversed(keys)])
    storage.commit([Save("t", b"\x01", b"other space")])
    assert [key for key, _ in storage.scan("s")] == keys
    assert [key for key, _ in storage.scan("s", b"\x01", b"\xff")] == [b"\x01", b"\x01\x00", b"a"]
    assert [key for key, _ in storage.scan("s", b"b")] == [b"\xff", b"\xff\xff"]


def test_a_scan_shows_the_moment_of_its_call(storage: Storage) -> None:
    storage.commit([Save("s", b"1", b"a")])
    rows = storage.scan("s")
    storage.commit([Save("s", b"1", None), Save("s", b"2", b"b")])
    assert list(rows) == [(b"1", b"a")]


def test_spaces_are_named_by_prefix_while_they_hold_rows(storage: Storage) -> None:
    storage.commit([Save(space, b"k", b"v") for space in ("log/b", "log/a", "log/a/x", "lo", "zz", "été")])
    storage.commit([Save("log/b", b"k", None)])
    assert storage.spaces("log/") == ["log/a", "log/a/x"]
    assert storage.spaces() == ["lo", "log/a", "log/a/x", "zz", "été"]


def test_a_dropped_space_is_empty_and_its_neighbours_stay(storage: Storage) -> None:
    storage.commit([Save("a", b"1", b"v"), Save("a", b"2", b"v"), Save("ab", b"1", b"v")])
    storage.drop("a")
    storage.drop("never there")
    assert list(storage.scan("a")) == []
    assert storage.spaces() == ["ab"]


def test_a_closed_storage_refuses_everything(storage: Storage) -> None:
    storage.commit([Save("s", b"k", b"v")])
    storage.close()
    storage.close()
    for use in (
        lambda: storage.commit([]),
        lambda: storage.get("s", b"k"),
        lambda: storage.scan("s"),
        lambda: storage.spaces(),
        lambda: storage.drop("s"),
    ):
        with pytest.raises(StorageError) as caught:
            use()
        assert caught.value.code == "closed"
