"""`./dev sim core`: every scenario of the core, by many seeds, by directed schedules, and with planted faults.

    jobs ── a pool of processes ──> Run, Run, ...          violations: sound runs that broke an invariant
    some seeds again, in fresh processes with another hash seed: the same trace, or trace_repeats is 0

A run that fails prints the line that replays it.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.sim.core import SCENARIOS, regressions
from tests.sim.scenario import Run, Scenario, catch, run

SEEDS = 200
REPEATS = 3  # seeds of each scenario that are played once more
MUTANT_SEEDS = 60  # how long a planted fault may hide from random runs
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


class Job(NamedTuple):
    """kind: "seed", "schedule" or "mutant"; name: which one."""

    kind: str
    scenario: str
    name: str


def main() -> int:
    options = _options()
    if options.replay is not None:
        return _replay(options.scenario or SCENARIOS[0].name, options.replay)
    scenarios = [scenario for scenario in SCENARIOS if options.scenario in (None, scenario.name)]
    jobs = list(_jobs(scenarios, options.seeds))
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        results = dict(zip(jobs, pool.imap(play, jobs), strict=True))
    found = _measure(results, _repeats(results, scenarios))
    _print_faults(results)
    print(json.dumps(found) if options.json else "\n".join(f"{name}: {value}" for name, value in found.items()))
    return 0


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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim core", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="random runs of each scenario")
    parser.add_argument("--scenario", choices=sorted(BY_NAME), help="only this one")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play one seed and print its trace")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _jobs(scenarios: Iterable[Scenario], seeds: int) -> Iterator[Job]:
    """Planted faults first: they take longest."""
    for scenario in scenarios:
        yield from (Job("mutant", scenario.name, mutant.name) for mutant in scenario.mutants)
        yield from (Job("schedule", scenario.name, name) for name in scenario.schedules)
        chosen = sorted({*range(seeds), *regressions(scenario.name)})
        yield from (Job("seed", scenario.name, str(seed)) for seed in chosen)


def _measure(results: dict[Job, Run], repeats: bool) -> dict[str, int | float]:
    mutants = [result for job, result in results.items() if job.kind == "mutant"]
    sound = [result for job, result in results.items() if job.kind != "mutant"]
    return {
        "violations": sum(bool(result.violation) for result in sound),
        "trace_repeats": int(repeats),
        "mutants": len(mutants),
        "mutants_missed": sum(not result.violation for result in mutants),
        "runs": len(sound),
        "load_avg": round(os.getloadavg()[0], 2),
    }


def _repeats(results: dict[Job, Run], scenarios: Iterable[Scenario]) -> bool:
    """The first seeds of each scenario leave the same trace in another process."""
    names = {scenario.name for scenario in scenarios}
    jobs = [job for job in results if job.kind == "seed" and job.scenario in names and int(job.name) < REPEATS]
    return bool(jobs) and all(_trace_elsewhere(job) == results[job].trace for job in jobs)


def _trace_elsewhere(job: Job) -> str:
    command = [sys.executable, "-m", "bench.sim.core", "--scenario", job.scenario, "--replay", job.name]
    environment = {**os.environ, "PYTHONHASHSEED": str(int(job.name) + 1)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout.strip()


def _replay(scenario: str, seed: int) -> int:
    """Prints the trace, or what broke."""
    result = play(Job("seed", scenario, str(seed)))
    print(result.violation or result.trace)
    return 1 if result.violation else 0


def _print_faults(results: dict[Job, Run]) -> None:
    for job, result in results.items():
        if job.kind == "mutant":
            caught = f"{result.violation} [{result.label}]" if result.violation else "MISSED"
            print(f"mutant {job.scenario}/{job.name}: {caught}", file=sys.stderr)
        elif result.violation:
            replay = f"--replay {job.name}" if job.kind == "seed" else f"(schedule {job.name})"
            print(f"{result.violation}\n    ./dev sim core --scenario {job.scenario} {replay}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
