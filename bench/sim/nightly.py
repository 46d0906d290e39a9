"""`./dev sim nightly`: every other simulation at full size, one after the other; all figures in one object.

each `./dev sim NAME --json` in a process of its own ──> {"NAME_figure": value, ..., "NAME_minutes": value}
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__)


def main() -> int:
    options = _options()
    figures: dict[str, float] = {}
    failed = 0
    for name in options.name or _names():
        print(f"== {name}", file=sys.stderr)
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", f"bench.sim.{name}", "--json"], stdout=subprocess.PIPE, check=False
        )
        failed += done.returncode != 0
        figures |= {f"{name}_{key}": value for key, value in _last_object(done.stdout).items()}
        figures[f"{name}_minutes"] = round((time.monotonic() - began_s) / 60, 1)
    figures["failed"] = failed
    print(json.dumps(figures) if options.json else "\n".join(f"{name:44} {value}" for name, value in figures.items()))
    return 1 if failed else 0


def _names() -> list[str]:
    """All modules beside this one that are no parts of others."""
    return sorted(file.stem for file in HERE.parent.glob("[a-z]*.py") if file != HERE)


def _last_object(output: bytes) -> dict[str, float]:
    lines = output.decode().strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim nightly", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="*", help="only these, such as teams")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
