"""Adapters are found by name, imported only when named; one that cannot come up is named and the rest goes on."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.adapters import registry
from ioa_p2p.errors import AdapterError, UsageError

ROOT = Path(__file__).parents[2]
HELLO = {"adapter": "python", "target": str(ROOT / "examples/hello/hello.py")}

STRANGER = """
import {imports}
from ioa_p2p.adapters.base import Failed
from ioa_p2p.wire.records import Card, Skill

class Adapter:
    def __init__(self, name, options):
        self.name, self.options = name, options
        if options.get("explode"):
            raise ZeroDivisionError("in a stranger's constructor")

    async def describe(self):
        if self.options.get("lie"):
            raise ValueError("in a stranger's describe")
        return Card(self.name, skills=(Skill("foreign.skill"),))

    async def run(self, task):
        yield Failed("never")

    async def aclose(self):
        if self.options.get("lie"):
            open(self.options["lie"], "w").close()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a stranger's distribution on the path, as pip would."""

    def put(name: str, imports: str = "os", module: str = "") -> None:
        module = module or f"stranger_{name}".replace("-", "_")
        (tmp_path / f"{module}.py").write_text(STRANGER.format(imports=imports))
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = {module}:Adapter\n")

    monkeypatch.syspath_prepend(str(tmp_path))
    return put


def test_the_built_in_names_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][registry.GROUP] == registry.BUILT_IN


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_a_built_in_adapter_loads(name: str) -> None:
    assert registry.load(name).__module__ == f"ioa_p2p.adapters.{name}"


def test_a_strangers_adapter_comes_through_the_same_door(install: Any) -> None:
    install("carrier-pigeon")
    made: Any = registry.make("bird", {"adapter": "carrier-pigeon", "loft": "north"})
    assert (made.name, made.options) == ("bird", {"loft": "north"})
    assert registry.names() == ["carrier-pigeon", "openai", "process", "python", "team"]


def test_nobody_takes_the_name_of_a_built_in(install: Any) -> None:
    install("python")
    assert registry.load("python").__module__ == "ioa_p2p.adapters.python"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        registry.make("a", {"adapter": "pyhton"})
    assert caught.value.code == "unknown-adapter"
    assert "process, python" in caught.value.hint


@pytest.mark.parametrize("table", [{}, {"adapter": 5}])
def test_a_table_without_an_adapter_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        registry.make("a", table)
    assert caught.value.code == "no-adapter"


def test_a_missing_library_is_named_with_what_to_install(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install("needy", imports="a_library_nobody_has")
    with pytest.raises(AdapterError) as caught:
        registry.load("needy")
    assert (caught.value.code, caught.value.hint) == ("missing-library", "install a_library_nobody_has")
    monkeypatch.setitem(registry.BUILT_IN, "needy", "stranger_needy:Adapter")
    with pytest.raises(AdapterError) as caught:
        registry.load("needy")
    assert caught.value.hint == "pip install 'ioa-p2p[needy]'"


def test_an_adapter_whose_import_explodes_is_an_adapter_error(install: Any) -> None:
    install("bomb", imports="os; 1 / 0")
    with pytest.raises(AdapterError) as caught:
        registry.load("bomb")
    assert caught.value.code == "broken-adapter"


async def test_agents_that_cannot_come_up_are_named_and_the_others_run(install: Any, tmp_path: Path) -> None:
    install("foreign")
    agents = await registry.start_all(
        {
            "hello": HELLO,
            "stranger": {"adapter": "foreign"},
            "explodes": {"adapter": "foreign", "explode": True},
            "lies": {"adapter": "foreign", "lie": str(tmp_path / "closed")},
            "typo": {"adapter": "pyhton"},
            "no-file": {"adapter": "python", "target": "no/such/file.py"},
            "no-command": {"adapter": "process", "command": []},
        }
    )
    assert sorted(agents.adapters) == sorted(agents.cards) == ["hello", "stranger"]
    assert {name: fault.code for name, fault in agents.failures.items()} == {
        "explodes": "broken-adapter",
        "lies": "broken-adapter",
        "typo": "unknown-adapter",
        "no-file": "no-such-file",
        "no-command": "bad-option",
    }
    assert "explodes" in str(agents.failures["explodes"])
    assert "closed" in os.listdir(tmp_path), "what it had started was ended"
    for adapter in agents.adapters.values():
        await adapter.aclose()


async def test_the_allowed_runs_at_a_time_are_told() -> None:
    agents = await registry.start_all({"one": HELLO, "three": {**HELLO, "concurrency": 3}})
    assert agents.concurrency == {"one": 1, "three": 3}
    for adapter in agents.adapters.values():
        await adapter.aclose()


def test_listing_the_names_imports_no_adapter() -> None:
    code = (
        "import sys; from ioa_p2p.adapters import registry; registry.names();"
        "print([name for name in sys.modules if name.startswith('ioa_p2p.adapters.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "['ioa_p2p.adapters.base', 'ioa_p2p.adapters.registry']"
