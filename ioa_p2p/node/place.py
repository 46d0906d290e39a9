"""Which file of which machine a database is, so that a copy of it is known as one.

    machine's id 16 B | file's number u64be | when the file was born, ns u64be        zeros: the system does not say

A file that is copied, moved to another disk or put back from a backup is born anew; writing to it, or changing its
rights, does not change its birth. What is put back into the same file, or the whole disk with it, does not show here.
Source: statx(2), machine-id(5)
"""

import ctypes
import os
import struct
from pathlib import Path

from ioa_p2p.wire.ids import blake

MACHINE_ID = Path("/etc/machine-id")  # of the installed system; Linux alone has it
_MACHINE_BYTES = 16
_STATX_BYTES, _STATX_BTIME, _AT_FDCWD = 256, 0x800, -100
_BTIME_AT = 80  # seconds s64, nanoseconds u32, in struct statx


def place_of(path: Path) -> bytes:
    machine = MACHINE_ID.read_bytes().strip() if MACHINE_ID.is_file() else b""
    number, born_ns = (path.stat().st_ino % 2**64, _born_ns(path)) if path.exists() else (0, 0)
    named = blake(machine, _MACHINE_BYTES) if machine else bytes(_MACHINE_BYTES)
    return named + number.to_bytes(8) + born_ns.to_bytes(8)


def is_elsewhere(noted: bytes, found: bytes) -> bool:
    """A machine without a name, or a birth that nobody tells, proves nothing."""
    machines = {place[:_MACHINE_BYTES] for place in (noted, found)} - {bytes(_MACHINE_BYTES)}
    births = {place[_MACHINE_BYTES + 8 :] for place in (noted, found)} - {bytes(8)}
    numbers = {place[_MACHINE_BYTES : _MACHINE_BYTES + 8] for place in (noted, found)}
    return max(len(machines), len(births), len(numbers)) == 2


def _born_ns(path: Path) -> int:
    seconds = getattr(path.stat(), "st_birthtime", None)  # macOS and the BSDs
    if seconds is not None:
        return int(seconds * 1e9)
    found = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        failed = ctypes.CDLL(None).statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, found)
    except (AttributeError, OSError):  # a C library without it
        return 0
    if failed or not struct.unpack_from("=I", found)[0] & _STATX_BTIME:
        return 0
    whole, rest = struct.unpack_from("=qI", found, _BTIME_AT)
    return whole * 10**9 + rest
