"""examples/demo.py without its processes: what it sees, whom it kills, what it calls a success."""

import random
from pathlib import Path
from typing import Any

import pytest

from examples.asking import Seen
from examples.demo import ASKER, DEVICES, PHASES, PLACES, SEEDS, Demo, cost_told, model_named
from examples.mesh import Mesh, MeshNode
from ioa_p2p.cli.output import Output


def demo(kill: str | None = None, stressed: str | None = "kitchen") -> Demo:
    mesh = Mesh(Path("/nowhere"))
    mesh.nodes = {name: MeshNode(name, Path("/nowhere"), f"id of {name}") for name in (ASKER, *PLACES)}
    return Demo(mesh, Output(), random.Random(1), kill, stressed)


def task(number: int, node: str, state: str = "running") -> dict[str, Any]:
    return {"kind": "task", "task": str(number), "node": f"id of {node}", "state": state}


def good(**other: Any) -> dict[str, Any]:
    figures = {
        "outcome": "concluded",
        "phases": sorted(PHASES),
        "terms": 1,
        "found": "kitchen",
        "figures_match": True,
        "chart": True,
        "tasks_open": 0,
        "tasks_running_at_kill": 0,
    }
    return figures | other


def test_a_model_plans_where_the_environment_names_one_and_the_end_says_whether_it_did() -> None:
    place = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "secret", "OPENAI_MODEL": "tiny"}
    assert model_named(place) == "tiny at http://127.0.0.1:1/v1"
    assert model_named({"OPENAI_API_KEY": "secret"}) == ""
    assert cost_told({"tokens": 3_000, "calls": 9}).startswith("planned   with the model")
    assert "by rules" in cost_told({"tokens": 0, "calls": 6})


def test_what_is_seen_is_the_newest_of_each() -> None:
    seen = Seen()
    for event in (
        {"kind": "started", "team": "ab"},
        {"kind": "elected", "term": 1, "coordinator": "x"},
        {"kind": "phase", "phase": "PAUSE"},
        {"kind": "phase", "phase": "PAUSE"},
        {"kind": "elected", "term": 2, "coordinator": "y"},
        task(1, "desk"),
        task(2, "pen"),
        task(1, "desk", "succeeded"),
        {"kind": "of the future"},
    ):
        seen.take(event)
    assert (seen.team, seen.coordinator, seen.phases) == ("ab", "y", ["PAUSE"])
    assert [each["task"] for each in seen.at_work] == ["2"]


def test_there_is_no_coordinator_before_the_first_election() -> None:
    assert Seen().coordinator == ""
    assert demo("coordinator")._victim([]) is None


def test_the_killed_worker_is_never_the_device_to_be_found_nor_the_asker() -> None:
    running = [task(number, name) for number, name in enumerate((*DEVICES, ASKER))]
    drawn = demo("worker")
    victims = {victim.name for victim in (drawn._victim(running) for _ in range(100)) if victim}
    assert victims == set(DEVICES) - {"kitchen"}
    assert demo("worker")._victim([task(1, "kitchen"), task(2, ASKER)]) is None


def test_each_kind_of_kill_hits_its_kind() -> None:
    led = demo("coordinator")
    led.seen.take({"kind": "elected", "term": 3, "coordinator": "id of pen"})
    assert led._victim([]) is led.mesh.nodes["pen"]
    seed = demo("seed")._victim([])
    assert seed is not None
    assert seed.name in SEEDS
    asker = demo("asker")._victim([])
    assert asker is not None
    assert asker.name == ASKER


def test_nobody_is_killed_while_fewer_than_two_tasks_run() -> None:
    calm = demo("asker")
    calm.seen.take(task(1, "desk"))
    calm.seen.take(task(2, "pen", "accepted"))
    calm._kill_when_due()
    assert calm.killed == ""
    assert calm.kill_at is None


def test_a_run_in_which_all_went_well_is_ok() -> None:
    assert demo()._is_ok(good(), set(DEVICES))
    assert demo(stressed=None)._is_ok(good(found=None), set(DEVICES))
    assert demo("coordinator")._is_ok(good(terms=2, tasks_running_at_kill=2), set(DEVICES))


@pytest.mark.parametrize(
    "wrong",
    [
        {"outcome": "failed"},
        {"phases": sorted(PHASES - {"SYNC_ASSIGN"})},
        {"terms": 0},
        {"found": "cellar"},
        {"found": None},
        {"figures_match": False},
        {"chart": False},
        {"tasks_open": 1},
    ],
)
def test_one_thing_wrong_is_not_ok(wrong: dict[str, Any]) -> None:
    assert not demo()._is_ok(good(**wrong), set(DEVICES))


def test_a_kill_must_be_survived_as_such() -> None:
    assert not demo("coordinator")._is_ok(good(terms=1, tasks_running_at_kill=2), set(DEVICES))
    assert not demo("worker")._is_ok(good(tasks_running_at_kill=1), set(DEVICES))


def test_only_a_killed_device_may_lack_in_the_report() -> None:
    assert not demo()._is_ok(good(), {"kitchen", "studio"})
    assert not demo()._is_ok(good(), {*DEVICES, "elsewhere"})
    hit = demo("worker")
    hit.killed = "cellar"
    assert hit._is_ok(good(tasks_running_at_kill=2), {"kitchen", "studio"})
