"""`./dev sim disk`: power losses at random moments of a store's life (T18). What was acknowledged must be there.

one recorded life a seed ──> its share of `--points` ──> figures ──> bars: met, or MISSED
"""

import argparse
import json
import random
import sys
import time
from dataclasses import asdict

from tests.sim.disk import library
from tests.sim.power import Figures, lose_power, record

LIVES = 5  # each with other groups, at other places of the file
GROUPS = 300  # of commits a life: some checkpoints


def main() -> int:
    options = _options()
    sqlite = library()
    if sqlite is None:
        print("this Python's SQLite cannot be reached from here", file=sys.stderr)
        return 2
    began_s, figures = time.process_time(), Figures()
    for life in range(LIVES):
        dice = random.Random(f"{options.seed}/{life}")
        recording = record(sqlite, dice, options.groups)
        for _ in range(options.points // LIVES):
            lose_power(recording, dice, figures)
    print(f"{time.process_time() - began_s:.0f} CPU-s", file=sys.stderr)
    _tell_bars(figures)
    found = asdict(figures)
    print(json.dumps(found) if options.json else "\n".join(f"{name:12} {value}" for name, value in found.items()))
    return 0


def _tell_bars(figures: Figures) -> None:
    for name, met in (
        ("starts == points", figures.starts == figures.points),
        ("acked_lost == 0", not figures.acked_lost),
        ("votes_twice == 0", not figures.votes_twice),
    ):
        print(f"{'met   ' if met else 'MISSED'} {name}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim disk", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000)
    parser.add_argument("--groups", type=int, default=GROUPS, help="commits of one life")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
