"""T16, decisions: a member is away while thousands are made; back, it gets them all while both keepers come and go.

5 members, one away ── entries decided ── it is back, each keeper there in turns of 0.7 s ──> all it lacked, in order

The talk's part: tests/sim/gossip_away.py. Files: tests/node/test_keepers.py.
"""

from typing import Any

from ioa_p2p.team.election import Election
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import Append
from tests.sim.election import Trial
from tests.sim.teams import coordinator, members
from tests.sim.world import Weather, World

BARS = {"away_lacking": "== 0", "away_unordered": "== 0", "away_s": "<= 30", "away_bytes_ratio": "<= 1.3"}

BACK_S = 30.0
TURN_S = 0.7
SLOW = Weather(delay_s=(0.2, 0.2))  # so that what is asked for comes in many turns
BURST = 20  # entries between two events of the world


def run(short: bool) -> dict[str, float]:
    return play(1_000 if short else 5_000)


def play(entries: int, part: Any = Election) -> dict[str, float]:
    trial = Trial(1, part, 5, leads=2)
    trial.start()
    trial.world.run(10, until=lambda: coordinator(trial.world) is not None)
    lead = coordinator(trial.world)
    assert lead is not None
    assert lead.coordinator is not None
    *keepers, away = [node for node in trial.nodes[2:] if node != lead.coordinator]
    trial.crash(away)
    _decide(trial, lead.coordinator, entries)
    return _Back(trial, away, keepers).figures()


def _decide(trial: Trial, lead: bytes, entries: int) -> None:
    target = trial.decided() + entries
    while trial.decided() < target:
        for _ in range(min(BURST, target - trial.decided())):
            trial.propose(lead)
        trial.world.run(0.2)


class _Back:
    """One that was away, and what arrives at it."""

    def __init__(self, trial: Trial, away: bytes, keepers: list[bytes]) -> None:
        self._trial, self._away, self._keepers, self._bytes = trial, away, keepers, 0
        trial.world.on_deliver.append(self._count)

    def figures(self) -> dict[str, float]:
        trial, world = self._trial, self._trial.world
        wanted, began_s = trial.decided(), world.time_s
        world.weather = SLOW
        trial.crash(self._keepers[1])
        trial.restart(self._away)
        before = members(world)[self._away].last_index
        for turn in range(int(BACK_S / TURN_S)):
            on, off = self._keepers[:: 1 if turn % 2 else -1]
            world.after(TURN_S * (turn + 1), lambda on=on, off=off: self._swap(on, off))
        world.run(BACK_S, until=lambda: members(world)[self._away].commit_index >= wanted)
        took_s = world.time_s - began_s
        mine, *others = [self._frames(node, wanted) for node in (self._away, *self._staying())]
        return {
            "away_lacking": wanted - len(mine),
            "away_unordered": any(mine != theirs[: len(mine)] for theirs in others),
            "away_s": took_s,
            "away_bytes_ratio": self._bytes / sum(map(len, mine[before:])),
        }

    def _swap(self, on: bytes, off: bytes) -> None:
        self._trial.restart(on)
        self._trial.crash(off)

    def _staying(self) -> list[bytes]:
        return [node for node in self._trial.nodes if node not in (self._away, *self._keepers)]

    def _frames(self, node: bytes, last: int) -> list[bytes]:
        """Its decided entries 1..last."""
        log = members(self._trial.world)[node]
        found = [log.entry_at(index) for index in range(1, min(last, log.commit_index) + 1)]
        return [held.frame for held in found if held is not None]

    def _count(self, world: World, source: Any, target: Any, message: Any) -> None:
        if target == self._away and isinstance(message, Append):
            self._bytes += len(codec.encode(message))
