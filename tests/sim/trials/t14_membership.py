"""T14: nodes are let in, made voters and put out under every fault, and the team goes on.

begin ── admit, promote, remove, also of the coordinator; loss, cuts, crashes, lost disks, pauses ──> calm ──> L1

I1-I5, I8 and I9 are watched all along, and no honest word is refused. The figures say that the lives were hard: whoever
came late led, introduced itself, and who was put out asked for votes. Figure 8 and removed voters are also directed
schedules of `./dev sim teams`.
"""

from collections import Counter
from typing import Any

from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Committed, Elected
from ioa_p2p.wire.decision import Introduce, PreVoteRequest
from ioa_p2p.wire.step import Admit, Promote, Remove, roster_step
from tests.sim.teams import member_at
from tests.sim.turnover import Growing, live
from tests.sim.world import World

BARS = {
    "nodes_admitted": ">= 12",
    "voters_made": ">= 6",
    "nodes_removed": ">= 12",
    "coordinators_removed": ">= 1",
    "newcomers_elected": ">= 1",
    "newcomers_introduced": ">= 1",
    "removed_asked": ">= 1",
}

FIRST_SEED = 100_000  # other lives than those that are played as seeds


def run(short: bool) -> dict[str, float]:
    """Of 12 lives in the short form. A rule that breaks ends it."""
    met = sum((play(FIRST_SEED + number) for number in range(12 if short else 500)), Counter[str]())
    return {name: met[name] for name in BARS}


def play(seed: int, part: Any = Election) -> Counter[str]:
    """What was met in one life."""
    met = _Met()
    live(seed, part, met.begin)
    return met.counts


class _Met:
    """Counts each change once, whoever tells of it first."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._decided = 0
        self._founders: frozenset[bytes] = frozenset()

    def begin(self, trial: Growing) -> None:
        self._founders = frozenset(trial.nodes[: trial.cast.size])
        trial.world.on_event.append(self._event)
        trial.world.on_deliver.append(self._deliver)

    def _event(self, world: World, node: bytes, event: Any) -> None:
        if isinstance(event, Elected):
            self.counts["newcomers_elected"] += node == event.coordinator and node not in self._founders
        elif isinstance(event, Committed) and event.index > self._decided:
            self._decided = event.index
            self._count(event)

    def _count(self, decided: Committed) -> None:
        match roster_step(decided.entry.step):
            case Admit():
                self.counts["nodes_admitted"] += 1
            case Promote():
                self.counts["voters_made"] += 1
            case Remove(node):
                self.counts["nodes_removed"] += 1
                self.counts["coordinators_removed"] += node == decided.entry.node
            case _:
                pass

    def _deliver(self, world: World, source: bytes, target: bytes, message: Any) -> None:
        member = member_at(world, target)
        if isinstance(message, Introduce):
            self.counts["newcomers_introduced"] += 1
        elif isinstance(message, PreVoteRequest) and member is not None:
            self.counts["removed_asked"] += source in member.electorate.gone
