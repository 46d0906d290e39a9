"""Storage on one SQLite file: WAL, synchronous=FULL, one transaction a group.

    commit([Save, ...]) ── BEGIN IMMEDIATE, put and delete, COMMIT (one fsync) ──> durable, or StorageError

One table, `rows(space, key, value)`. The schema version stands in `user_version`. The file is held exclusively
while it is open, so two nodes never write the same votes.

Threads: a lock lets one call in at a time, so a reader never sees half a group: the node commits on a thread of its
own and reads on its loop.
Source: https://sqlite.org/wal.html
"""

import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError
from ioa_p2p.storage.database import create, storage_error, storage_errors, transaction
from ioa_p2p.wire import limits

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x696F6131  # "ioa1" in the file's header: not just anybody's database

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE rows (space TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
_PUT = "INSERT INTO rows VALUES (?, ?, ?) ON CONFLICT (space, key) DO UPDATE SET value = excluded.value"
_DELETE = "DELETE FROM rows WHERE space = ? AND key = ?"


class SqliteStorage:
    """The store in `path`, made (mode 0600) if it is not there.

    Raises StorageError('newer-file' | 'damaged' | 'locked' | 'read-only' | 'disk-full' | 'unreadable'),
    with the file left as it was.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        with storage_errors(path):
            _refuse_strangers(path)
            create(path)
            self._connection = _open(path)

    def commit(self, saves: Sequence[Save]) -> None:
        connection = self._live()
        last = {(save.space, save.key): save.value for save in saves}
        if not last:
            return
        with self._lock, storage_errors(self._path), transaction(connection):
            connection.executemany(_DELETE, [row for row, value in last.items() if value is None])
            connection.executemany(_PUT, [(*row, value) for row, value in last.items() if value is not None])

    def get(self, space: str, key: bytes) -> bytes | None:
        rows = self._read("SELECT value FROM rows WHERE space = ? AND key = ?", space, key)
        return rows[0][0] if rows else None

    def scan(self, space: str, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        query, bounds = "SELECT key, value FROM rows WHERE space = ? AND key >= ?", (space, start)
        if end is None:
            return iter(self._read(f"{query} ORDER BY key", *bounds))
        return iter(self._read(f"{query} AND key < ? ORDER BY key", *bounds, end))

    def spaces(self, prefix: str = "") -> list[str]:
        found: list[str] = []
        rows = self._read("SELECT min(space) FROM rows WHERE space >= ?", prefix)
        while (space := rows[0][0]) is not None and space.startswith(prefix):
            found.append(space)
            rows = self._read("SELECT min(space) FROM rows WHERE space > ?", space)
        return found

    def drop(self, space: str) -> None:
        connection = self._live()
        with self._lock, storage_errors(self._path), transaction(connection):
            connection.execute("DELETE FROM rows WHERE space = ?", (space,))

    def close(self) -> None:
        """Move the WAL into the file and let go of it. Idempotent."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with self._lock, storage_errors(self._path):
                connection.close()

    def _read(self, query: str, *values: str | bytes) -> list[Any]:
        connection = self._live()
        with self._lock, storage_errors(self._path):
            return connection.execute(query, values).fetchall()

    def _live(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StorageError("closed", "storage is closed")
        return self._connection


def set_aside(path: Path) -> Path:
    """Rename a damaged store, never delete it; returns its new path. What it knew (votes, logs) is forgotten,
    so only its owner may ask for this."""
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    for suffix in ("-wal", "-shm", ""):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    return aside


class _Look(NamedTuple):
    """What a file says of itself. verdict: "ok", or what SQLite found broken."""

    application: int
    version: int
    tables: int
    verdict: str


def _refuse_strangers(path: Path) -> None:
    """Before anything is written, so that a file we refuse keeps every byte."""
    if not path.exists() or path.stat().st_size == 0:
        return
    look = _peek(path)
    if look.application == _APPLICATION_ID and look.version > SCHEMA_VERSION:
        what = f"{path} has version {look.version}, this program reads {SCHEMA_VERSION}"
        raise StorageError("newer-file", what, "update this program, or give the newer one its own folder")
    if look.verdict != "ok":
        raise storage_error("damaged", path, look.verdict)
    if look.application != _APPLICATION_ID and look.tables:  # no tables: we crashed at its birth
        raise storage_error("damaged", path, "not a store of this program")


def _peek(path: Path) -> _Look:
    """Through a read-only connection. `immutable` leaves no files behind, but would not see what a WAL holds."""
    wal = Path(f"{path}-wal")
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "immutable=1"
    queries = (
        "PRAGMA application_id",
        "PRAGMA user_version",
        "SELECT count(*) FROM sqlite_master",
        "PRAGMA quick_check(1)",
    )
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=0)) as peek:
        return _Look(*(peek.execute(query).fetchone()[0] for query in queries))


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: a plain fsync stops at the drive's cache
        connection.execute(f"PRAGMA journal_size_limit = {limits.STORE_WAL_BYTES_MAX}")
        ((version,),) = connection.execute("PRAGMA user_version")
        if version == 0:
            connection.executescript(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection
