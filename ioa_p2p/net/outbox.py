"""Frames that wait to be written to one peer, in three lanes.

    caller's thread ── put ──> urgent: decisions, tasks    [frame, frame, ...] ─┐
                               talk: all else              [frame, frame, ...] ─┼─ take ──> writer's thread
                               bulk: pieces of blobs       [frame, frame, ...] ─┘

Frames of one lane keep their order; a lane waits only while those above it are empty, so that a large file delays
neither a beat nor a line. One thread puts and one takes, so each counter has one writer and no lock is needed. When a
lane is full, `put` refuses: whoever sends must be able to lose a frame, because a link may die with frames in flight;
logs repair.
"""

import struct
from collections import deque

from ioa_p2p.wire import limits
from ioa_p2p.wire.link import LinkKind

HEADER = struct.Struct(">IB")
_URGENT = frozenset({LinkKind.DECISION, LinkKind.TEAM})


def frame(kind: int, body: bytes) -> bytes:
    """`length u32be | kind u8 | body`; length counts kind and body. docs/wire.md, "Link"."""
    return HEADER.pack(len(body) + 1, kind) + body


class _Lane:
    """Frames in order, bounded in bytes and number."""

    def __init__(self, bytes_max: int) -> None:
        self.taken_bytes = 0  # only ever written by the thread that takes
        self._put_bytes = 0  # only ever written by the thread that puts
        self._frames: deque[bytes] = deque()
        self._bytes_max = bytes_max

    @property
    def waiting_bytes(self) -> int:
        return self._put_bytes - self.taken_bytes

    def put(self, data: bytes) -> bool:
        if len(self._frames) >= limits.LINK_QUEUE_FRAMES_MAX or self.waiting_bytes + len(data) > self._bytes_max:
            return False
        self._frames.append(data)
        self._put_bytes += len(data)
        return True

    def take(self, room_bytes: int) -> list[bytes]:
        """The oldest frames that fit, but at least one if any waits."""
        taken: list[bytes] = []
        size = 0
        while self._frames and (not taken or size + len(self._frames[0]) <= room_bytes):
            taken.append(self._frames.popleft())
            size += len(taken[-1])
        self.taken_bytes += size
        return taken


class Outbox:
    """Each lane is bounded for itself, so none takes another's room."""

    def __init__(self) -> None:
        self._urgent = _Lane(limits.LINK_URGENT_BYTES_MAX)
        self._talk = _Lane(limits.LINK_QUEUE_BYTES_MAX)
        self._bulk = _Lane(limits.LINK_BULK_BYTES_MAX)
        self._lanes = (self._urgent, self._talk, self._bulk)

    @property
    def waiting_bytes(self) -> int:
        return sum(lane.waiting_bytes for lane in self._lanes)

    @property
    def taken_bytes(self) -> int:
        return sum(lane.taken_bytes for lane in self._lanes)

    def put(self, kind: int, body: bytes) -> bool:
        """Queue one frame. False: its lane is full, or the frame is over LINK_FRAME_BYTES_MAX."""
        if len(body) >= limits.LINK_FRAME_BYTES_MAX:
            return False
        lane = self._urgent if kind in _URGENT else self._bulk if kind == LinkKind.BLOB else self._talk
        return lane.put(frame(kind, body))

    def take(self) -> list[bytes]:
        """One write's worth, the upper lane first; a piece of a blob only when nothing else waits."""
        for lane in (self._urgent, self._talk):
            if taken := lane.take(limits.LINK_WRITE_BYTES_MAX):
                return taken
        return self._bulk.take(limits.LINK_BULK_WRITE_BYTES_MAX)
