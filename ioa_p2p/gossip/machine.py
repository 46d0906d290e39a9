"""The gossip machine of a node: all its team channels and its blobs. Pure.

    Entries | Frontier | Want | Served | Held ──> the team's Channel ──┐
    BlobWant | BlobPiece | BlobNone ──> Blobs ─────────────────────────┼──> Save, Send, SetTimer, Emit
    OpenChannel | Say | LinkPeer | .. ──> one of them ──────────────────┘

On disk: "chat" team -> members, the channels that are open; chains and blobs as log.py and blobs.py say.
`rows` is kept and read again when old entries or blob pieces are served, so that they need not stay in memory.
"""

import random

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Rows, Save
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip import transcript
from ioa_p2p.gossip.blobs import Blobs
from ioa_p2p.gossip.channel import Channel
from ioa_p2p.gossip.commands import (
    CloseChannel,
    Command,
    DropBlob,
    ForgetTeam,
    GetBlob,
    LinkPeer,
    OpenChannel,
    PutBlob,
    PutManifest,
    PutPiece,
    Say,
    SetDecisions,
    Wake,
)
from ioa_p2p.gossip.events import Refused
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.gossip import (
    BlobNone,
    BlobPiece,
    BlobWant,
    Entries,
    Entry,
    Frontier,
    GossipMessage,
    Held,
    Served,
    Want,
    split,
)

_OPEN = "chat"


class GossipMachine:
    """key: this node's. network: 16 B of the mesh. rows: what was saved. rng: dice for peers and timers."""

    def __init__(self, key: NodeKey, network: bytes, rows: Rows, rng: random.Random) -> None:
        self._key, self._network, self._rows, self._rng = key, network, rows, rng
        self._channels: dict[bytes, Channel] = {}
        self._links: dict[bytes, None] = {}
        self._blobs = Blobs(rows, rng, self._peers_of)

    def seq(self, team: bytes, author: bytes) -> int:
        """How far we hold an author's chain; 0: nothing, or no such channel."""
        channel = self._channels.get(team)
        return channel.seq(author) if channel is not None else 0

    def start(self, now: Now) -> list[Effect]:
        """Go on with every channel that was open."""
        effects = self._blobs.clean(now)
        for team, members in self._rows(_OPEN):
            known = transcript.cuts(self._rows, team)
            effects += self._open(now, team, codec.decode(members, tuple[bytes, ...]), known)
        return effects

    def gaps(self, team: bytes) -> list[tuple[bytes, int, int]]:
        """(author, first, last): lines of an open channel that count as met though nobody had them."""
        channel = self._channels.get(team)
        return channel.gaps if channel else []

    # -- messages

    def handle_message(self, now: Now, peer: bytes, message: GossipMessage) -> list[Effect]:
        """A `wire.gossip` message from a link neighbour. Raises PeerError; a fault within a batch of entries ends
        the batch and is told as `Refused`, since the entries before it count."""
        if isinstance(message, Entries):
            return self._entries(now, peer, message.raw)
        channel = self._channel(peer, message.team)
        if channel is None:
            return [_unknown_team(peer)]
        if isinstance(message, Held):
            return channel.held(now, peer, message)
        if isinstance(message, Frontier):
            return channel.frontier(now, peer, message)
        if isinstance(message, Want):
            return channel.want(peer, message)
        if isinstance(message, Served):
            return channel.served(now, peer, message)
        return self._blob(now, peer, message)

    def _blob(self, now: Now, peer: bytes, message: BlobWant | BlobPiece | BlobNone) -> list[Effect]:
        if isinstance(message, BlobWant):
            return self._blobs.want(peer, message)
        if isinstance(message, BlobPiece):
            return self._blobs.piece(now, peer, message)
        return self._blobs.none(now, peer, message)

    def _entries(self, now: Now, peer: bytes, raw: bytes) -> list[Effect]:
        effects: list[Effect] = []
        try:
            for one in split(raw):
                effects += self._entry(now, peer, one)
        except PeerError as fault:
            if not effects:
                raise
            effects.append(Emit(Refused(peer, fault.code)))
        return effects

    def _entry(self, now: Now, peer: bytes, raw: bytes) -> list[Effect]:
        frame = frames.parse(raw)
        if frame.kind is not Kind.LOG:
            raise PeerError("wrong-kind", f"{frame.kind.name.lower()} among chat entries")
        entry = codec.decode(frame.body, Entry)
        channel = self._channel(peer, entry.team)
        return channel.accept(now, peer, frame, entry) if channel else [_unknown_team(peer)]

    def _channel(self, peer: bytes, team: bytes) -> Channel | None:
        """The open channel that `peer` may speak in, or None."""
        channel = self._channels.get(team)
        if channel is not None and peer not in channel.members:
            raise PeerError("not-a-member", "only members speak in a channel")
        return channel

    # -- timers

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        """name: "blobs", "blob-parts", or "<what>/<team hex>"; a timer of a channel that was closed is ignored."""
        if name == "blobs":
            return self._blobs.handle_timer(now)
        if name == "blob-parts":
            return self._blobs.clean(now)
        what, _, team = name.partition("/")
        channel = self._channels.get(bytes.fromhex(team))
        return channel.handle_timer(now, what) if channel else []

    # -- commands

    def handle_command(self, now: Now, command: Command) -> list[Effect]:
        """One of `gossip.commands`. Raises UsageError."""
        match command:
            case Say(team, kind, body, recalled):
                channel = self._of(team)
                return [] if recalled and channel.recalls(body) else channel.say(now, kind, body)
            case LinkPeer(node, up):
                return self._link(now, node, up)
            case OpenChannel(team, members, doubted, cuts):
                joined = self._join(now, team, members, dict(cuts))
                if doubted:
                    self._channels[team].doubt()
                return joined
            case CloseChannel(team):
                return self._close(team)
            case ForgetTeam(team, members, blobs):
                dropped = [effect for name in blobs for effect in self._blobs.drop(name)]
                return [*self._close(team), *transcript.forget(self._rows, team, members), *dropped]
            case SetDecisions(team, head):
                self._of(team).decisions = head
                return []
            case GetBlob(team, name):
                return self._blobs.get(now, self._of(team).team, name)
            case PutBlob(data):
                return self._blobs.put(data)
            case PutManifest(manifest):
                return self._blobs.put_manifest(now, manifest)
            case PutPiece(name, piece, data):
                return self._blobs.put_piece(now, name, piece, data)
            case DropBlob(name):
                return self._blobs.drop(name)
            case Wake():
                return [effect for channel in self._channels.values() for effect in channel.wake(now)]

    def _of(self, team: bytes) -> Channel:
        channel = self._channels.get(team)
        if channel is None:
            raise UsageError("unknown-team", f"no channel is open for team {team.hex()}", "open it first")
        return channel

    def _join(self, now: Now, team: bytes, members: tuple[bytes, ...], cuts: dict[bytes, int]) -> list[Effect]:
        unique = tuple(sorted(set(members)))
        if self._key.node not in unique or len(unique) > limits.CHAT_MEMBERS_MAX:
            raise UsageError("bad-members", f"{len(unique)} members", "name at most 64, this node among them")
        channel = self._channels.get(team)
        known = transcript.cuts(self._rows, team)
        fresh = {author: seq for author, seq in cuts.items() if author not in known}
        if channel and not fresh and unique == tuple(sorted(channel.members)):
            return []
        saves = [Save(_OPEN, team, codec.encode(unique))]
        saves += [transcript.save_cut(team, author, seq) for author, seq in fresh.items()]
        if channel:
            return [*saves, *channel.change(now, unique, fresh, self._links)]
        return [*saves, *self._open(now, team, unique, known | fresh)]

    def _open(self, now: Now, team: bytes, members: tuple[bytes, ...], cuts: dict[bytes, int]) -> list[Effect]:
        channel = Channel(team, members, self._key, self._network, self._rows, self._rng, cuts)
        self._channels[team] = channel
        return channel.open(now, self._links)

    def _close(self, team: bytes) -> list[Effect]:
        return [] if self._channels.pop(team, None) is None else [Save(_OPEN, team, None)]

    def _link(self, now: Now, node: bytes, up: bool) -> list[Effect]:
        if up:
            self._links[node] = None
        else:
            self._links.pop(node, None)
        effects: list[Effect] = []
        for channel in self._channels.values():
            if node in channel.members:
                effects += channel.relink(now, self._links)
        return effects + self._blobs.relink(now, node, up)

    def _peers_of(self, team: bytes) -> tuple[tuple[bytes, ...], int]:
        """Members with a live link, and how many other members there are."""
        channel = self._channels.get(team)
        if channel is None:
            return (), 0
        linked = sorted(member for member in channel.members if member in self._links)
        return tuple(linked), len(channel.members) - 1


def _unknown_team(peer: bytes) -> Effect:
    """No fault of the peer's: it opens the channel before us, or closes it after us."""
    return Emit(Refused(peer, "unknown-team"))
