"""Where one node keeps its things: config, key, lock, database, control socket, log, reports.

    IOA_P2P_HOME=X, --name kitchen:  X/kitchen/{config.toml, node.key, lock, node.db, directory.db, control.sock, ...}
    otherwise:                       config.toml under the user's config folder, the rest under the data folder (XDG)

Folders are 0700, the key 0600 and apart from the configuration. A lost key is never silently made anew: the
node would be another one.
"""

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ioa_p2p.errors import StorageError, UsageError
from ioa_p2p.wire import ids, limits

APPLICATION = "ioa-p2p"
NAME_DEFAULT = "default"
_KEY_LETTERS = 2 * 32  # a seed of 32 B in hex


@dataclass(frozen=True, slots=True)
class Home:
    """The folders of the node called `name` on this machine."""

    name: str
    config_folder: Path
    data_folder: Path

    @property
    def config(self) -> Path:
        return self.config_folder / "config.toml"

    @property
    def key(self) -> Path:
        return self.data_folder / "node.key"

    @property
    def lock_file(self) -> Path:
        return self.data_folder / "lock"

    @property
    def database(self) -> Path:
        return self.data_folder / "node.db"

    @property
    def seed_list(self) -> Path:
        """The signed seed list, unless the config names another place; see `node.seed_list`."""
        return self.data_folder / "seeds.list"

    @property
    def directory(self) -> Path:
        """What the node heard of others' agents: a cache, apart from the database that must not be lost."""
        return self.data_folder / "directory.db"

    @property
    def log(self) -> Path:
        return self.data_folder / "node.log"

    @property
    def reports(self) -> Path:
        """One folder a team below it, with the answer's files."""
        return self.data_folder / "reports"

    @property
    def socket(self) -> Path:
        """The control socket; in a short runtime folder when the data folder's path is too long for one."""
        path = self.data_folder / "control.sock"
        return (
            path if len(os.fsencode(path)) <= limits.CONTROL_PATH_BYTES_MAX else _runtime_folder() / _short_name(path)
        )

    @property
    def exists(self) -> bool:
        return self.config.exists()

    def need(self) -> None:
        """Raises UsageError('not-initialised') if there is no such node."""
        if not self.exists:
            raise UsageError("not-initialised", f"no such node: {self.name!r}", "set it up: `ioa-p2p init`")

    def make_folders(self) -> None:
        """Make what is missing; close all to others (0700). Raises StorageError('no-folder')."""
        try:
            for folder in {self.config_folder, self.data_folder, self.socket.parent}:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)  # fails on a folder of somebody else: /tmp is open to all
        except OSError as fault:
            raise _no_folder(fault) from None

    def make_key(self) -> bytes:
        """Draw and write a new key; its 32 B seed. Raises UsageError('key-exists'), StorageError('no-folder')."""
        seed = secrets.token_bytes(32)
        try:
            handle = os.open(self.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise UsageError("key-exists", f"{self.key} holds a key", "move it away first if you mean it") from None
        except OSError as fault:
            raise _no_folder(fault) from None
        with os.fdopen(handle, "w") as file:
            file.write(f"{seed.hex()} {_check_of(seed)}\n")
            file.flush()
            os.fsync(file.fileno())
        return seed

    def forget(self) -> None:
        """Set aside what the node of the former key remembered: another must not take its votes for its own."""
        from ioa_p2p.storage.database import set_aside  # only here: cost start-up time
        from ioa_p2p.storage.seal import seal_of

        if self.database.exists():
            set_aside(self.database, time.time())
        seal_of(self.database).unlink(missing_ok=True)

    def read_key(self) -> bytes:
        """The key's 32 B seed. Raises UsageError('not-initialised' | 'key-missing' | 'key-open' | 'key-damaged')."""
        try:
            mode, text = self.key.stat().st_mode, self.key.read_bytes().strip()
        except (FileNotFoundError, NotADirectoryError):
            self.need()
            hint = "restore it from a backup, or become a new node with `ioa-p2p init --new-key`"
            raise UsageError("key-missing", f"the node's key is gone: {self.key}", hint) from None
        except OSError as fault:
            raise UsageError("key-damaged", f"{self.key}: {fault.strerror}", "restore it from a backup") from None
        if mode & 0o077:
            raise UsageError("key-open", f"others can read {self.key}", f"chmod 600 {self.key}")
        return self._seed_of(text)

    def _seed_of(self, text: bytes) -> bytes:
        """A key that was typed in may come without its check."""
        letters, _, check = text.decode(errors="replace").partition(" ")
        try:
            seed = bytes.fromhex(letters) if len(letters) == _KEY_LETTERS else b""
        except ValueError:
            seed = b""
        if not seed or check not in ("", _check_of(seed)):
            raise UsageError("key-damaged", f"{self.key} is not a key", "restore it from a backup")
        return seed

    @contextmanager
    def lock(self) -> Generator[None]:
        """Hold the data folder; only one process may. Raises StorageError('locked' | 'no-folder') naming the pid."""
        self.make_folders()
        try:
            handle = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise _no_folder(fault) from None
        try:
            self._take(handle)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield
            os.ftruncate(handle, 0)
        finally:
            os.close(handle)

    def holder(self) -> int | None:
        """The pid of the process that holds the lock now, if one does (0: it has not said)."""
        try:
            handle = os.open(self.lock_file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _pid_in(handle)
        else:
            return None
        finally:
            os.close(handle)

    def _take(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"node {self.name!r} already runs as process {_pid_in(handle) or '?'} ({self.data_folder})"
            hint = "stop it with `ioa-p2p down`, or run another with --name"
            raise StorageError("locked", message, hint) from None


def find_home(name: str | None, folder: str | None, environment: Mapping[str, str]) -> Home:
    """Flags first (`--name`, `--home`), then IOA_P2P_NAME and IOA_P2P_HOME, then XDG. Raises UsageError('bad-name')."""
    name = name or environment.get("IOA_P2P_NAME") or NAME_DEFAULT
    if not ids.is_agent_name(name):
        hint = f"use lower-case letters, digits and '-', at most {limits.AGENT_NAME_BYTES_MAX}"
        raise UsageError("bad-name", f"not a node name: {name[:60]!r}", hint)
    folder = folder or environment.get("IOA_P2P_HOME")
    if folder:
        place = Path(folder).expanduser().absolute() / name
        return Home(name, place, place)
    import platformdirs  # only here: costs start-up time

    return Home(
        name,
        platformdirs.user_config_path(APPLICATION) / name,
        platformdirs.user_data_path(APPLICATION) / name,
    )


def _check_of(seed: bytes) -> str:
    """A digit that was changed by the disk makes another key, which is another node: 8 letters show it."""
    return hashlib.blake2b(seed, digest_size=4).hexdigest()


def _no_folder(fault: OSError) -> StorageError:
    hint = "choose another place with --home or IOA_P2P_HOME"
    return StorageError("no-folder", f"{fault.filename}: {fault.strerror}", hint)


def _pid_in(handle: int) -> int:
    text = os.pread(handle, 20, 0).strip()
    return int(text) if text.isdigit() else 0


def _runtime_folder() -> Path:
    """A short folder of this user's own."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    short = runtime and len(os.fsencode(runtime)) <= limits.CONTROL_PATH_BYTES_MAX - 48
    return Path(runtime) / APPLICATION if runtime and short else Path("/tmp") / f"{APPLICATION}-{os.getuid()}"


def _short_name(path: Path) -> str:
    return hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest() + ".sock"
