"""One link's conversation: frames, hello, pings. Pure: bytes in, frames out; beats are its only clock.

    bytes ── receive ──> frames for the node            (hello, ping and pong stay here)
    frames ── outbox.put ──> ... ── take ──> bytes to write, all at once

    dialler              acceptor
      ── HELLO ──────────────>      checks version and network; may hold its answer (see switchboard)
      <────────────── HELLO ──      now the link stands on both sides

Whatever ends a link is a PeerError whose code is the reason: 'frame-too-large', 'bad-hello', 'wrong-version',
'wrong-network', 'early-frame', 'bad-frames', 'no-hello', 'silent', 'stalled'. docs/wire.md, "Link".
"""

from collections.abc import Sequence

from ioa_p2p.errors import PeerError
from ioa_p2p.net.outbox import HEADER, Outbox, frame
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.link import Hello, LinkKind

_OWN_KINDS = LinkKind.PONG  # kinds up to this one are the link's own


class Session:
    """State of one link between the byte stream and the node."""

    def __init__(self, ours: Hello, *, dialled: bool) -> None:
        self.outbox = Outbox()
        self.theirs: Hello | None = None
        self.stands = False
        self.bad_frames = 0
        self._ours = ours
        self._dialled = dialled
        self._control: list[bytes] = [frame(LinkKind.HELLO, codec.encode(ours))] if dialled else []
        self._pong: bytes | None = None
        self._rest = bytearray()
        self._needed = 0
        self._heard = True
        self._quiet_beats = 0
        self._stalled_beats = 0
        self._taken_bytes = 0

    def receive(self, data: bytes) -> Sequence[tuple[int, bytes]]:
        """Bytes as they came. Returns the whole frames among them, (kind, body) in order."""
        self._heard = True
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return ()
            data = bytes(self._rest)
        frames: list[tuple[int, bytes]] = []
        done = self._split(data, frames)
        self._rest = bytearray(data[done:])
        return frames

    def accept(self) -> None:
        """The acceptor answers a good hello: the link stands."""
        assert self.theirs is not None, "only who was greeted accepts"
        self._control.append(frame(LinkKind.HELLO, codec.encode(self._ours)))
        self.stands = True

    @property
    def owes(self) -> bool:
        """A hello, ping or pong waits to be taken."""
        return bool(self._control) or self._pong is not None

    def take(self) -> bytes:
        """What is to be written next; empty when there is nothing."""
        parts, self._control = self._control, []
        if self._pong is not None:
            parts.append(frame(LinkKind.PONG, self._pong))
            self._pong = None
        if self.stands:
            parts += self.outbox.take()
        return b"".join(parts)

    def beat(self) -> None:
        """Once in LINK_BEAT_S: ping a quiet peer. Raises PeerError 'no-hello', 'silent' or 'stalled'."""
        self._quiet_beats = 0 if self._heard and self.stands else self._quiet_beats + 1
        self._heard = False
        if not self.stands:
            if self._quiet_beats > limits.LINK_HELLO_BEATS_MAX:
                raise PeerError("no-hello")
        elif self._quiet_beats > limits.LINK_SILENT_BEATS_MAX:
            raise PeerError("silent")
        elif self._quiet_beats:
            self._control.append(frame(LinkKind.PING, b""))
        self._check_progress()

    def _check_progress(self) -> None:
        moved = self.outbox.taken_bytes != self._taken_bytes or not self.outbox.waiting_bytes
        self._taken_bytes = self.outbox.taken_bytes
        self._stalled_beats = 0 if moved else self._stalled_beats + 1
        if self._stalled_beats > limits.LINK_STALL_BEATS_MAX:
            raise PeerError("stalled")

    def _split(self, data: bytes, frames: list[tuple[int, bytes]]) -> int:
        """Put whole frames into `frames`; return how many bytes they took."""
        at, size = 0, len(data)
        while size - at >= limits.LINK_HEADER_BYTES:
            length, kind = HEADER.unpack_from(data, at)
            end = at + 4 + length
            if length > (limits.LINK_FRAME_BYTES_MAX if self.theirs else limits.LINK_HELLO_BYTES_MAX):
                raise PeerError("frame-too-large", f"{length} bytes")
            if end > size:
                self._needed = end - at
                return at
            body = data[at + limits.LINK_HEADER_BYTES : end]
            at = end
            if length and kind > _OWN_KINDS and self.stands:
                frames.append((kind, body))
            else:
                self._own(kind if length else 0, body)
        self._needed = limits.LINK_HEADER_BYTES
        return at

    def _own(self, kind: int, body: bytes) -> None:
        """Frames that the node does not see."""
        if not self.stands:
            self._greeted(kind, body)
        elif kind == LinkKind.PING and len(body) <= limits.LINK_PING_BYTES_MAX:
            self._pong = body  # a flood of pings earns one pong
        elif kind != LinkKind.PONG:
            self.bad_frames += 1
            if self.bad_frames > limits.LINK_BAD_FRAMES_MAX:
                raise PeerError("bad-frames")

    def _greeted(self, kind: int, body: bytes) -> None:
        if kind != LinkKind.HELLO or self.theirs is not None:
            raise PeerError("early-frame", f"kind {kind} before the hello")
        theirs = _read_hello(body)
        if theirs.version != self._ours.version:
            raise PeerError("wrong-version", f"link version {theirs.version}; this node speaks {self._ours.version}")
        if theirs.network != self._ours.network:
            raise PeerError("wrong-network", f"mesh {theirs.network.hex()}; this node is in {self._ours.network.hex()}")
        self.theirs = theirs
        self.stands = self._dialled


def _read_hello(body: bytes) -> Hello:
    try:
        return codec.decode(body, Hello)
    except PeerError as fault:
        raise PeerError("bad-hello", str(fault)) from None
