"""What all our SQLite files share: made private, whole transactions, and what goes wrong as StorageErrors.

Source: https://sqlite.org/rescode.html
"""

import contextlib
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Generator
from pathlib import Path

from ioa_p2p.errors import StorageError
from ioa_p2p.wire import limits


def create(path: Path) -> None:
    """An empty file that only its owner may read, its name durable in the folder."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_aside(path: Path, wall_s: float) -> Path:
    """Rename a damaged file, with its WAL, after the time; its new path. The newest `limits.DAMAGED_FILES_MAX` stay."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(wall_s)) + f"{wall_s % 1:.3f}"[1:].replace(".", "-")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    with storage_errors(path):
        for suffix in ("-wal", ""):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{suffix}").replace(f"{aside}{suffix}")
        Path(f"{path}-shm").unlink(missing_ok=True)  # an index over the WAL, made anew when needed
        kept = sorted(file for file in path.parent.glob(f"{path.name}.damaged-*") if not file.name.endswith("-wal"))
        for old in kept[: -limits.DAMAGED_FILES_MAX]:
            old.unlink()
            Path(f"{old}-wal").unlink(missing_ok=True)
    return aside


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All of it or nothing, however the block ends."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back by itself
            connection.execute("ROLLBACK")
        raise


_SQLITE_CODES = {
    sqlite3.SQLITE_FULL: "disk-full",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_CANTOPEN: "read-only",
    sqlite3.SQLITE_PERM: "read-only",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
}
_SYSTEM_CODES = {
    errno.ENOSPC: "disk-full",
    errno.EDQUOT: "disk-full",
    errno.EACCES: "read-only",
    errno.EPERM: "read-only",
    errno.EROFS: "read-only",
}
_FULL_BYTES = 64 * 1024  # less than this free: the WAL's index alone needs 32 KiB
_HINTS = {
    "disk-full": "free some space; the node goes on by itself",
    "locked": "another process has it open: is the node already running?",
    "read-only": "give the user of this node the right to write there",
    "damaged": "restore a backup, or start the node: it keeps what is whole and asks its peers for the rest",
    "unreadable": "look at the disk: reading or writing failed",
}


@contextlib.contextmanager
def storage_errors(path: Path) -> Generator[None]:
    """SQLite's and the system's errors as StorageError with a code and a hint. `& 0xFF`: without the extension."""
    try:
        yield
    except sqlite3.Error as fault:
        code = getattr(fault, "sqlite_errorcode", None)
        if code is None:
            raise  # a value that is no value: our own bug
        raise storage_error(_SQLITE_CODES.get(code & 0xFF) or _io_code(path), path, str(fault)) from fault
    except OSError as fault:
        raise storage_error(_SYSTEM_CODES.get(fault.errno or 0, "unreadable"), path, str(fault)) from fault


def _io_code(path: Path) -> str:
    """SQLite calls some writes to a full disk an I/O error."""
    with contextlib.suppress(OSError):
        if shutil.disk_usage(path.parent).free < _FULL_BYTES:
            return "disk-full"
    return "unreadable"


def storage_error(code: str, path: Path, what: str) -> StorageError:
    return StorageError(code, f"{path}: {what}", _HINTS[code])
