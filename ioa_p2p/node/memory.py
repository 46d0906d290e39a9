"""What a node must not forget, opened in whatever state the disk gives it back. What is lost is told, never guessed.

    node.db ── sound? ───────────────────────────────────────────────────> Storage
       │         └── damaged: whole rows to a new file, the old one aside ──┐
       └── not the file we left: copied, or put back from a backup ─────────┴──> doubt: no vote in the teams of before

A team in doubt goes on: this node stores and acknowledges what is decided, and learns from the others what it lost. It
gives no vote there, for it may have given one that it forgot.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError
from ioa_p2p.node import clock
from ioa_p2p.node.place import is_elsewhere, place_of
from ioa_p2p.storage.base import Storage
from ioa_p2p.storage.inspection import Damage, inspect, is_damage
from ioa_p2p.storage.salvage import salvage
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.team.recall import doubt
from ioa_p2p.wire.ids import node_text

LAST_BOOT = ("node", b"boot")
_PLACE = ("node", b"place")  # the row that tells which file of which machine this is
_OWNER = ("node", b"owner")  # and whose


class Loss(NamedTuple):
    """What the owner is told: what was lost and what is done about it; and what else to do."""

    text: str
    hint: str


class Memory(NamedTuple):
    storage: Storage
    losses: tuple[Loss, ...] = ()


def open_memory(path: Path, node: bytes) -> Memory:
    """The store of `node` in `path`. Raises StorageError('newer-file' | 'locked' | 'read-only' | 'disk-full' |
    'unreadable' | 'other-key'); then the file is as it was."""
    before = place_of(path)
    try:
        storage, losses = SqliteStorage(path), list[Loss]()
    except StorageError as fault:
        if not is_damage(fault):
            raise
        storage, losses = _salvaged(path, inspect(path) or Damage(str(fault)))
    try:
        _check_owner(path, storage, node)
        if is_elsewhere(storage.get(*_PLACE) or before, before):
            losses.append(_doubt_copy(storage))
        _note(storage, Save(*_OWNER, node), Save(*_PLACE, place_of(path)))
    except BaseException:
        storage.close()
        raise
    return Memory(storage, tuple(losses))


def count_start(storage: Storage, now_ms: int) -> int:
    """This start's id: unix ms, but larger than the last one's even if the clock went back."""
    start = max(now_ms, int.from_bytes(storage.get(*LAST_BOOT) or b"") + 1)
    _note(storage, Save(*LAST_BOOT, start.to_bytes(8)))
    return start


def _salvaged(path: Path, damage: Damage) -> tuple[Storage, list[Loss]]:
    finish = partial(_doubt, lost=damage.rows, all_teams=damage.unseen)
    aside = salvage(path, clock.now().wall, finish)
    text = f"the node's memory was damaged ({damage.what}): what is whole was kept, the rest is asked of its peers"
    return SqliteStorage(path), [Loss(text, f"the damaged file is {aside}; look at the disk")]


def _doubt_copy(storage: Storage) -> Loss:
    _doubt(storage, lost=(), all_teams=True)
    text = "this data folder was copied, or put back from a backup: the node does not vote in its teams of before"
    return Loss(text, "if another node runs with this key, stop one of them; else nothing: it learns from its peers")


def _doubt(storage: Storage, *, lost: Iterable[tuple[str, bytes]], all_teams: bool) -> None:
    storage.commit(doubt(lambda space: list(storage.scan(space)), lost, all_teams=all_teams))


def _check_owner(path: Path, storage: Storage, node: bytes) -> None:
    owner = storage.get(*_OWNER) or node
    if owner != node:
        what = f"{path} is the memory of {node_text(owner)}, but the key is that of {node_text(node)}"
        raise StorageError("other-key", what, "put the right key back, or move the database away to begin anew")


def _note(storage: Storage, *rows: Save) -> None:
    """Only what is news: a start writes nothing that it need not. A full disk keeps nobody from starting."""
    with suppress(StorageError):
        storage.commit([row for row in rows if storage.get(row.space, row.key) != row.value])
