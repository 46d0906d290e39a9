"""The scenarios of `./dev sim adversary` in their short form keep the same bars."""

import importlib
import pkgutil

import pytest

from bench.sim.adversary import met
from tests.sim import adversary

NAMES = sorted(module.name for module in pkgutil.iter_modules(adversary.__path__) if module.name.startswith("t"))


@pytest.mark.parametrize("name", NAMES)
def test_every_bar_holds_in_the_short_form(name: str) -> None:
    scenario = importlib.import_module(f"tests.sim.adversary.{name}")
    found = scenario.run(short=True)
    assert scenario.BARS.keys() <= found.keys()
    missed = {key: (found[key], bar) for key, bar in scenario.BARS.items() if not met(found[key], bar)}
    assert not missed
