"""`./dev sim adversary`: every scenario of tests/sim/adversary, in full, each in a process of its own.

scenarios ── a pool of processes ──> figures ── bars ──> met, or MISSED
"""

import argparse
import importlib
import json
import multiprocessing
import operator
import pkgutil
import sys
import time
from collections.abc import Callable
from types import ModuleType

from tests.sim import adversary

_HOLDS: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


def main() -> int:
    options = _options()
    names = options.scenario or _names()
    with multiprocessing.get_context("spawn").Pool(options.processes, maxtasksperchild=1) as pool:
        results = pool.starmap(play, [(name, options.short) for name in names], chunksize=1)
    figures: dict[str, float] = {}
    for name, (found, seconds) in zip(names, results, strict=True):
        print(f"{name}: {seconds:.0f} CPU-s", file=sys.stderr)
        figures |= found
        _tell_bars(_module(name), found)
    figures |= {"islands": sum(apart)} if (apart := _islands(figures)) else {}
    print(json.dumps(figures) if options.json else "\n".join(f"{name:32} {value}" for name, value in figures.items()))
    return 0


def play(name: str, short: bool) -> tuple[dict[str, float], float]:
    """A scenario's figures, and the CPU seconds that it took."""
    began_s = time.process_time()
    found = {key: round(value, 5) for key, value in _module(name).run(short).items()}
    return found, time.process_time() - began_s


def met(figure: float, bar: str) -> bool:
    """Whether a figure keeps a bar such as ">= 0.99"."""
    relation, _, bound = bar.partition(" ")
    return _HOLDS[relation](figure, float(bound))


def _islands(figures: dict[str, float]) -> list[float]:
    """Of every scenario that counts meshes which should have been one."""
    return [figure for name, figure in figures.items() if name.startswith("islands_")]


def _names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(adversary.__path__) if module.name.startswith("t"))


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"tests.sim.adversary.{name}")


def _tell_bars(module: ModuleType, found: dict[str, float]) -> None:
    for key, bar in (module.BARS | getattr(module, "CPU_BARS", {})).items():
        print(f"{'met   ' if met(found[key], bar) else 'MISSED'} {key} {bar}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev sim adversary", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario", nargs="*", help="only these, such as t04_routers")
    parser.add_argument("--short", action="store_true", help="the form that the tests run")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
