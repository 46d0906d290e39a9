"""`./dev sim kills`: kill -9 of real processes at saves of each kind, before and after they are durable (failure 12).

deaths of one kind ── a folder and a row of processes ──> facts ──> figures ──> bars: met, or MISSED
"""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.live.lives import KINDS, Death, Lives

NTHS = (1, 2)  # groups of a kind: the first of a life, and the next
MORE = {"trust": (1,), "vote": (1, 2, 4), "decision": (1, 2, 6, 10)}  # but of some there is one only, or are many


def main() -> int:
    options = _options()
    with ThreadPoolExecutor(options.processes) as pool:
        found = list(pool.map(play, options.kind or KINDS))
    figures = {
        "kinds": len(found),
        "deaths": sum(lives.deaths for lives in found),
        "starts": sum(lives.starts for lives in found),
        "lost": sum(len(lives.lost) for lives in found),
        "votes_twice": sum(lives.votes_twice for lives in found),
        "unfinished": sum(lives.unfinished for lives in found),
    }
    for lives in found:
        print("".join(f"{each}\n" for each in lives.lost), end="", file=sys.stderr)
    met = figures["deaths"] >= 30 and figures["starts"] == figures["deaths"] + figures["kinds"]
    met = met and not figures["lost"] and not figures["votes_twice"]
    bar = "deaths >= 30, starts == deaths + kinds, lost == 0, votes_twice == 0"
    print(f"{'met   ' if met else 'MISSED'} {bar}", file=sys.stderr)
    print(json.dumps(figures) if options.json else "\n".join(f"{name:12} {value}" for name, value in figures.items()))
    return 0


def play(kind: str) -> Lives:
    """All deaths of one kind, one after another in one folder."""
    deaths = [Death(kind, nth, when) for nth in MORE.get(kind, NTHS) for when in ("before", "after")]
    with tempfile.TemporaryDirectory() as folder:
        return Lives(Path(folder)).live(deaths)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim kills", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", nargs="*", choices=[[], *KINDS], help="only these")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
