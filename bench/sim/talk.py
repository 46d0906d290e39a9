"""`./dev sim talk`: a million lines while one member is away (public failure 14): memory, disk, restart, catching up.

14 authors, each more lines than it may ──> listener ── restart ──> who was away gets what is kept ──> figures ──> bars
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from ioa_p2p.wire import limits
from tests.gossip.long_talk import AUTHORS_MAX, Figures, play

LINES = 1_000_000
RSS_MB_MAX = 96.0  # 8 B a line, and the newest lines of each author
RESTART_S_MAX = 20.0


def main() -> int:
    options = _options()
    authors = AUTHORS_MAX
    each = -(-options.lines // authors)
    with tempfile.TemporaryDirectory() as folder:
        figures = play(Path(folder), authors, each)
    _tell_bars(figures, authors * min(each, limits.CHAT_CHAIN_ENTRIES_MAX))
    found = {name: round(value, 3) for name, value in asdict(figures).items()}
    print(json.dumps(found) if options.json else "\n".join(f"{name:12} {value}" for name, value in found.items()))
    return 0


def _tell_bars(figures: Figures, may: int) -> None:
    for name, met in (
        (f"kept == {may}", figures.kept == may),
        ("back == kept", figures.back == figures.kept),
        ("repeated <= 0.3", figures.repeated <= 0.3),
        (f"rss_mb <= {RSS_MB_MAX:g}", figures.rss_mb <= RSS_MB_MAX),
        (f"restart_s <= {RESTART_S_MAX:g}", figures.restart_s <= RESTART_S_MAX),
    ):
        print(f"{'met   ' if met else 'MISSED'} {name}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim talk", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lines", type=int, default=LINES, help="by all authors together")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
