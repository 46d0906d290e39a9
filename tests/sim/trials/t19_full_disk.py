"""T19: one member's disk is full for ten minutes while the team works; then there is room again.

job ── disk of coordinator, worker, launcher or another full ── 600 s, the others go on ── room ──> it follows in 30 s

Nothing leaves it that depends on what could not be saved, and nothing is forgotten that it had promised: the rules are
watched all along. Half of the seeds kill it while it is full: it starts from what is on its disk.
"""

import random
from typing import Any

from ioa_p2p.team.commands import Policy
from ioa_p2p.team.machine import Teams
from tests.sim.checks import watch_election
from tests.sim.jobs import CAST, Jobs
from tests.sim.scenario import Violation
from tests.sim.team import finish
from tests.sim.team_checks import watch_team

BARS = {"full_unresumed": "== 0", "full_stopped_others": "== 0", "full_unfinished": "== 0"}

FULL_S = 600.0
RESUME_S = 30.0
RUN_S = 240.0  # a job of three such runs in a row outlasts it
HOMES = {
    "charter": "device-2",
    "writer": "device-3",
    "analyst-b": "device-1",
    "charter-b": "device-3",
    "writer-b": "device-2",
}


def run(short: bool) -> dict[str, float]:
    plays = [play(seed) for seed in ((0, 1, 6, 7) if short else range(200))]
    return {name: sum(play[name] for play in plays) for name in BARS}


def play(seed: int, part: Any = Teams) -> dict[str, float]:
    """Seeds take turns in whose disk is full; every second round it is killed in the middle."""
    dice = random.Random(f"full disk {seed}")
    spares = {f"{name}-b": CAST[name] for name in ("analyst", "charter", "writer")}
    jobs = Jobs(seed, CAST | spares, HOMES, machine=part, policy=Policy(goal_s=3_000))
    jobs.run_s = lambda spec: RUN_S * dice.uniform(0.5, 1.0)
    watch_team(jobs)
    watch_election(jobs.world, jobs.timing)
    jobs.start()
    jobs.launch()
    jobs.world.run(60, until=lambda: len(jobs.runs) >= 3)
    jobs.world.run(dice.uniform(0.0, 30.0))
    node = _whose(jobs, seed, dice)
    jobs.world.hosts[node].full = True
    if seed // 4 % 2:
        jobs.world.run(dice.uniform(0, FULL_S / 2))
        _restart(jobs, node)
    jobs.world.run(FULL_S)
    stopped = not _moves(jobs, node)
    jobs.world.hosts[node].full = False
    resumed = jobs.world.run(RESUME_S, until=lambda: _follows(jobs, node))
    return {"full_unresumed": not resumed, "full_stopped_others": stopped, "full_unfinished": not _ends(jobs)}


def _whose(jobs: Jobs, seed: int, dice: random.Random) -> bytes:
    lead, workers = jobs.coordinator(), [run.node for run in jobs.runs if not run.over]
    assert lead is not None
    others = [node for node in jobs.nodes if node not in (lead, jobs.asker, *workers)]
    return (lead, workers[0], jobs.asker, dice.choice(others))[seed % 4]


def _restart(jobs: Jobs, node: bytes) -> None:
    jobs.crash(node)
    jobs.restart(node)


def _moves(jobs: Jobs, node: bytes) -> bool:
    """The others have a coordinator among them that a majority follows, or know the end."""
    others = [other for other in jobs.nodes if other != node]
    teams = jobs.teams(others)
    if jobs.concluded_among(others):
        return True
    leads = [team.coordinator for team in teams.values()]
    most = max(set(leads), key=leads.count)
    return most in others and 2 * leads.count(most) > len(jobs.nodes)


def _follows(jobs: Jobs, node: bytes) -> bool:
    """It decides with the others again: it knows all that any other knows to be decided, and who leads."""
    teams = jobs.teams()
    if jobs.world.hosts[node].unsynced or node not in teams:
        return False
    mine, others = teams[node], [team for other, team in teams.items() if other != node]
    known = max(team.election.commit_index for team in others)
    led = mine.state.conclusion is not None or mine.coordinator is not None
    return led and mine.election.commit_index >= known


def _ends(jobs: Jobs) -> bool:
    try:
        finish(jobs)
    except Violation as broken:
        if broken.rule != "L2":
            raise
        return False
    return True
