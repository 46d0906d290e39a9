"""The folder of one run: attachments go in as files and come out as files, however large.

    task.attachments ──> folder/in-0-samples.csv ──> agent ──> folder/chart.png ──> a copy ──> result.attachments

An agent is not trusted with paths: only a plain file directly in the folder is read, never through a link.
"""

import asyncio
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ioa_p2p.adapters.base import Attachment
from ioa_p2p.adapters.lines import File, is_file_name
from ioa_p2p.errors import AdapterError
from ioa_p2p.wire import limits

_COPY_BYTES = 1024 * 1024


class Scratch:
    """A private folder (mode 0700) for the agent, and one beside it for us; made by `open`, removed by `aclose`. What
    `take` gave is gone then. File work happens in threads."""

    def __init__(self, both: Path) -> None:
        self.folder, self._taken, self._both = both / "run", both / "out", both

    @classmethod
    async def open(cls) -> "Scratch":
        """Raises AdapterError('no-scratch') when the temporary folder cannot be written."""
        try:
            return cls(await asyncio.to_thread(_make))
        except OSError as fault:
            raise AdapterError("no-scratch", str(fault), "free some space in the temporary folder") from None

    async def put(self, attachments: Sequence[Attachment]) -> list[File]:
        """Write the inputs. Names come from peers, so a strange one becomes plain."""
        return await asyncio.to_thread(self._put, attachments)

    async def take(self, files: Sequence[File]) -> tuple[Attachment, ...]:
        """Copy the outputs to where the agent does not look. Raises AdapterError('bad-output' | 'oversized')."""
        return await asyncio.to_thread(self._take, files)

    async def aclose(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._both, ignore_errors=True)

    def _put(self, attachments: Sequence[Attachment]) -> list[File]:
        files: list[File] = []
        for number, each in enumerate(attachments):
            file = f"in-{number}-{each.name}" if is_file_name(each.name) else f"in-{number}"
            try:
                each.write(self.folder / file)
            except OSError as fault:
                raise AdapterError("no-scratch", str(fault), "free some space in the temporary folder") from None
            files.append(File(each.name, each.media_type, file))
        return files

    def _take(self, files: Sequence[File]) -> tuple[Attachment, ...]:
        left, taken = limits.ATTACHMENT_BYTES_MAX, list[Attachment]()
        for number, each in enumerate(files):
            path = self._taken / str(number)
            left -= _copy(self.folder, each.file, path, left)
            taken.append(Attachment(each.name, each.media_type, path))
        return tuple(taken)


def _make() -> Path:
    both = Path(tempfile.mkdtemp(prefix="ioa-run-"))
    (both / "run").mkdir(mode=0o700)
    (both / "out").mkdir(mode=0o700)
    return both


def _copy(folder: Path, file: str, path: Path, bytes_max: int) -> int:
    """A regular file directly in `folder`, out of the agent's reach; its size. No link is followed, no pipe can make
    us wait, and a file that still grows is cut off. Raises AdapterError."""
    if Path(file).name != file or "\0" in file:
        raise AdapterError("bad-output", f"not a file of the run's folder: {file[:100]!r}")
    try:
        with _open_plain(folder / file) as source, path.open("xb") as copy:
            size = _copy_bytes(source, copy, bytes_max + 1)
    except OSError as fault:
        raise AdapterError("bad-output", f"attachment {file[:100]!r}: {fault.strerror}") from None
    if size > bytes_max:
        raise AdapterError("oversized", f"attachments of more than {limits.ATTACHMENT_BYTES_MAX} bytes")
    return size


def _copy_bytes(source: BinaryIO, copy: BinaryIO, bytes_max: int) -> int:
    size = 0
    while size < bytes_max and (data := source.read(min(_COPY_BYTES, bytes_max - size))):
        copy.write(data)
        size += len(data)
    return size


def _open_plain(path: Path) -> BinaryIO:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "not a plain file")
    return os.fdopen(opened, "rb")
