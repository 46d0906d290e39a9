"""`./dev sim linear`: real member processes killed and frozen at random; is what their clients saw one history?

seeds x {3, 5} voters (tests/live/voters.py) ── one after the other ──> histories ──> refused, bars

A refused seed is told. No run of processes repeats exactly, but its faults are drawn alike.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.linear import linearizable
from tests.live.voters import Play, play

SEEDS, SIZES, FAULTS = 8, (3, 5), 6


def main() -> int:
    options = _options()
    plays = [_play(seed, size) for seed in range(options.seeds) for size in SIZES]
    figures = {
        "histories": len(plays),
        "refused": sum(not sound for _, sound in plays),
        "operations": sum(len(found.history) for found, _ in plays),
        "kills": sum(found.kills for found, _ in plays),
        "freezes": sum(found.freezes for found, _ in plays),
        "deposed": sum(found.deposed for found, _ in plays),
    }
    print(f"{'MISSED' if figures['refused'] else 'met   '} refused == 0", file=sys.stderr)
    print(json.dumps(figures) if options.json else "\n".join(f"{name:12} {value}" for name, value in figures.items()))
    return 0


def _play(seed: int, size: int) -> tuple[Play, bool]:
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(play(Path(folder), seed, size, FAULTS))
    sound = linearizable(found.history)
    print(f"seed {seed}, {size} voters: {'one history' if sound else 'REFUSED'}", file=sys.stderr)
    return found, sound


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim linear", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="for each size of team")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
