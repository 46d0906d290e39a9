"""A talk that never ends while one member is away: what the others hold, what a restart costs, what who is back gets.

    authors ── lines without end ──> listener (real disk) ── restart ──> who was away catches up from it, and only it

Public failure 14. Short form: test_long_talk.py; at full size: `./dev sim talk`.
"""

import random
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ioa_p2p.effects import Effect, Save, Send
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.wire.gossip import FIRST_PREVIOUS, Entries, batches
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NETWORK, NODES, NOW, TEAM, signed

AUTHORS_MAX = len(NODES) - 2
LISTENER, AWAY = NODES[-2:]
BATCH = 64  # lines of one author in a row


@dataclass(frozen=True)
class Figures:
    """lines: said. kept: of them, what the listener has. back: what the one that was away has in the end.
    disk_mb, rss_mb: what the listener's grew by. restart_s, catch_up_s: CPU. repeated: entries sent to the one that
    came back over those it lacked."""

    lines: int
    kept: int
    back: int
    disk_mb: float
    rss_mb: float
    restart_s: float
    catch_up_s: float
    repeated: float


class Ear:
    """A member that says nothing, on SQLite."""

    def __init__(self, file: Path, node: bytes) -> None:
        self.storage, self.heard = SqliteStorage(file), 0
        self.machine = GossipMachine(KEYS[NODES.index(node)], NETWORK, self._rows, random.Random(1))
        self._carry(self.machine.start(NOW))

    def _rows(self, space: str) -> list[tuple[bytes, bytes]]:
        return list(self.storage.scan(space))

    def _carry(self, effects: list[Effect]) -> list[Send]:
        self.storage.commit([effect for effect in effects if isinstance(effect, Save)])
        return [effect for effect in effects if isinstance(effect, Send)]

    def do(self, command: Any) -> list[Send]:
        return self._carry(self.machine.handle_command(NOW, command))

    def hear(self, peer: bytes, message: Any) -> list[Send]:
        self.heard += len(message.raw) if isinstance(message, Entries) else 0
        return self._carry(self.machine.handle_message(NOW, peer, message))

    def lines(self, authors: int) -> int:
        return sum(self.machine.seq(TEAM, author) for author in NODES[:authors])


def play(folder: Path, authors: int, lines_each: int) -> Figures:
    """The whole of it. The channel has two members more than authors."""
    members = (*NODES[:authors], LISTENER, AWAY)
    listener = Ear(folder / "listener.db", LISTENER)
    listener.do(OpenChannel(TEAM, members))
    for author in NODES[:authors]:
        listener.do(LinkPeer(author, True))
    before = psutil.Process().memory_info().rss
    for author, batch in _talk(authors, lines_each):
        listener.hear(author, batch)
    grown = psutil.Process().memory_info().rss - before
    listener.storage.close()
    disk = (folder / "listener.db").stat().st_size
    began_s = time.process_time()
    again = Ear(folder / "listener.db", LISTENER)
    restart_s = time.process_time() - began_s
    back, began_s = Ear(folder / "away.db", AWAY), time.process_time()
    back.do(OpenChannel(TEAM, members))
    _meet(again, back)
    kept = [raw for author in NODES[:authors] for raw in _frames(again, author)]
    figures = Figures(
        lines=authors * lines_each, kept=again.lines(authors), back=back.lines(authors), disk_mb=disk / 1e6,
        rss_mb=grown / 1e6, restart_s=restart_s, catch_up_s=time.process_time() - began_s,
        repeated=back.heard / max(1, sum(kept)) - 1,
    )  # fmt: skip
    again.storage.close()
    back.storage.close()
    return figures


def _talk(authors: int, lines_each: int) -> Iterator[tuple[bytes, Entries]]:
    """Batches of lines, the authors in turns; each its own chain."""
    previous = [FIRST_PREVIOUS] * authors
    for first in range(1, lines_each + 1, BATCH):
        for number in range(authors):
            frames: list[bytes] = []
            for seq in range(first, min(first + BATCH, lines_each + 1)):
                frames.append(signed(KEYS[number], seq, previous[number], b"a line of talk"))
                previous[number] = blake(frames[-1])
            yield from ((NODES[number], batch) for batch in batches(frames))


def _meet(one: Ear, other: Ear) -> None:
    """Only these two are linked: deliver between them until both are silent."""
    sides = {LISTENER: (one, AWAY), AWAY: (other, LISTENER)}
    mail = deque((AWAY, send.message) for send in one.do(LinkPeer(AWAY, True)))
    mail.extend((LISTENER, send.message) for send in other.do(LinkPeer(LISTENER, True)))
    while mail:
        to, message = mail.popleft()
        ear, peer = sides[to]
        mail.extend((peer, send.message) for send in ear.hear(peer, message) if send.to == peer)


def _frames(ear: Ear, author: bytes) -> list[int]:
    """Sizes of an author's frames on disk."""
    spaces = ear.storage.spaces(f"chat/{TEAM.hex()}/{author.hex()}/")
    return [len(raw) for space in spaces for _, raw in ear.storage.scan(space)]
