"""`./dev sim teams`: whole teams of 3, 5 and 7 under every fault, their elections alone, also while members
come and go, and teams as scenarios.

    seeds x {election, roster, team}, schedules, planted faults ──> violations, liveness_missed, mutants_missed
    tests/sim/trials: partitions, pauses, changes of the roster, mixed versions, histories ──> figures, bars

A run that fails prints the line that replays it and stays in tests/sim/regressions.txt for ever.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from bench.sim import _runs
from bench.sim._runs import Job
from bench.sim._trials import play_trials
from tests.sim import core, trials
from tests.sim.scenario import Run

SEEDS = 1_000
REPEATS = 20
SCENARIOS = ("election", "roster", "team")
PROGRESS = frozenset({"L1", "L2"})


def main() -> int:
    options = _options()
    if options.replay is not None:
        return _runs.replay("team", options.replay)
    results = _runs.play_all(list(_runs.jobs_of(SCENARIOS, options.seeds)), options.processes)
    found = _measure(results)
    _runs.print_faults(results)
    _keep(results)
    found |= play_trials(trials, processes=options.processes, short=options.short)
    found |= {"load_avg": round(os.getloadavg()[0], 2)}
    print(json.dumps(found) if options.json else "\n".join(f"{name:28} {value}" for name, value in found.items()))
    return 0


def _measure(results: dict[Job, Run]) -> dict[str, float]:
    mutants, sound = _runs.by_kind(results)
    return {
        "seeds": sum(job.kind == "seed" and job.scenario == "team" for job in results),
        "violations": sum(bool(result.violation) and result.rule not in PROGRESS for result in sound),
        "liveness_missed": sum(result.rule in PROGRESS for result in sound),
        "mutants": len(mutants),
        "mutants_missed": sum(not result.violation for result in mutants),
        "trace_repeats": int(_runs.repeats(results, REPEATS)),
    }


def _keep(results: dict[Job, Run]) -> None:
    """A seed that broke a rule is played for ever."""
    broken = [job for job, result in results.items() if job.kind == "seed" and result.violation]
    fresh = [job for job in broken if int(job.name) not in core.regressions(job.scenario)]
    with Path(core.REGRESSIONS).open("a", encoding="utf-8") as file:
        file.writelines(f"{job.scenario} {job.name} {results[job].violation}\n" for job in fresh)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim teams", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="random runs of each scenario")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play one seed of a whole team, print its trace")
    parser.add_argument("--short", action="store_true", help="the trials in the form that the tests run")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
