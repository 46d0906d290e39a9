"""T25: half of a team is of a newer version; while it works one member after the other is updated.

newer: a field more in every message and step ── older: skip it        each older: stops, starts as newer, mid-work
"""

import random
from typing import Any

from ioa_p2p.team.machine import Teams
from tests.sim.checks import watch_election
from tests.sim.jobs import Jobs
from tests.sim.team_checks import watch_team
from tests.sim.versions import of_two_versions

BARS = {"mixed_lost_tasks": "== 0", "mixed_faults": "== 0", "mixed_unfinished": "== 0"}

AWAY_S = 1.0  # an update takes so long
END_S = 300.0


def run(short: bool) -> dict[str, float]:
    plays = [play(seed) for seed in range(4 if short else 200)]
    return {name: sum(play[name] for play in plays) for name in BARS}


def play(seed: int, part: Any = Teams) -> dict[str, float]:
    """mixed_faults: messages that a member refused."""
    dice, newer = random.Random(f"versions {seed}"), set[bytes]()
    jobs = Jobs(seed, machine=of_two_versions(newer, part))
    jobs.run_s = lambda spec: 1.0 + 6.0 * (spec.id[0] / 255)
    older = dice.sample(jobs.nodes, len(jobs.nodes) // 2)
    newer |= set(jobs.nodes) - set(older)
    watch_team(jobs)
    watch_election(jobs.world, jobs.timing)
    jobs.start()
    jobs.launch()
    jobs.world.run(60, until=lambda: len(jobs.runs) >= 1)
    for node in older:
        _update(jobs, node, newer)
        jobs.world.run(dice.uniform(0.5, 4.0))
    ended = jobs.world.run(END_S, until=jobs.concluded)
    rows = [row for team in jobs.teams().values() for row in team.state.tasks.values()]
    return {
        "mixed_lost_tasks": sum(row.state != "succeeded" for row in rows),
        "mixed_faults": sum(jobs.world.faults.values()),
        "mixed_unfinished": int(not ended),
    }


def _update(jobs: Jobs, node: bytes, newer: set[bytes]) -> None:
    jobs.crash(node)
    newer.add(node)
    jobs.world.run(AWAY_S)
    jobs.restart(node)
