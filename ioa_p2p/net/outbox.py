"""Frames that wait to be written to one peer.

    caller's thread ── put ──> [frame, frame, ...] ── take ──> writer's thread

One thread puts and one takes, so each counter has one writer and no lock is needed. When full, `put` refuses:
whoever sends must be able to lose a frame, because a link may die with frames in flight; logs repair.
"""

import struct
from collections import deque

from ioa_p2p.wire import limits

HEADER = struct.Struct(">IB")


def frame(kind: int, body: bytes) -> bytes:
    """`length u32be | kind u8 | body`; length counts kind and body. docs/wire.md, "Link"."""
    return HEADER.pack(len(body) + 1, kind) + body


class Outbox:
    """Bounded by LINK_QUEUE_BYTES_MAX and LINK_QUEUE_FRAMES_MAX."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._put_bytes = 0  # only ever written by the thread that puts
        self.taken_bytes = 0  # only ever written by the thread that takes

    @property
    def waiting_bytes(self) -> int:
        return self._put_bytes - self.taken_bytes

    def put(self, kind: int, body: bytes) -> bool:
        """Queue one frame. False: full, or the frame is over LINK_FRAME_BYTES_MAX."""
        size = len(body) + limits.LINK_HEADER_BYTES
        if len(body) >= limits.LINK_FRAME_BYTES_MAX or len(self._frames) >= limits.LINK_QUEUE_FRAMES_MAX:
            return False
        if self.waiting_bytes + size > limits.LINK_QUEUE_BYTES_MAX:
            return False
        self._frames.append(frame(kind, body))
        self._put_bytes += size
        return True

    def take(self) -> list[bytes]:
        """The oldest frames, at most LINK_WRITE_BYTES_MAX of them (but at least one, if any waits)."""
        taken: list[bytes] = []
        size = 0
        while self._frames and (not taken or size + len(self._frames[0]) <= limits.LINK_WRITE_BYTES_MAX):
            taken.append(self._frames.popleft())
            size += len(taken[-1])
        self.taken_bytes += size
        return taken
