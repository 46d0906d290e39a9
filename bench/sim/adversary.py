"""`./dev sim adversary`: every scenario of tests/sim/adversary, in full, each in a process of its own.

scenarios ── a pool of processes ──> figures ── bars ──> met, or MISSED
"""

import argparse
import json
import sys

from bench.sim._trials import play_trials
from tests.sim import adversary


def main() -> int:
    options = _options()
    figures = play_trials(adversary, options.scenario, processes=options.processes, short=options.short)
    figures |= {"islands": sum(apart)} if (apart := _islands(figures)) else {}
    print(json.dumps(figures) if options.json else "\n".join(f"{name:32} {value}" for name, value in figures.items()))
    return 0


def _islands(figures: dict[str, float]) -> list[float]:
    """Of every scenario that counts meshes which should have been one."""
    return [figure for name, figure in figures.items() if name.startswith("islands_")]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim adversary", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario", nargs="*", help="only these, such as t04_routers")
    parser.add_argument("--short", action="store_true", help="the form that the tests run")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
