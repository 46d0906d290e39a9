"""`./dev sim core`: every scenario of the core, by many seeds, by directed schedules, and with planted faults.

    jobs ── a pool of processes ──> Run, Run, ...          violations: sound runs that broke an invariant
    some seeds again, in fresh processes with another hash seed: the same trace, or trace_repeats is 0

A run that fails prints the line that replays it.
"""

import argparse
import json
import os
import sys

from bench.sim import _runs
from tests.sim.core import SCENARIOS

SEEDS = 200
REPEATS = 3  # seeds of each scenario that are played once more


def main() -> int:
    options = _options()
    if options.replay is not None:
        return _runs.replay(options.scenario or SCENARIOS[0].name, options.replay)
    names = [scenario.name for scenario in SCENARIOS if options.scenario in (None, scenario.name)]
    results = _runs.play_all(list(_runs.jobs_of(names, options.seeds)), options.processes)
    mutants, sound = _runs.by_kind(results)
    found = {
        "violations": sum(bool(result.violation) for result in sound),
        "trace_repeats": int(_runs.repeats(results, REPEATS)),
        "mutants": len(mutants),
        "mutants_missed": sum(not result.violation for result in mutants),
        "runs": len(sound),
        "load_avg": round(os.getloadavg()[0], 2),
    }
    _runs.print_faults(results)
    print(json.dumps(found) if options.json else "\n".join(f"{name}: {value}" for name, value in found.items()))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim core", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="random runs of each scenario")
    parser.add_argument("--scenario", choices=sorted(_runs.BY_NAME), help="only this one")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play one seed and print its trace")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
