"""A look at a store's file before it is used, through a connection that changes nothing.

file ──> whose? which version? ──> structure ──> every row's sums ──> the last commit's number against the seal
          └── newer: refused         └──────────────┴─────────────────────┴──> Damage, or None
"""

import contextlib
import sqlite3
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from ioa_p2p.errors import StorageError
from ioa_p2p.storage.database import storage_errors
from ioa_p2p.storage.seal import sealed
from ioa_p2p.storage.sums import Row

SCHEMA_VERSION = 2
APPLICATION_ID = 0x696F6131  # "ioa1" in the file's header: not just anybody's database

_ROWS = "SELECT space, key, value, number, sums FROM rows"
_ROWS_FROM_THE_END = f"{_ROWS} ORDER BY space DESC, key DESC"


class Damage(NamedTuple):
    """what: for people. rows: (space, key) of values that are lost. unseen: more may be lost than these."""

    what: str
    rows: tuple[tuple[str, bytes], ...] = ()
    unseen: bool = True


class _Look(NamedTuple):
    """What a file says of itself. marked: its version again, in a row; None without one."""

    application: int
    version: int
    tables: int
    marked: int | None


def inspect(path: Path) -> Damage | None:
    """What is wrong with the store in `path`; None also if there is none yet. Raises StorageError('newer-file' |
    'locked' | 'read-only' | 'disk-full')."""
    last = sealed(path)
    if not path.exists() or path.stat().st_size == 0:
        return Damage("the file is gone") if last else None
    try:
        with storage_errors(path), _peek(path) as peek:
            return _judge(path, peek, last)
    except StorageError as fault:
        if not is_damage(fault):
            raise
        return Damage(str(fault.__cause__ or fault))


def is_damage(fault: StorageError) -> bool:
    """Whether the file is the trouble, and not its folder, the disk's room or another process."""
    return fault.code in ("damaged", "unreadable")


def whole_rows(path: Path) -> Iterator[Row]:
    """What can still be read of a damaged store, from both ends; some rows may come twice."""
    for query in (_ROWS, _ROWS_FROM_THE_END):
        with contextlib.suppress(sqlite3.Error), _peek(path) as peek:
            yield from (row for row in map(Row._make, peek.execute(query)) if row.is_whole)


def _judge(path: Path, peek: sqlite3.Connection, last: int) -> Damage | None:
    look = _look(peek)
    if look.application == APPLICATION_ID and look.version > SCHEMA_VERSION and look.marked != SCHEMA_VERSION:
        what = f"{path} has version {look.version}, this program reads {SCHEMA_VERSION}"
        raise StorageError("newer-file", what, "update this program, or give the newer one its own folder")
    if not look.tables:  # we crashed at its birth
        return Damage("its rows are gone") if last else None
    if (look.application, look.version) != (APPLICATION_ID, SCHEMA_VERSION):
        return Damage("not a store of this program")
    ((verdict,),) = peek.execute("PRAGMA quick_check(1)")
    return Damage(verdict) if verdict != "ok" else _judge_rows(peek, last)


def _judge_rows(peek: sqlite3.Connection, last: int) -> Damage | None:
    number, lost, nameless = _number_of_mark(peek), list[tuple[str, bytes]](), 0
    for row in map(Row._make, peek.execute(_ROWS)):
        if row.is_whole:
            number = max(number, row.number)
        elif row.has_name:
            number = max(number, row.number)
            lost.append((row.space, row.key))
        else:
            nameless += 1
    if number < last:
        return Damage(f"it ends at commit {number}, but {last} were made", tuple(lost))
    damaged = len(lost) + nameless
    return Damage(f"{damaged} rows are not what was written", tuple(lost), nameless > 0) if damaged else None


def _number_of_mark(peek: sqlite3.Connection) -> int:
    rows = (Row("", b"", b"", number, sums) for number, sums in peek.execute("SELECT number, sums FROM mark"))
    return max((row.number for row in rows if row.is_whole), default=0)


def _look(peek: sqlite3.Connection) -> _Look:
    queries = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    application, version, tables = (peek.execute(query).fetchone()[0] for query in queries)
    marked = None
    with contextlib.suppress(sqlite3.Error):
        marked = (peek.execute("SELECT version FROM mark").fetchone() or (None,))[0]
    return _Look(application, version, tables, marked)


@contextlib.contextmanager
def _peek(path: Path) -> Generator[sqlite3.Connection]:
    """`immutable` leaves no files behind, but would not see what a WAL holds."""
    wal = Path(f"{path}-wal")
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "immutable=1"
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=0)) as peek:
        peek.text_factory = _lenient
        yield peek


def _lenient(text: bytes) -> str:
    """A flipped bit may leave bytes that are no text; their sums tell."""
    return text.decode(errors="replace")
