"""The short form of `./dev sim adversary` and of the trials of `./dev sim teams` keeps the same bars."""

import importlib

import pytest

from bench.sim._trials import met, names_in
from tests.sim import adversary, trials

MODULES = [f"{package.__name__}.{name}" for package in (adversary, trials) for name in names_in(package)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.rpartition(".")[2])
def test_every_bar_holds_in_the_short_form(module: str) -> None:
    scenario = importlib.import_module(module)
    found = scenario.run(short=True)
    assert scenario.BARS.keys() <= found.keys()
    missed = {key: (found[key], bar) for key, bar in scenario.BARS.items() if not met(found[key], bar)}
    assert not missed
