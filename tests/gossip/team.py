"""Parts for tests of the team channel: keys, a machine on a memory disk, and a net of them without weather."""

import random
from typing import Any

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Save, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Say
from ioa_p2p.gossip.events import Said
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.gossip import FIRST_PREVIOUS, Entry
from ioa_p2p.wire.ids import blake

NETWORK = b"a mesh for tests"
TEAM = b"sixteen byte id."
NOW = Now(1_800_000_000.0, 1_000.0)


def key(number: int) -> NodeKey:
    """Keys that sort as their numbers do not: order must never matter."""
    return NodeKey(blake(b"test key" + bytes([number])))


KEYS = [key(number) for number in range(16)]
NODES = [one.node for one in KEYS]


def signed(
    author: NodeKey,
    seq: int,
    previous: bytes = FIRST_PREVIOUS,
    body: bytes = b"",
    *,
    team: bytes = TEAM,
    seen: tuple[tuple[bytes, int], ...] = (),
    network: bytes = NETWORK,
    kind: Kind = Kind.LOG,
) -> bytes:
    """A whole entry frame of `author`."""
    entry = Entry(author.node, team, 0, seq, previous, seen, "text", body, int(NOW.wall))
    return envelope.seal(author, network, kind, entry)


def chain(author: NodeKey, length: int, tag: bytes = b"") -> list[bytes]:
    """Frames 1..length of `author`, each naming the one before."""
    frames: list[bytes] = []
    previous = FIRST_PREVIOUS
    for seq in range(1, length + 1):
        frames.append(signed(author, seq, previous, tag + b"line %d" % seq))
        previous = blake(frames[-1])
    return frames


class Member:
    """A machine on its own disk. `do` and `hear` carry out Saves and keep the rest for the test."""

    def __init__(self, number: int, disk: MemoryStorage | None = None, now: Now = NOW) -> None:
        self.key, self.node = KEYS[number], NODES[number]
        self.disk = disk or MemoryStorage()
        self.reads: list[str] = []
        self.machine = GossipMachine(self.key, NETWORK, self._rows, random.Random(number))
        self.effects = self._carry(self.machine.start(now))

    def _rows(self, space: str) -> list[tuple[bytes, bytes]]:
        self.reads.append(space)
        return list(self.disk.scan(space))

    def do(self, command: Any, now: Now = NOW) -> list[Effect]:
        return self._carry(self.machine.handle_command(now, command))

    def hear(self, peer: bytes, message: Any, now: Now = NOW) -> list[Effect]:
        return self._carry(self.machine.handle_message(now, peer, message))

    def time(self, name: str, now: Now = NOW) -> list[Effect]:
        return self._carry(self.machine.handle_timer(now, name))

    def restarted(self, now: Now = NOW) -> "Member":
        return Member(NODES.index(self.node), self.disk, now)

    def _carry(self, effects: list[Effect]) -> list[Effect]:
        self.disk.commit([effect for effect in effects if isinstance(effect, Save)])
        return effects


def opened(number: int, members: int = 3, *, linked: bool = True) -> Member:
    """Member `number` of a team of `members`, linked with all others."""
    member = Member(number)
    if linked:
        for node in NODES[:members]:
            if node != member.node:
                member.do(LinkPeer(node, True))
    member.do(OpenChannel(TEAM, tuple(NODES[:members])))
    return member


def sends(effects: list[Effect], to: bytes | None = None) -> list[Any]:
    return [effect.message for effect in effects if isinstance(effect, Send) and to in (None, effect.to)]


def events(effects: list[Effect], kind: type | None = None) -> list[Any]:
    found = [effect.event for effect in effects if isinstance(effect, Emit)]
    return [event for event in found if kind is None or isinstance(event, kind)]


def lines(effects: list[Effect]) -> list[tuple[bytes, int]]:
    return [(event.author, event.seq) for event in events(effects, Said)]


def pump(members: list[Member], effects: dict[bytes, list[Effect]], now: Now = NOW) -> list[tuple[bytes, Any]]:
    """Deliver all Sends among `members` until nothing moves; returns (node, event) in order. No timers."""
    by_node = {member.node: member for member in members}
    queue = [(source, effect) for source, some in effects.items() for effect in some]
    heard: list[tuple[bytes, Any]] = []
    while queue:
        source, effect = queue.pop(0)
        if isinstance(effect, Emit):
            heard.append((source, effect.event))
        elif isinstance(effect, Send) and effect.to in by_node:
            try:
                more = by_node[effect.to].hear(source, effect.message, now)
            except PeerError as fault:
                heard.append((effect.to, fault))
                continue
            queue += [(effect.to, one) for one in more]
    return heard


def say(member: Member, body: bytes = b"hello") -> list[Effect]:
    return member.do(Say(TEAM, "text", body))
