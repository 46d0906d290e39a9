"""Runs of simulated scenarios in a pool of processes: seeds, directed schedules, planted faults.

names ── jobs_of ──> Job, ... ── play_all ──> {Job: Run}        repeats: the same traces from fresh processes
"""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.sim.core import SCENARIOS, regressions
from tests.sim.scenario import Run, catch, run

MUTANT_SEEDS = 60  # how long a planted fault may hide from random runs
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


class Job(NamedTuple):
    """kind: "seed", "schedule" or "mutant"; name: which one."""

    kind: str
    scenario: str
    name: str


def jobs_of(scenarios: Iterable[str], seeds: int) -> Iterator[Job]:
    """Planted faults first: they take longest."""
    for name in scenarios:
        scenario = BY_NAME[name]
        yield from (Job("mutant", name, mutant.name) for mutant in scenario.mutants)
        yield from (Job("schedule", name, each) for each in scenario.schedules)
        yield from (Job("seed", name, str(seed)) for seed in sorted({*range(seeds), *regressions(name)}))


def play_all(jobs: list[Job], processes: int) -> dict[Job, Run]:
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return dict(zip(jobs, pool.imap(play, jobs), strict=True))


def play(job: Job) -> Run:
    """One job in a process of the pool. A mutant's run without a violation was missed."""
    scenario = BY_NAME[job.scenario]
    match job.kind:
        case "seed":
            return run(job.name, lambda: scenario.play(int(job.name), scenario.sound))
        case "schedule":
            return run(job.name, lambda: scenario.schedules[job.name](scenario.sound))
        case _:
            mutant = next(mutant for mutant in scenario.mutants if mutant.name == job.name)
            return catch(scenario, mutant, range(MUTANT_SEEDS)) or Run(job.name)


def by_kind(results: dict[Job, Run]) -> tuple[list[Run], list[Run]]:
    """Of planted faults, and of the sound product."""
    mutants = [result for job, result in results.items() if job.kind == "mutant"]
    return mutants, [result for job, result in results.items() if job.kind != "mutant"]


def repeats(results: dict[Job, Run], seeds: int) -> bool:
    """The first seeds of each scenario leave the same trace in another process."""
    jobs = [job for job in results if job.kind == "seed" and int(job.name) < seeds]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return bool(jobs) and all(
            trace == results[job].trace for job, trace in zip(jobs, pool.map(_trace_elsewhere, jobs), strict=True)
        )


def replay(scenario: str, seed: int) -> int:
    """Prints the trace, or what broke."""
    result = play(Job("seed", scenario, str(seed)))
    print(result.violation or result.trace)
    return 1 if result.violation else 0


def print_faults(results: dict[Job, Run]) -> None:
    """On stderr: by what each planted fault was caught, and each broken run with the line that replays it."""
    for job, result in results.items():
        if job.kind == "mutant":
            caught = f"{result.violation} [{result.label}]" if result.violation else "MISSED"
            print(f"mutant {job.scenario}/{job.name}: {caught}", file=sys.stderr)
        elif result.violation:
            again = f"--replay {job.name}" if job.kind == "seed" else f"(schedule {job.name})"
            print(f"{result.violation}\n    ./dev sim core --scenario {job.scenario} {again}", file=sys.stderr)


def _trace_elsewhere(job: Job) -> str:
    command = [sys.executable, "-m", "bench.sim.core", "--scenario", job.scenario, "--replay", job.name]
    environment = {**os.environ, "PYTHONHASHSEED": str(int(job.name) + 1)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout.strip()
