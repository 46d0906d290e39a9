"""What only the SQLite store can get wrong: files, versions, locks, full disks, rights."""

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError
from ioa_p2p.storage.inspection import SCHEMA_VERSION
from ioa_p2p.storage.seal import seal_of
from ioa_p2p.storage.sqlite import SqliteStorage

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Give up root's way through file modes for the length of a test."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(before)


def filled(path: Path, rows: int = 200) -> None:
    storage = SqliteStorage(path)
    storage.commit([Save("log", b"%06d" % n, bytes(400)) for n in range(rows)])
    storage.close()


def refusal(path: Path) -> StorageError:
    with pytest.raises(StorageError) as caught:
        SqliteStorage(path)
    assert caught.value.hint
    return caught.value


def make_newer(connection: sqlite3.Connection) -> None:
    """As a program of the next version would have."""
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.execute("UPDATE mark SET version = ?", (SCHEMA_VERSION + 1,))


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_rows_outlive_a_close(path: Path) -> None:
    filled(path)
    storage = SqliteStorage(path)
    assert len(list(storage.scan("log"))) == 200
    storage.close()


def test_close_leaves_a_file_and_its_seal_that_only_their_owner_may_read(path: Path) -> None:
    filled(path)
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {
        path.name: 0o600,
        seal_of(path).name: 0o600,
    }


def test_a_second_holder_is_told_that_the_store_is_locked(path: Path) -> None:
    storage = SqliteStorage(path)
    storage.commit([Save("s", b"k", b"v")])
    assert refusal(path).code == "locked"
    storage.close()
    SqliteStorage(path).close()


def test_a_newer_file_is_refused_and_keeps_every_byte(path: Path) -> None:
    filled(path)
    with sqlite3.connect(path) as connection:
        make_newer(connection)
    connection.close()
    before = files(path.parent)
    assert refusal(path).code == "newer-file"
    assert files(path.parent) == before


def test_a_newer_file_with_a_live_wal_keeps_every_byte(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    filled(path)
    connection = sqlite3.connect(path)
    make_newer(connection)
    connection.commit()
    crashed = tmp_path_factory.mktemp("crashed") / path.name
    for suffix in ("", "-wal"):  # as a kill -9 leaves them: the new version stands in the WAL only
        Path(f"{crashed}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    connection.close()
    before = files(crashed.parent)
    assert refusal(crashed).code == "newer-file"
    after = files(crashed.parent)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"garbage" * 500,
        lambda data: data[:5000],
        lambda data: data[:4096] + bytes(len(data) - 4096),
        lambda data: data[:8192] + b"\xff" * 4096 + data[12288:],
    ],
    ids=["garbage", "cut short", "zeroed", "one page overwritten"],
)
def test_a_damaged_file_is_named_and_kept(path: Path, spoil) -> None:
    filled(path)
    path.write_bytes(spoil(path.read_bytes()))
    before = path.read_bytes()
    assert refusal(path).code == "damaged"
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_not_taken_over(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    before = path.read_bytes()
    assert refusal(path).code == "damaged"
    assert path.read_bytes() == before


def test_an_empty_file_left_by_a_crash_at_birth_is_filled(path: Path) -> None:
    path.touch()
    filled(path)


def test_a_file_without_tables_left_by_a_crash_at_birth_is_filled(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert path.stat().st_size > 0
    filled(path)


def test_a_full_disk_applies_nothing_of_the_group_and_the_store_goes_on_when_freed(path: Path) -> None:
    storage = SqliteStorage(path)
    storage.commit([Save("s", b"before", b"v")])
    connection = storage._connection
    assert connection is not None
    ((pages,),) = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own SQLITE_FULL, without filling a disk
    with pytest.raises(StorageError) as caught:
        storage.commit([Save("s", b"before", None), *(Save("s", b"%d" % n, bytes(4000)) for n in range(50))])
    assert caught.value.code == "disk-full"
    assert list(storage.scan("s")) == [(b"before", b"v")]
    connection.execute("PRAGMA max_page_count = 100000")
    storage.commit([Save("s", b"after", bytes(40000))])
    assert [key for key, _ in storage.scan("s")] == [b"after", b"before"]
    storage.close()


def test_a_bug_of_ours_in_the_middle_of_a_group_applies_nothing_and_is_no_fault_of_the_disk(path: Path) -> None:
    storage = SqliteStorage(path)
    broken: Any = object()
    with pytest.raises(TypeError):
        storage.commit([Save("s", b"1", b"v"), Save("s", b"2", broken)])
    assert list(storage.scan("s")) == []
    storage.commit([Save("s", b"3", b"v")])
    storage.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, unprivileged: None) -> None:
    assert refusal(Path("/proc/state.sqlite")).code in ("read-only", "unreadable")
    assert refusal(Path("/etc/state.sqlite")).code == "read-only"


def test_a_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    assert "no-such-folder" in str(refusal(tmp_path / "no-such-folder" / "state.sqlite"))


def test_the_store_may_be_opened_in_one_thread_and_used_in_another(path: Path) -> None:
    storage = SqliteStorage(path)
    thread = threading.Thread(target=storage.commit, args=([Save("s", b"k", b"v")],))
    thread.start()
    thread.join(10)
    assert storage.get("s", b"k") == b"v"
    storage.close()


def test_every_group_is_synced_and_logged_ahead(path: Path) -> None:
    storage = SqliteStorage(path)
    assert storage._connection is not None
    pragmas = {
        name: storage._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2}
    storage.close()


def test_a_reader_on_another_thread_never_sees_half_a_group(path: Path) -> None:
    storage = SqliteStorage(path)

    def write() -> None:
        for number in range(200):
            value = number.to_bytes(2)
            storage.commit([Save("s", bytes([row]), value) for row in range(8)])

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        assert len({value for _, value in storage.scan("s")}) <= 1
    writer.join(10)
    storage.close()
