"""T12: a team of five is cut in two, or one way, or but for one node between; half an hour later it is healed.

2 | 3, 2 ──x──> 3, 2 <──x── 3, 2 | bridge | 2      decisions and chat flow ── 30 min ── heal ──> one log, one chat

The smaller side decides nothing from ten beats on; after the healing a decision within three election timeouts, and
all chats equal within a minute. I1-I5 and I8 are watched all along.
"""

import random
from functools import partial
from itertools import product
from typing import Any

from ioa_p2p.effects import Now, Rows
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Say
from ioa_p2p.gossip.events import Said
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Committed
from ioa_p2p.team.timing import LAN, WAN
from tests.sim.duo import Duo
from tests.sim.election import Trial
from tests.sim.teams import NETWORK, TEAM, members
from tests.sim.world import World

BARS = {
    "minority_decisions": "== 0",
    "majority_silent": "== 0",
    "partition_l1_missed": "== 0",
    "partition_chats_late": "== 0",
}

SETTLE_S = 60.0
CUT_S = 1_800.0
QUIET_BEATS = 10
CHAT_S = 60.0
KINDS = ("split", "unheard", "deaf", "bridge")


def run(short: bool) -> dict[str, float]:
    plays = [play(seed) for seed in (range(4) if short else range(500))]
    return {name: sum(play[name] for play in plays) for name in BARS}


def play(seed: int, part: Any = Election) -> dict[str, float]:
    """One life, by the kinds in turn; every fifth with the quick beats of a local network."""
    team = _Team(seed, part, KINDS[seed % len(KINDS)])
    team.begin()
    team.world.run(SETTLE_S)
    team.cut()
    team.world.run(CUT_S)
    return team.heal()


class _Team(Trial):
    """Members with chats. smaller: the side that must decide nothing; empty where there is a bridge."""

    def __init__(self, seed: int, part: Any, kind: str) -> None:
        super().__init__(seed, part, 5, timing=WAN if seed % 5 else LAN)
        self._dice, self._kind = random.Random(f"partition {seed}"), kind
        self.cast.make = partial(self._make, self.cast.make)
        self._decided: dict[int, tuple[float, bytes]] = {}
        self._heard: dict[bytes, dict[bytes, int]] = {node: {} for node in self.nodes}
        self._said = dict.fromkeys(self.nodes, 0)
        self._cuts: set[tuple[bytes, bytes]] = set()
        self._smaller: frozenset[bytes] = frozenset()
        self._cut_s = 0.0
        self.world.on_event.append(self._note)

    def _make(self, election: Any, node: bytes, rows: Rows, rng: random.Random, now: Now) -> Duo:
        key = self.cast.keys[self.nodes.index(node)]
        return Duo(election(node, rows, rng, now), GossipMachine(key, NETWORK, rows, rng))

    def begin(self) -> None:
        self.start()
        for node in self.nodes:
            self.world.command(node, OpenChannel(TEAM, tuple(self.nodes)))
            self._talk(node)
        self._links(product(self.nodes, self.nodes), up=True)
        self.propose_often((10.0, 30.0))

    def _talk(self, node: bytes) -> None:
        self.world.command(node, Say(TEAM, "text", b"line"))
        self._said[node] += 1
        self.world.after(self._dice.uniform(20, 90), lambda: self._talk(node))

    def _links(self, pairs: Any, *, up: bool) -> None:
        for one, other in pairs:
            if one != other:
                self.world.command(one, LinkPeer(other, up))

    # -- faults

    def cut(self) -> None:
        """A link that is cut one way breaks at both ends; half of the nodes notice."""
        nodes = self._dice.sample(self.nodes, 5)
        one, rest = nodes[:2], nodes[3:] if self._kind == "bridge" else nodes[2:]
        if self._kind != "bridge":
            self._smaller = frozenset(one)
        there = set(product(one, rest)) if self._kind != "deaf" else set()
        back = set(product(rest, one)) if self._kind != "unheard" else set()
        self._cuts, self._cut_s = there | back, self.world.time_s
        for pair in self._cuts:
            self.world.cut(*pair)
        if self._dice.random() < 0.5:
            self.world.after(10.0, lambda: self._links(sorted(self._cuts), up=False))

    def heal(self) -> dict[str, float]:
        silent = not any(at > self._cut_s + CUT_S / 2 for at, _ in self._decided.values())
        forbidden_s = self._cut_s + QUIET_BEATS * self.cast.timing.beat_s
        stray = sum(at > forbidden_s and author in self._smaller for at, author in self._decided.values())
        self.world.mend()
        before = self.decided()
        self.world.after(1.0, lambda: self._links(sorted(self._cuts), up=True))
        self.propose_often((0.2, 1.0))
        l1 = self.world.run(3 * self.cast.timing.wait_s_max, until=lambda: self._decides_since(before))
        chats = self.world.run(CHAT_S, until=self._is_one_chat)
        return {
            "minority_decisions": stray,
            "majority_silent": silent,
            "partition_l1_missed": not l1,
            "partition_chats_late": not chats,
        }

    def _decides_since(self, before: int) -> bool:
        """All members know a decision newer than the healing."""
        return all(member.commit_index > before for member in members(self.world).values())

    def _is_one_chat(self) -> bool:
        return all(heard.get(node) == count for heard in self._heard.values() for node, count in self._said.items())

    def _note(self, world: World, node: bytes, event: Any) -> None:
        if isinstance(event, Committed):
            self._decided.setdefault(event.index, (world.time_s, event.entry.node))
        elif isinstance(event, Said):
            self._heard[node][event.entry.node] = event.entry.seq
