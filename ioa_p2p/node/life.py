"""One life of the node after another: whether the last one ended on purpose, and in which boot of the OS this one is.

    begin ──> Life for the team machine; written down as unfinished        end ──> written down as ended on purpose

A life that never came to its end was cut short: by a crash, or with its machine if the OS was booted anew since.
"""

from contextlib import suppress
from pathlib import Path

from ioa_p2p.effects import Save
from ioa_p2p.errors import PeerError, StorageError
from ioa_p2p.storage.base import Storage
from ioa_p2p.team.life import Life
from ioa_p2p.wire import codec

_ROW = ("node", b"life")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def begin(storage: Storage) -> Life:
    """A disk that refuses keeps nobody from starting; a row that cannot be read counts as a crash."""
    last = Life()
    with suppress(PeerError):
        last = codec.decode(storage.get(*_ROW) or b"", Life)
    life = Life(boot_id(), clean=last.clean)
    _write(storage, Life(life.boot))
    return life


def end(storage: Storage, life: Life) -> None:
    _write(storage, Life(life.boot, clean=True))


def boot_id() -> bytes:
    """Of this boot of the OS: the kernel's own id, or where there is none the minute in which it booted."""
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError:
        import psutil  # lazily: only where the kernel gives no id

        return b"%d" % round(psutil.boot_time() / 60)


def _write(storage: Storage, life: Life) -> None:
    with suppress(StorageError):
        storage.commit([Save(*_ROW, codec.encode(life))])
