"""A disk that loses its power: SQLite's own writes and syncs are recorded, then cut off anywhere.

    SqliteStorage ──> SQLite ──> a VFS like the usual one, whose files also record ──> [Write | Truncate | Sync, ...]
    power loss at operation n: synced ones stand; of each later write some sectors, all or nothing reached the disk

The VFS is the usual one with two functions replaced in its files' tables, by ctypes, so the real program runs over
the real SQLite. Source: https://sqlite.org/vfs.html, https://sqlite.org/c3ref/io_methods.html
"""

import ctypes
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, Structure, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

SECTOR_BYTES = 512  # what a disk writes whole or not at all
_OK = 0


class Write(NamedTuple):
    name: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    name: str
    size: int


class Sync(NamedTuple):
    name: str


class Remove(NamedTuple):
    name: str


Operation = Write | Truncate | Sync | Remove


class _File(Structure):
    """sqlite3_file: a pointer to the table of its functions comes first."""

    _fields_ = [("methods", c_void_p)]


_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)


class _Methods(Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = [
        ("version", c_int), ("close", c_void_p), ("read", c_void_p), ("write", c_void_p), ("truncate", c_void_p),
        ("sync", c_void_p), ("others", c_void_p * 13),
    ]  # fmt: skip


_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)  # the path as a pointer: SQLite keeps it
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)


class _Vfs(Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = [
        ("version", c_int), ("file_bytes", c_int), ("path_bytes_max", c_int), ("next", c_void_p), ("name", c_char_p),
        ("data", c_void_p), ("open", c_void_p), ("delete", c_void_p), ("others", c_void_p * 14),
    ]  # fmt: skip


def library() -> ctypes.CDLL | None:
    """The SQLite that Python's own module uses; None where it cannot be reached."""
    import _sqlite3

    try:
        found = ctypes.CDLL(_sqlite3.__file__)
        found.sqlite3_vfs_find.restype = c_void_p
        found.sqlite3_libversion.restype = c_char_p
    except (AttributeError, OSError):
        return None
    return found if found.sqlite3_libversion().decode() == sqlite3.sqlite_version else None


class Recorder:
    """Every operation on files that are opened while it is `installed`, in order; file names without their folder."""

    def __init__(self, sqlite: ctypes.CDLL) -> None:
        self.operations: list[Operation] = []
        self._sqlite = sqlite
        self._names: dict[int, str] = {}
        self._tables: dict[int, tuple[_Methods, Any]] = {}
        self._usual = _Vfs.from_address(sqlite.sqlite3_vfs_find(None))
        self._vfs = _Vfs.from_buffer_copy(self._usual)
        self._vfs.name = b"recording"
        self._callbacks = (_OPEN(self._open), _DELETE(self._delete))
        self._vfs.open, self._vfs.delete = (ctypes.cast(call, c_void_p) for call in self._callbacks)

    @contextmanager
    def installed(self) -> Iterator["Recorder"]:
        self._sqlite.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        try:
            yield self
        finally:
            self._sqlite.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def _open(self, vfs: int, path: int | None, file: int, flags: int, out: int) -> int:
        code = _OPEN(self._usual.open)(vfs, path, file, flags, out)
        usual = _File.from_address(file).methods
        if code == _OK and path is not None and usual:
            self._names[file] = Path(ctypes.string_at(path).decode()).name
            _File.from_address(file).methods = ctypes.addressof(self._table(usual)[0])
        return code

    def _delete(self, vfs: int, path: bytes, sync: int) -> int:
        self.operations.append(Remove(Path(path.decode()).name))
        return _DELETE(self._usual.delete)(vfs, path, sync)

    def _table(self, usual: int) -> tuple[_Methods, Any]:
        """The usual functions of such a file, the three that change it replaced."""
        if usual not in self._tables:
            table = _Methods.from_buffer_copy(_Methods.from_address(usual))
            write, truncate, sync = _WRITE(table.write), _TRUNCATE(table.truncate), _SYNC(table.sync)

            def on_write(file: int, data: int, size: int, offset: int) -> int:
                self.operations.append(Write(self._names[file], offset, ctypes.string_at(data, size)))
                return write(file, data, size, offset)

            def on_truncate(file: int, size: int) -> int:
                self.operations.append(Truncate(self._names[file], size))
                return truncate(file, size)

            def on_sync(file: int, flags: int) -> int:
                self.operations.append(Sync(self._names[file]))
                return sync(file, flags)

            calls = _WRITE(on_write), _TRUNCATE(on_truncate), _SYNC(on_sync)
            table.write, table.truncate, table.sync = (ctypes.cast(call, c_void_p) for call in calls)
            self._tables[usual] = table, (calls, write, truncate, sync)
        return self._tables[usual]


def after_power_loss(operations: list[Operation], dice: random.Random, folder: Path) -> None:
    """Write into `folder` what stands on the disk after the last of `operations`."""
    last_sync = {operation.name: number for number, operation in enumerate(operations) if isinstance(operation, Sync)}
    files: dict[str, bytearray] = {}
    for number, operation in enumerate(operations):
        match operation:
            case Write(name, offset, data):
                durable = number < last_sync.get(name, -1)
                _write(files.setdefault(name, bytearray()), offset, data, None if durable else dice)
            case Truncate(name, size):
                if number < last_sync.get(name, -1) or dice.random() < 0.5:
                    _resize(files.setdefault(name, bytearray()), size)
            case Remove(name):
                files.pop(name, None)
            case Sync():
                pass
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _write(file: bytearray, offset: int, data: bytes, dice: random.Random | None) -> None:
    """dice: not synced, so sectors of it got there by chance: none, all or some."""
    odds = 1.0 if dice is None else dice.choice((0.0, 1.0, dice.random()))
    for start, end in _sectors(offset, len(data)):
        if dice is None or dice.random() < odds:
            _resize(file, max(len(file), end))
            file[start:end] = data[start - offset : end - offset]


def _sectors(offset: int, size: int) -> Iterator[tuple[int, int]]:
    start, end = offset, offset + size
    while start < end:
        stop = min(end, start - start % SECTOR_BYTES + SECTOR_BYTES)
        yield start, stop
        start = stop


def _resize(file: bytearray, size: int) -> None:
    del file[size:]
    file.extend(bytes(size - len(file)))
