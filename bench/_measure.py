"""Shared by benches: medians over runs, one flat JSON object on stdout, words on stderr.

Every bench is `python -m bench.NAME [--json] [--runs N] [--small]`; it exits 0 when it measured, also when a bar
is missed.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence

Figures = dict[str, float]


def arguments(about: str) -> argparse.Namespace:
    """--json, --runs, --small, as every bench understands them."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--json", action="store_true", help="one flat JSON object on stdout")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a quick check that it works; figures mean little")
    return parser.parse_args()


def combine(runs: Sequence[Figures], how: Mapping[str, Callable[[Sequence[float]], float]]) -> Figures:
    """One figure a name over all runs: its median, unless `how` names another rule (min, sum)."""
    return {name: how.get(name, statistics.median)([run[name] for run in runs]) for name in runs[0]}


def report(figures: Figures, bars: Mapping[str, bool], *, runs: int, as_json: bool) -> None:
    """Print the figures, `runs` and `load_avg`; which bars are met goes to stderr."""
    figures = {name: round(value, 4) for name, value in figures.items()}
    figures |= {"runs": runs, "load_avg": round(os.getloadavg()[0], 2)}
    if as_json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:28} {value}")
    for bar, met in bars.items():
        say(f"{'met   ' if met else 'MISSED'} {bar}")


def say(*words: object) -> None:
    """Progress, for people."""
    print(*words, file=sys.stderr, flush=True)


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` (0..1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0.0
