"""The file of a transcript: written whole or not at all, read record by record. docs/transcripts.md, "The file".

line of text | length u32be, body | length u32be, body | ...        digest: BLAKE2b-256 over the bytes so far
"""

import hashlib
import os
import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.transcript import MAGIC, VERSION, Record, decode_record

_LENGTH = struct.Struct(">I")
_HINT = "a transcript is what `ioa-p2p team export` writes"


class Writer:
    """Appends records. `digest` covers all that was written."""

    def __init__(self, file: BinaryIO) -> None:
        self.bytes = 0
        self._file = file
        self._hash = hashlib.blake2b(digest_size=32)
        self._put(MAGIC + b"%d\n" % VERSION)

    @property
    def digest(self) -> bytes:
        return self._hash.digest()

    def write(self, record: Record) -> None:
        body = codec.encode(record)
        assert len(body) <= limits.TRANSCRIPT_RECORD_BYTES_MAX, "a record is a few signed frames at most"
        self._put(_LENGTH.pack(len(body)) + body)

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.bytes += len(data)


@contextmanager
def writing(path: Path) -> Generator[Writer]:
    """A new file (mode 0600) in the place of `path` once the block ends well; else nothing changed. Raises OSError."""
    partial = path.with_name(f".{path.name}.part")
    partial.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield Writer(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


class Reader:
    """Reads records one at a time. place: byte where the record begins; digest: of the bytes before it."""

    def __init__(self, file: BinaryIO) -> None:
        """Raises PeerError('not-a-transcript' | 'newer-transcript')."""
        self._file = file
        self._hash = hashlib.blake2b(digest_size=32)
        self.place = 0
        head = file.read(len(MAGIC))
        if head != MAGIC:
            raise PeerError("not-a-transcript", "this file is no transcript of a team", _HINT)
        head += file.readline(limits.TRANSCRIPT_HEAD_BYTES_MAX)
        self._check_version(head[len(MAGIC) :])
        self._pass(head)

    @property
    def digest(self) -> bytes:
        return self._hash.digest()

    def records(self) -> Iterator[Record]:
        """Raises PeerError: 'cut-short', 'record-too-large', 'undecodable'."""
        while head := self._file.read(_LENGTH.size):
            (length,) = _LENGTH.unpack(head.ljust(_LENGTH.size, b"\xff"))
            if len(head) == _LENGTH.size and length > limits.TRANSCRIPT_RECORD_BYTES_MAX:
                raise PeerError("record-too-large", f"a record of {length} bytes")
            body = self._file.read(length) if len(head) == _LENGTH.size else b""
            if len(head) < _LENGTH.size or len(body) < length:
                raise PeerError("cut-short", "the file ends in the middle of a record")
            yield decode_record(body)
            self._pass(head + body)

    def _pass(self, data: bytes) -> None:
        self._hash.update(data)
        self.place += len(data)

    @staticmethod
    def _check_version(line: bytes) -> None:
        if line == b"%d\n" % VERSION:
            return
        number = line.removesuffix(b"\n")
        if number.isdigit() and line.endswith(b"\n"):
            what = f"a transcript of version {int(number)}; this program reads {VERSION}"
            raise PeerError("newer-transcript", what, "update this program")
        raise PeerError("not-a-transcript", "this file is no transcript of a team", _HINT)
