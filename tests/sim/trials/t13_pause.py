"""T13: the coordinator's process stops for a minute, or its machine sleeps, at any moment of a job; then it goes on.

job of minutes ── coordinator frozen (SIGSTOP: mail waits; suspend: mail is lost) ── 60 s ── it goes on ──> the end

Before it says anything as a coordinator it knows that it is none: nothing of its old term leaves it, and nothing that
it gave out under the old fence, and that was not decided before, starts anywhere.
"""

import random
from typing import Any

from ioa_p2p.team.commands import Policy
from ioa_p2p.team.events import StartTask
from ioa_p2p.team.machine import Teams
from ioa_p2p.wire.decision import Append
from tests.sim.checks import watch_election
from tests.sim.jobs import Jobs
from tests.sim.scenario import Violation
from tests.sim.team import finish
from tests.sim.team_checks import given_in, watch_team
from tests.sim.world import World

BARS = {
    "stale_accepted": "== 0",
    "spoke_before_step_down": "== 0",
    "pause_unreplaced": "== 0",
    "pause_unfinished": "== 0",
}

PAUSE_S = 60.0


def run(short: bool) -> dict[str, float]:
    plays = [play(seed) for seed in range(6 if short else 300)]
    return {name: sum(play[name] for play in plays) for name in BARS}


def play(seed: int, part: Any = Teams) -> dict[str, float]:
    """Even seeds stop the process, odd ones suspend the machine."""
    dice = random.Random(f"pause {seed}")
    jobs = Jobs(seed, machine=part, policy=Policy(goal_s=400))
    jobs.run_s = lambda spec: 1.0 + 12.0 * (spec.id[0] / 255)
    watch_team(jobs)
    watch_election(jobs.world, jobs.timing)
    jobs.start()
    jobs.launch()
    jobs.world.run(60, until=lambda: jobs.coordinator() is not None)
    jobs.world.run(dice.uniform(0.0, 15.0))
    return _Pause(jobs).figures(deaf=bool(seed % 2))


class _Pause:
    """One coordinator, frozen and thawed. old: the term that it led in; last: the newest entry that it had made."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        lead = jobs.coordinator()
        assert lead is not None
        self._lead, election = lead, jobs.teams()[lead].election
        self._old, self._known = election.term, self._newest()
        self._stale = self._spoke = 0

    def figures(self, *, deaf: bool) -> dict[str, float]:
        jobs, world = self._jobs, self._jobs.world
        world.freeze(self._lead, deaf=deaf)
        jobs.notice(self._lead, up=False)
        world.run(PAUSE_S)
        replaced = jobs.concluded_among(node for node in jobs.nodes if node != self._lead) or self._is_replaced()
        self._known = self._newest()
        world.on_send.append(self._on_send)
        world.on_event.append(self._on_event)
        world.thaw(self._lead)
        jobs.notice(self._lead, up=True)
        return {
            "pause_unreplaced": not replaced,
            "pause_unfinished": not self._ends(),
            "stale_accepted": self._stale,
            "spoke_before_step_down": self._spoke,
        }

    def _newest(self) -> int:
        """The highest index that a member other than the coordinator holds."""
        return max(team.election.last_index for node, team in self._jobs.teams().items() if node != self._lead)

    def _is_replaced(self) -> bool:
        return any(team.election.term > self._old for team in self._jobs.teams().values())

    def _ends(self) -> bool:
        try:
            finish(self._jobs)
        except Violation as broken:
            if broken.rule != "L2":
                raise
            return False
        return True

    def _on_send(self, world: World, source: bytes, target: bytes, message: Any) -> None:
        self._spoke += source == self._lead and isinstance(message, Append) and message.term <= self._old

    def _on_event(self, world: World, node: bytes, event: Any) -> None:
        if isinstance(event, StartTask):
            index, term = given_in(world, node, event.spec)
            self._stale += term <= self._old and index > self._known
