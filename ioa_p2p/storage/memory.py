"""Storage in memory: first-class, for tests, simulations and throw-away nodes."""

from collections.abc import Iterator, Sequence

from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError


class MemoryStorage:
    """Rows in a dict of dicts; as durable as the object."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, bytes]] = {}
        self._open = True
        self.damaged: set[str] = set()

    def commit(self, saves: Sequence[Save]) -> None:
        self._check_open()
        for save in saves:
            rows = self._rows.setdefault(save.space, {})
            if save.value is None:
                rows.pop(save.key, None)
            else:
                rows[save.key] = save.value

    def get(self, space: str, key: bytes) -> bytes | None:
        self._check_open()
        return self._rows.get(space, {}).get(key)

    def scan(self, space: str, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        self._check_open()
        rows = sorted(self._rows.get(space, {}).items())
        return iter([row for row in rows if row[0] >= start and (end is None or row[0] < end)])

    def spaces(self, prefix: str = "") -> list[str]:
        self._check_open()
        return sorted(space for space, rows in self._rows.items() if rows and space.startswith(prefix))

    def drop(self, space: str) -> None:
        self._check_open()
        self._rows.pop(space, None)

    def close(self) -> None:
        self._open = False

    def _check_open(self) -> None:
        if not self._open:
            raise StorageError("closed", "storage is closed")
