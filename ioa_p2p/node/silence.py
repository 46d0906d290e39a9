"""Nodes that could not be reached of late: learned once, so that not every search waits for them again.

note(node) ──> has(node) for a while, twice as long each time
                 └── heard(node): a datagram, a link; news(record): issued since ──> forgotten at once
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ioa_p2p.effects import Now
from ioa_p2p.node import clock
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import NodeId
from ioa_p2p.wire.records import AgentRecord


@dataclass(frozen=True, slots=True)
class Quiet:
    """until_s: boot time; wait_s: how long that was; since_wall: when it was noted."""

    until_s: float
    wait_s: float
    since_wall: float


class Silence:
    """At most `limits.SILENT_NODES_MAX` nodes; over: the one noted longest ago is forgotten."""

    def __init__(self, now: Callable[[], Now] = clock.now) -> None:
        self._now = now
        self._quiet: OrderedDict[NodeId, Quiet] = OrderedDict()

    def __len__(self) -> int:
        return len(self._quiet)

    def has(self, node: NodeId) -> bool:
        quiet = self._quiet.get(node)
        return quiet is not None and quiet.until_s > self._now().boot

    def note(self, node: NodeId, *, blamed: bool = True) -> None:
        """It could not be reached. blamed: others could meanwhile, so it is not our own network that is out."""
        if self.has(node):
            return
        least, most = limits.SILENT_S
        last = self._quiet.pop(node, None)
        wait_s = min(most, 2 * last.wait_s) if last is not None and blamed else least
        now = self._now()
        self._quiet[node] = Quiet(now.boot + wait_s, wait_s, now.wall)
        if len(self._quiet) > limits.SILENT_NODES_MAX:
            self._quiet.popitem(last=False)

    def heard(self, node: NodeId) -> None:
        """It lives."""
        self._quiet.pop(node, None)

    def news(self, record: AgentRecord) -> None:
        """It lives if it issued this since."""
        quiet = self._quiet.get(record.node)
        if quiet is not None and not record.gone and record.issued > quiet.since_wall:
            self.heard(record.node)

    def clear(self) -> None:
        """We were away ourselves."""
        self._quiet.clear()
