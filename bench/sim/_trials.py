"""Scenarios of a package, one module each: their figures, and a bar for each figure.

package ── a pool of processes, one each ──> figures ── BARS ──> met, or MISSED
"""

import importlib
import multiprocessing
import operator
import pkgutil
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType

_HOLDS: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


def play_trials(
    package: ModuleType, chosen: Sequence[str] = (), *, processes: int = 2, short: bool = False
) -> dict[str, float]:
    """The figures of all (or the chosen) scenarios; on stderr what each took, and whether its bars are met."""
    names = chosen or names_in(package)
    modules = [f"{package.__name__}.{name}" for name in names]
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        results = pool.starmap(play, [(module, short) for module in modules], chunksize=1)
    figures: dict[str, float] = {}
    for module, (found, seconds) in zip(modules, results, strict=True):
        print(f"{module.rpartition('.')[2]}: {seconds:.0f} CPU-s", file=sys.stderr)
        figures |= found
        _tell_bars(importlib.import_module(module), found)
    return figures


def play(module: str, short: bool) -> tuple[dict[str, float], float]:
    """A scenario's figures, and the CPU seconds that it took."""
    began_s = time.process_time()
    found = {key: round(value, 5) for key, value in importlib.import_module(module).run(short).items()}
    return found, time.process_time() - began_s


def names_in(package: ModuleType) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.name.startswith("t"))


def met(figure: float, bar: str) -> bool:
    """Whether a figure keeps a bar such as ">= 0.99"."""
    relation, _, bound = bar.partition(" ")
    return _HOLDS[relation](figure, float(bound))


def _tell_bars(module: ModuleType, found: dict[str, float]) -> None:
    for key, bar in (module.BARS | getattr(module, "CPU_BARS", {})).items():
        print(f"{'met   ' if met(found[key], bar) else 'MISSED'} {key} {bar}", file=sys.stderr)
