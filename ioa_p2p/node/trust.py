"""How far we trust whom we found, before anything it says of itself counts.

    node key, agent ──> mine > granted > introduced > succeeded before > stranger        (and why)
                          │        │          │               └── Past: how the teams that we launched went
                          │        └── the allow-list          └── nobody introduces anybody yet

A level never depends on text of the agent: that is written by whoever wants to be found.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from ioa_p2p.effects import Rows, Save
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import NodeId

SPACE = "trust/past"
Agent = tuple[NodeId, str]


class Level(IntEnum):
    """The lower, the more trusted; hits are ordered by it first."""

    MINE = 0
    GRANTED = 1
    INTRODUCED = 2
    SUCCEEDED = 3
    STRANGER = 4

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Standing:
    """why: one short clause for people."""

    level: Level
    why: str


class Trust(Protocol):
    """What search asks of whoever knows about trust."""

    def standing(self, node: NodeId, agent: str) -> Standing: ...


class Acquaintances:
    """Trust by what a node knows without certificates: its own key, its allow-list, and how it went before.

    granted: the nodes on the list; whoever changes the list sets it anew. introduced: whether somebody we trust vouches
    for a node.
    """

    def __init__(
        self,
        own: NodeId,
        granted: Iterable[NodeId],
        past: "Past",
        introduced: Callable[[NodeId], bool] = lambda node: False,
    ) -> None:
        self._own = own
        self.granted = frozenset(granted)
        self._past = past
        self._introduced = introduced

    def standing(self, node: NodeId, agent: str) -> Standing:
        if node == self._own:
            return Standing(Level.MINE, "runs on this node")
        if node in self.granted:
            return Standing(Level.GRANTED, "its node is on the allow-list")
        if self._introduced(node):
            return Standing(Level.INTRODUCED, "somebody trusted vouches for its node")
        succeeded, failed = self._past.of(node, agent)
        if succeeded > failed:
            return Standing(Level.SUCCEEDED, f"did {succeeded} of {succeeded + failed} tasks for us")
        failures = f"; it failed {failed} of {succeeded + failed} tasks of ours" if failed else ""
        return Standing(Level.STRANGER, f"a stranger{failures}")


class Past:
    """How tasks of teams that we launched went, by agent; the last `limits.PAST_TEAMS_MAX` teams count.

    One row a team, so a conclusion told again after a restart counts once. Others' teams do not count: whoever
    launches one could let its friends succeed.
    """

    def __init__(self, rows: Rows) -> None:
        self._teams: dict[bytes, dict[Agent, tuple[int, int]]] = {}
        self._counts: Counter[tuple[Agent, bool]] = Counter()
        for key, row in rows(SPACE):
            self._add(key, _read(row))

    def of(self, node: NodeId, agent: str) -> tuple[int, int]:
        """(succeeded, failed)."""
        return self._counts[(node, agent), True], self._counts[(node, agent), False]

    def concluded(self, team: bytes, created_s: int, results: Iterable[tuple[NodeId, str, bool]]) -> list[Save]:
        """A team of ours is over; results: (node, agent, succeeded) of each of its tasks. What to save."""
        key = created_s.to_bytes(8) + team
        if key in self._teams:
            return []
        counts = Counter(((node, agent), succeeded) for node, agent, succeeded in results)
        agents = {agent: (counts[agent, True], counts[agent, False]) for agent, _ in counts}
        self._add(key, agents)
        rows = [(node, agent, *told) for (node, agent), told in agents.items()]
        return [Save(SPACE, key, codec.encode(rows)), *self._forget_oldest()]

    def _add(self, key: bytes, agents: dict[Agent, tuple[int, int]]) -> None:
        self._teams[key] = agents
        self._count(agents, 1)

    def _forget_oldest(self) -> list[Save]:
        excess: Sequence[bytes] = sorted(self._teams)[: max(0, len(self._teams) - limits.PAST_TEAMS_MAX)]
        for key in excess:
            self._count(self._teams.pop(key), -1)
        return [Save(SPACE, key, None) for key in excess]

    def _count(self, agents: dict[Agent, tuple[int, int]], sign: int) -> None:
        for agent, (succeeded, failed) in agents.items():
            self._counts[agent, True] += sign * succeeded
            self._counts[agent, False] += sign * failed


def _read(row: bytes) -> dict[Agent, tuple[int, int]]:
    """A damaged row is an experience less, no reason not to start."""
    try:
        rows = codec.decode(row, list[tuple[bytes, str, int, int]])
    except PeerError:
        return {}
    return {(node, agent): (succeeded, failed) for node, agent, succeeded, failed in rows}
