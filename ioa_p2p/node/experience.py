"""What teams teach a node about others: how their agents did, and how busy their nodes last said they are.

team events ── BidHeard ──> load        Concluded, of a team that we launched ──> Past, durable ──> trust
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ioa_p2p.effects import Save
from ioa_p2p.node.trust import Past
from ioa_p2p.team.events import BidHeard, Concluded
from ioa_p2p.team.team import Team
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import NodeId

LOAD_FULL = 255  # as bids say it
JUDGED = {"succeeded": True, "failed": False, "expired": False, "dead-letter": False}  # a cancel is nobody's fault


class Experience:
    """own: our node. teams: all the team machine knows. Feed every event of that machine to `on_event`."""

    def __init__(
        self, own: NodeId, past: Past, teams: Mapping[bytes, Team], save: Callable[[Sequence[Save]], None]
    ) -> None:
        self._own = own
        self._past = past
        self._teams = teams
        self._save = save
        self._loads: OrderedDict[NodeId, float] = OrderedDict()

    def load(self, node: NodeId) -> float | None:
        """0 to 1 as the node last told with a bid; None if it never did."""
        return self._loads.get(node)

    def on_event(self, event: Any) -> None:
        if isinstance(event, BidHeard):
            self._loads[event.node] = event.load / LOAD_FULL
            self._loads.move_to_end(event.node)
            if len(self._loads) > limits.LOADS_KEPT_MAX:
                self._loads.popitem(last=False)
        elif isinstance(event, Concluded):
            self._concluded(self._teams[event.team])

    def _concluded(self, team: Team) -> None:
        state = team.state
        if state.roster.launcher != self._own:
            return
        results = [
            (row.spec.node, row.spec.agent, JUDGED[row.state.value])
            for row in state.tasks.values()
            if row.state.value in JUDGED and row.spec.node != self._own
        ]
        if saves := self._past.concluded(team.team, state.roster.created, results):
            self._save(saves)
