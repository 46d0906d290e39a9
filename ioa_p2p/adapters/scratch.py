"""The folder of one run: attachments go in as files and come out as files.

    task.attachments ──> folder/in-0-samples.csv ──> agent ──> folder/chart.png ──> result.attachments

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

from ioa_p2p.adapters.base import Attachment
from ioa_p2p.adapters.lines import File, is_file_name
from ioa_p2p.errors import AdapterError
from ioa_p2p.wire import limits


class Scratch:
    """A private folder (mode 0700), made by `open`, removed by `aclose`. File work happens in threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    async def open(cls) -> "Scratch":
        """Raises AdapterError('no-scratch') when the temporary folder cannot be written."""
        try:
            return cls(Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="ioa-run-")))
        except OSError as fault:
            raise AdapterError("no-scratch", str(fault), "free some space in the temporary folder") from None

    async def put(self, attachments: Sequence[Attachment]) -> list[File]:
        """Write the inputs. Names come from peers, so a strange one becomes plain."""
        return await asyncio.to_thread(self._put, attachments)

    async def take(self, files: Sequence[File]) -> tuple[Attachment, ...]:
        """Read the outputs. Raises AdapterError('bad-output' | 'oversized')."""
        return await asyncio.to_thread(self._take, files)

    async def aclose(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    def _put(self, attachments: Sequence[Attachment]) -> list[File]:
        files: list[File] = []
        for number, each in enumerate(attachments):
            file = f"in-{number}-{each.name}" if is_file_name(each.name) else f"in-{number}"
            try:
                (self.folder / file).write_bytes(each.data)
            except OSError as fault:
                raise AdapterError("no-scratch", str(fault), "free some space in the temporary folder") from None
            files.append(File(each.name, each.media_type, file))
        return files

    def _take(self, files: Sequence[File]) -> tuple[Attachment, ...]:
        left, taken = limits.ATTACHMENT_BYTES_MAX, list[Attachment]()
        for each in files:
            data = _read(self.folder, each.file, left)
            left -= len(data)
            taken.append(Attachment(each.name, each.media_type, data))
        return tuple(taken)


def _read(folder: Path, file: str, bytes_max: int) -> bytes:
    """A regular file directly in `folder`: no link is followed, no pipe can make us wait."""
    if Path(file).name != file or "\0" in file:
        raise AdapterError("bad-output", f"not a file of the run's folder: {file[:100]!r}")
    try:
        data = _read_plain(folder / file, bytes_max + 1)
    except OSError as fault:
        raise AdapterError("bad-output", f"attachment {file[:100]!r}: {fault.strerror}") from None
    if len(data) > bytes_max:
        raise AdapterError("oversized", f"attachments of more than {limits.ATTACHMENT_BYTES_MAX} bytes")
    return data


def _read_plain(path: Path, count: int) -> bytes:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        with os.fdopen(opened, "rb", closefd=False) as stream:
            return stream.read(count)
    finally:
        os.close(opened)
