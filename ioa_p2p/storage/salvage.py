"""A new store in the place of a damaged one, with every row of it that is whole.

    node.db (damaged) ── whole rows ──> node.db.new        node.db ──> node.db.damaged-<time>, node.db.new ──> node.db

The seal goes last: a crash in between leaves one that tells more commits than the store has, so damage is seen again.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

from ioa_p2p.effects import Save
from ioa_p2p.storage.base import Storage
from ioa_p2p.storage.database import create, set_aside, storage_errors
from ioa_p2p.storage.inspection import whole_rows
from ioa_p2p.storage.seal import seal_of
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.wire import limits


def salvage(path: Path, wall_s: float, finish: Callable[[Storage], None] = lambda _: None) -> Path:
    """The damaged file's new path. finish(new store): before it takes the old one's place.

    Raises StorageError('disk-full' | 'read-only' | 'unreadable').
    """
    fresh = path.with_name(f"{path.name}.new")
    with storage_errors(path):
        for leftover in (fresh, seal_of(fresh), Path(f"{fresh}-wal")):
            leftover.unlink(missing_ok=True)
        _fill(fresh, path, finish)
        aside = set_aside(path, wall_s)
        fresh.replace(path)
        seal_of(fresh).replace(seal_of(path))
        create(path)  # its name durable
    return aside


def _fill(fresh: Path, damaged: Path, finish: Callable[[Storage], None]) -> None:
    storage, rows = SqliteStorage(fresh), whole_rows(damaged)
    try:
        while batch := list(itertools.islice(rows, limits.SALVAGE_ROWS)):
            storage.commit([Save(row.space, row.key, row.value) for row in batch])
        finish(storage)
    finally:
        storage.close()
