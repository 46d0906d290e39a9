"""docs/public-failures.md names tests that exist."""

import re
import subprocess
import sys

import pytest

from tests.test_tidy import ROOT

PAGE = (ROOT / "docs" / "public-failures.md").read_text()
ROWS = {int(number): row for number, row in re.findall(r"^\| (\d+) \|(.*)$", PAGE, re.MULTILINE)}
NAMED = re.compile(r"`(tests/[^`]+::[^`]+)`")


def missing(names: list[str]) -> str:
    """What pytest says of tests that it cannot find; nothing runs."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=--import-mode=importlib", "--collect-only", "-q", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("number", [number for number in range(1, 21) if number != 18])
def test_each_failure_is_held_by_a_named_test(number: int) -> None:
    assert NAMED.search(ROWS[number])


def test_every_named_test_is_there() -> None:
    assert missing(NAMED.findall(PAGE)) == ""


@pytest.mark.parametrize(
    "name", ["tests/test_docs.py::test_no_such_thing", "tests/sim/test_core.py::test_one_seed_leaves_one_trace[nobody]"]
)
def test_a_name_that_is_not_there_is_noticed(name: str) -> None:
    assert "not found" in missing([*NAMED.findall(ROWS[6]), name])
