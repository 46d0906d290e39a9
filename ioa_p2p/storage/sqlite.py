"""Storage on one SQLite file: WAL, synchronous=FULL, one transaction a group.

    commit([Save, ...]) ── BEGIN IMMEDIATE, put and delete, COMMIT (one fsync) ──> durable, or StorageError
                                                                                └── seal: its number

One table, `rows(space, key, value)`, each row with its commit's number and its sums (sums.py). A commit that writes
no row writes `mark`, so that the largest number in the file is that of the last commit. The schema version stands in
`user_version`, and in `mark` once more. The file is held exclusively while it is open, so two nodes never write the
same votes.

Threads: a lock lets one call in at a time, so a reader never sees half a group: the node commits on a thread of its
own and reads on its loop.
Source: https://sqlite.org/wal.html
"""

import contextlib
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError
from ioa_p2p.storage.database import create, storage_error, storage_errors, transaction
from ioa_p2p.storage.inspection import APPLICATION_ID, SCHEMA_VERSION, inspect
from ioa_p2p.storage.seal import Seal
from ioa_p2p.storage.sums import Row, sums
from ioa_p2p.wire import limits

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE rows (
    space TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, number INTEGER NOT NULL, sums BLOB NOT NULL,
    PRIMARY KEY (space, key)
) WITHOUT ROWID;
CREATE TABLE mark (version INTEGER NOT NULL, number INTEGER NOT NULL, sums BLOB NOT NULL);
INSERT INTO mark VALUES ({SCHEMA_VERSION}, 0, x'');
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
_PUT = """
INSERT INTO rows VALUES (?, ?, ?, ?, ?)
ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, number = excluded.number, sums = excluded.sums
"""
_DELETE = "DELETE FROM rows WHERE space = ? AND key = ?"
_MARK = "UPDATE mark SET number = ?, sums = ?"


class SqliteStorage:
    """The store in `path`, made (mode 0600) if it is not there.

    Raises StorageError('newer-file' | 'damaged' | 'locked' | 'read-only' | 'disk-full' | 'unreadable'),
    with the file left as it was. `damaged`: spaces of rows that the disk changed since then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self.damaged: set[str] = set()
        with storage_errors(path):
            if damage := inspect(path):
                raise storage_error("damaged", path, damage.what)
            create(path)
            self._connection = _open(path)
            self._number = _last_number(self._connection)
            self._seal = Seal(path)
            self._seal.write(self._number)

    def commit(self, saves: Sequence[Save]) -> None:
        self._live()
        last = {(save.space, save.key): save.value for save in saves}
        if not last:
            return
        puts = [(*row, value) for row, value in last.items() if value is not None]
        with self._next_commit(bool(puts)) as (connection, number):
            connection.executemany(_DELETE, [row for row, value in last.items() if value is None])
            connection.executemany(_PUT, [(*put, number, sums(*put, number)) for put in puts])

    def get(self, space: str, key: bytes) -> bytes | None:
        rows = self._whole("WHERE space = ? AND key = ?", space, key)
        return rows[0].value if rows else None

    def scan(self, space: str, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        where, bounds = "WHERE space = ? AND key >= ?", (space, start)
        if end is not None:
            where, bounds = f"{where} AND key < ?", (*bounds, end)
        return ((row.key, row.value) for row in self._whole(f"{where} ORDER BY key", *bounds))

    def spaces(self, prefix: str = "") -> list[str]:
        found: list[str] = []
        rows = self._read("SELECT min(space) FROM rows WHERE space >= ?", prefix)
        while (space := rows[0][0]) is not None and space.startswith(prefix):
            found.append(space)
            rows = self._read("SELECT min(space) FROM rows WHERE space > ?", space)
        return found

    def drop(self, space: str) -> None:
        self._live()
        with self._next_commit(False) as (connection, _):
            connection.execute("DELETE FROM rows WHERE space = ?", (space,))

    def close(self) -> None:
        """Move the WAL into the file and let go of it. Idempotent."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with self._lock, storage_errors(self._path):
                self._seal.close()
                connection.close()

    @contextlib.contextmanager
    def _next_commit(self, puts: bool) -> Generator[tuple[sqlite3.Connection, int]]:
        """One group; sealed once it is durable. puts: it writes rows, which tell its number."""
        connection = self._live()
        with self._lock, storage_errors(self._path):
            number = self._number + 1
            with transaction(connection):
                yield connection, number
                if not puts:
                    connection.execute(_MARK, (number, sums("", b"", b"", number)))
            self._number = number
            self._seal.write(number)

    def _whole(self, where: str, *values: str | bytes) -> list[Row]:
        """A row that the disk changed under us is as good as none; `damaged` tells its space."""
        rows = list(map(Row._make, self._read(f"SELECT space, key, value, number, sums FROM rows {where}", *values)))
        whole = [row for row in rows if row.is_whole]
        self.damaged.update(str(row.space) for row in rows if len(whole) < len(rows) and not row.is_whole)
        return whole

    def _read(self, query: str, *values: str | bytes) -> list[Any]:
        connection = self._live()
        with self._lock, storage_errors(self._path):
            return connection.execute(query, values).fetchall()

    def _live(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StorageError("closed", "storage is closed")
        return self._connection


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


def _last_number(connection: sqlite3.Connection) -> int:
    """Of a store that was inspected."""
    query = "SELECT max(number) FROM (SELECT number FROM rows UNION ALL SELECT number FROM mark)"
    ((number,),) = connection.execute(query)
    return number
