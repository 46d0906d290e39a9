"""All links of one node, whatever carries their bytes. Pure: time and dice are handed in.

    connect, forget, cut ─┐                        ┌─> events: LinkUp, Frames, LinkDown
    opened, received,     ├──────> Switchboard ────┤
    closed, dial_failed ──┘            ^           └─> Wire.wake (there is something to take), Wire.close
                          beat, LINK_BEAT_S         due(now) ──> peers to dial

Between two nodes one link stands. When two peers dial each other, both keep the link dialled by the smaller
key; to spare one the change, the smaller key holds its answer to the other's dial until its own dial ends.
A link of a later boot always wins: its peer has restarted and the old link is a ghost.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa_p2p.errors import PeerError
from ioa_p2p.net.dialer import Dialer
from ioa_p2p.net.outbox import Outbox
from ioa_p2p.net.ports import Frames, LinkDown, LinkEvent, LinkUp
from ioa_p2p.net.session import Session
from ioa_p2p.wire import limits
from ioa_p2p.wire.link import Hello


class Wire(Protocol):
    """A byte stream to an authenticated peer, as the switchboard sees it."""

    def wake(self) -> None:
        """`link.session.take()` may now have bytes to write."""
        ...

    def close(self) -> None:
        """Close soon, without waiting; no `closed` is expected in return."""
        ...


@dataclass(eq=False, slots=True)
class Link:
    """One byte stream and its conversation; `held_beats` counts while the answer to a hello is held back. via: the
    peer that carries it, if it is a third one."""

    peer: bytes
    address: str
    dialled: bool
    wire: Wire
    session: Session
    via: bytes | None = None
    held_beats: int | None = None

    @property
    def outbox(self) -> Outbox:
        return self.session.outbox


class Switchboard:
    """`events` and `counters` are read by the carrier; `take_events` empties the former."""

    def __init__(self, own: bytes, hello: Hello, dice: random.Random) -> None:
        self.counters: Counter[str] = Counter()
        self.hello = hello
        self._own = own
        self._dialer = Dialer(dice)
        self._links: set[Link] = set()
        self._standing: dict[bytes, Link] = {}
        self._events: list[tuple[LinkEvent, Link]] = []

    # -- wishes of the node ---------------------------------------------------------------------------

    def connect(self, now: float, peer: bytes, addresses: Sequence[str]) -> None:
        if peer == self._own:
            self.counters["dial-self"] += 1
        elif not self._dialer.connect(now, peer, addresses):
            self.counters["too-many-wants"] += 1
        elif peer in self._standing:
            self._dialer.linked(now, peer)

    def forget(self, now: float, peer: bytes) -> None:
        """Stop wanting; close the link if we dialled it."""
        wanted = self._dialer.wants(peer)
        self._dialer.forget(peer)
        for link in [link for link in self._links if link.peer == peer and link.dialled and wanted]:
            self._end(now, link, "forgotten")

    def cut(self, now: float, peer: bytes, reason: str) -> None:
        if link := self._standing.get(peer):
            self._end(now, link, reason)

    def due(self, now: float) -> list[tuple[bytes, tuple[str, ...]]]:
        """Peers the carrier is to dial now; it answers with `opened` or `dial_failed`."""
        return self._dialer.due(now)

    # -- what the carrier reports ---------------------------------------------------------------------

    def opened(
        self, now: float, peer: bytes, address: str, wire: Wire, *, dialled: bool, via: bytes | None = None
    ) -> Link | None:
        """A byte stream to `peer` stands. None: refused (counted); the carrier closes it."""
        link = Link(peer, address, dialled, wire, Session(self.hello, dialled=dialled), via)
        refusal = self._refusal(link)
        if refusal:
            self.counters[f"refused {refusal}"] += 1
            if dialled:
                self._dialer.failed(now, peer)
            return None
        self._links.add(link)
        if dialled:
            wire.wake()
        return link

    def received(self, now: float, link: Link, data: bytes) -> None:
        """Bytes of the stream, in order; ignored after the link's end."""
        if link not in self._links:
            return
        greeted = link.session.theirs is not None
        try:
            frames = link.session.receive(data)
        except PeerError as fault:
            self._end(now, link, fault.code)
            return
        if not greeted and link.session.theirs is not None:
            self._greeted(now, link)
        if frames and link.session.stands and link in self._links:
            self._events.append((Frames(link.peer, frames), link))
        if link.session.owes:
            link.wire.wake()

    def closed(self, now: float, link: Link, reason: str) -> None:
        """The stream ended by itself or by the peer."""
        self._end(now, link, reason)

    def dial_failed(self, now: float, peer: bytes, reason: str) -> None:
        self.counters[f"dial-failed {reason}"] += 1
        self._dialer.failed(now, peer)
        for link in [link for link in self._links if link.peer == peer and link.held_beats is not None]:
            self._admit(now, link)

    def beat(self, now: float) -> None:
        """Every LINK_BEAT_S: pings, silences, held answers."""
        for link in list(self._links):
            try:
                link.session.beat()
            except PeerError as fault:
                self._end(now, link, fault.code)
                continue
            if link.held_beats is not None:
                link.held_beats += 1
                if link.held_beats > limits.LINK_HELD_BEATS_MAX:
                    self._admit(now, link)
            link.wire.wake()

    def close(self, now: float) -> None:
        for link in list(self._links):
            self._end(now, link, "closed")

    def take_events(self) -> list[tuple[LinkEvent, Link]]:
        """Events since the last call, each with the link it speaks of."""
        events, self._events = self._events, []
        return events

    # -- which links stand ----------------------------------------------------------------------------

    def _refusal(self, link: Link) -> str:
        """Why not even to begin; empty when welcome."""
        if link.peer == self._own:
            return "self"
        if sum(other.peer == link.peer for other in self._links) >= limits.LINKS_PER_PEER_MAX:
            return "per-peer"
        if link.dialled and not self._dialer.wants(link.peer):
            return "forgotten"
        if link.dialled:
            rival = self._standing.get(link.peer)
            return "duplicate" if rival and not self._prefers(link, rival) else ""
        if self._dialer.wants(link.peer):
            return ""
        if len(self._links) >= limits.LINKS_MAX:
            return "full"
        inbound = sum(not other.dialled for other in self._links)
        return "inbound-full" if inbound >= limits.LINKS_INBOUND_MAX else ""

    def _greeted(self, now: float, link: Link) -> None:
        """The peer's hello was good."""
        if not link.dialled and self._dialer.dialling(link.peer) and self._own < link.peer:
            link.held_beats = 0
        else:
            self._admit(now, link)

    def _admit(self, now: float, link: Link) -> None:
        """Let a greeted link stand, unless a better one does."""
        rival = self._standing.get(link.peer)
        if rival is not None and not self._prefers(link, rival):
            self._end(now, link, "duplicate")
            return
        if rival is not None:
            self._end(now, rival, "replaced")
        link.held_beats = None
        if not link.dialled:
            link.session.accept()
            link.wire.wake()
        self._stand(now, link)

    def _stand(self, now: float, link: Link) -> None:
        self._standing[link.peer] = link
        self._dialer.linked(now, link.peer)
        hello = link.session.theirs
        assert hello is not None, "only a greeted link stands"
        self._events.append((LinkUp(link.peer, hello, link.address, link.dialled, link.via), link))
        for other in [other for other in self._links if other.peer == link.peer and other.held_beats is not None]:
            self._end(now, other, "duplicate")

    def _prefers(self, new: Link, old: Link) -> bool:
        """Both ends come to the same answer: later boot, then the smaller dialler, then the newer link."""
        ours, theirs = new.session.theirs, old.session.theirs
        if ours and theirs and ours.boot != theirs.boot:
            return ours.boot > theirs.boot
        return self._dialler_of(new) <= self._dialler_of(old)

    def _dialler_of(self, link: Link) -> bytes:
        return self._own if link.dialled else link.peer

    def _end(self, now: float, link: Link, reason: str) -> None:
        """The one way a link ends; tells the node if it stood, and the dialer if it was a dial."""
        if link not in self._links:
            return
        self._links.discard(link)
        link.wire.close()
        self.counters["bad-frames"] += link.session.bad_frames
        if self._standing.get(link.peer) is link:
            del self._standing[link.peer]
            self._dialer.lost(now, link.peer)
            self.counters[f"down {reason}"] += 1
            self._events.append((LinkDown(link.peer, reason), link))
        else:
            self.counters[f"refused {reason}"] += 1
            if link.dialled:
                self._dialer.failed(now, link.peer)
