"""Where bytes and machines meet: frames and datagrams in, typed messages out, and back.

    datagram ── Boxes.open ── decode ──> dht            link frame ── decode by kind ──> dht | gossip | teams
    machine ── Send ──> sealed datagram | encoded link frame ──> net

A peer whose frames are faulty too often is cut off; a faulty datagram costs a counter.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

from ioa_p2p.crypto.box import NONCE_BYTES, Boxes
from ioa_p2p.dht import commands as dht_commands
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip import commands as gossip_commands
from ioa_p2p.net.ports import Datagrams, Endpoint, Frames, LinkDown, LinkEvent, Links, LinkUp, RelayDown, RelayUp
from ioa_p2p.node.runtime import Driver
from ioa_p2p.team import commands as team_commands
from ioa_p2p.wire import codec, dht, gossip, limits
from ioa_p2p.wire.decision import DecisionMessage
from ioa_p2p.wire.link import LinkKind
from ioa_p2p.wire.team import TeamMessage

DECISION_MESSAGE = cast("type[DecisionMessage]", DecisionMessage)
TEAM_MESSAGE = cast("type[TeamMessage]", TeamMessage)
DIRECTORY_MESSAGE = cast("type[dht.Directory]", dht.Directory)
DATAGRAM = cast("type[dht.Datagram]", dht.Datagram)

INNOCENT = frozenset({"", "overloaded", "internal", "unknown-team"})
"""What does not count against a peer: no fault, faults of ours, and talk of a team that we know no more or not yet."""


class Switch:
    """Give it the drivers by `plug`, then hand `on_datagrams` and `on_events` to the ports."""

    def __init__(self, boxes: Boxes, datagrams: Datagrams, links: Links) -> None:
        self.faults: Counter[str] = Counter()
        self.on_heard: Callable[[bytes], None] = lambda node: None
        self.on_link: list[Callable[[LinkUp | LinkDown], None]] = []
        self.on_relay: list[Callable[[RelayUp | RelayDown], None]] = []
        self._boxes = boxes
        self._datagrams = datagrams
        self._links = links
        self._bad: Counter[bytes] = Counter()
        self._dht: Driver
        self._gossip: Driver
        self._teams: Driver

    def plug(self, dht: Driver, gossip: Driver, teams: Driver) -> None:
        self._dht, self._gossip, self._teams = dht, gossip, teams

    # -- in

    def on_datagrams(self, batch: Sequence[tuple[Endpoint, bytes]]) -> None:
        for source, data in batch:
            try:
                sender, plain = self._boxes.open(data)
                message = codec.decode(plain, DATAGRAM)
                _check_padding(message, data)
            except PeerError as fault:
                self.faults[f"datagram-{fault.code}"] += 1
                continue
            self.on_heard(sender)
            self._dht.message(dht.Contact(sender, source.host, source.port), message)

    def on_events(self, batch: Sequence[LinkEvent]) -> None:
        for event in batch:
            if isinstance(event, Frames):
                self._frames(event)
            elif isinstance(event, LinkUp | LinkDown):
                self._link(event)
            else:
                for listen in self.on_relay:
                    listen(event)

    def _link(self, event: LinkUp | LinkDown) -> None:
        up = isinstance(event, LinkUp)
        if not up:
            self._bad.pop(event.peer, None)
        neighbour = dht_commands.NeighbourUp(event.peer, event.hello.boot) if up else None
        self._dht.command(neighbour or dht_commands.NeighbourDown(event.peer))
        self._gossip.command(gossip_commands.LinkPeer(event.peer, up))
        self._teams.command(team_commands.LinkPeer(event.peer, up))
        for listen in self.on_link:
            listen(event)

    def _frames(self, event: Frames) -> None:
        for kind, body in event.frames:
            try:
                driver, message = self._open(kind, body)
            except PeerError as fault:
                self._count(event.peer, f"frame-{fault.code}")
                continue
            if driver.message(event.peer, message) not in INNOCENT:
                self._count(event.peer, None)

    def _open(self, kind: int, body: bytes) -> tuple[Driver, Any]:
        """Which machine the frame is for, and its typed message. Raises PeerError."""
        match kind:
            case LinkKind.SIGNED:
                return self._gossip, gossip.Entries(body)
            case LinkKind.CHANNEL | LinkKind.BLOB:
                return self._gossip, gossip.unpack(body)
            case LinkKind.DECISION:
                return self._teams, codec.decode(body, DECISION_MESSAGE)
            case LinkKind.TEAM:
                return self._teams, codec.decode(body, TEAM_MESSAGE)
            case LinkKind.DIRECTORY:
                return self._dht, codec.decode(body, DIRECTORY_MESSAGE)
            case _:
                raise PeerError("unknown-link-kind", f"kind {kind}")

    def _count(self, peer: bytes, code: str | None) -> None:
        """A fault of `peer`; too many on one link end the link."""
        if code is not None:
            self.faults[code] += 1
        self._bad[peer] += 1
        if self._bad[peer] > limits.LINK_BAD_FRAMES_MAX:
            self.faults["peer-cut"] += 1
            self._bad.pop(peer)
            self._links.cut(peer, "bad-frames")

    # -- out: the `send` of each driver

    def send_dht(self, to: Any, message: Any) -> None:
        """A datagram to a Contact, or a directory message to a linked node."""
        if not isinstance(to, dht.Contact):
            self._links.send(to, LinkKind.DIRECTORY, codec.encode(message))
            return
        try:
            sealed = self._boxes.seal(to.key, os.urandom(NONCE_BYTES), codec.encode(message))
        except PeerError as fault:
            self.faults[f"send-{fault.code}"] += 1
            return
        self._datagrams.send(Endpoint(to.host, to.port), sealed)

    def send_gossip(self, to: bytes, message: Any) -> None:
        self._links.send(to, *gossip.pack(message))

    def send_teams(self, to: bytes, message: Any) -> None:
        kind = LinkKind.DECISION if isinstance(message, DECISION_MESSAGE) else LinkKind.TEAM
        self._links.send(to, kind, codec.encode(message))


def _check_padding(message: dht.Datagram, data: bytes) -> None:
    """Or a forged source address would get a large answer for a few bytes. Raises PeerError('unpadded')."""
    if isinstance(message, dht.PaddedRequest) and len(data) < limits.DATAGRAM_PADDED_BYTES_MIN:
        raise PeerError("unpadded", f"{len(data)} bytes ask for a large answer")
