"""The analyst finds a load of any kind, and keeps quiet about the noise of a busy machine."""

import random
from typing import Any

import pytest
from analyst import findings_of
from figures import series_of

DEVICES = ("kitchen", "studio", "cellar")
SAMPLES = 20
INTERVAL_S = 0.3


def idle(device: str, dice: random.Random, busy: float = 8.0) -> dict[str, Any]:
    """A node that idles on a machine where everything fluctuates: spikes, stalls, a little growth."""
    memory = dice.uniform(125, 150)
    connections = dice.randint(10, 16)
    return {
        "device": device,
        "seconds": [round(n * INTERVAL_S + dice.random() * 0.1, 3) for n in range(1, SAMPLES + 1)],
        "metrics": {
            "cpu_percent": [_noisy(busy, dice) for _ in range(SAMPLES)],
            "memory_mb": [memory + n * dice.uniform(0, 0.3) for n in range(SAMPLES)],
            "disk_mb": [1.0 + n * 0.01 for n in range(SAMPLES)],
            "disk_write_kb_s": [dice.choice([0.0, 0.0, 12.0, 160.0, 900.0]) for _ in range(SAMPLES)],
            "connections": [connections + dice.randint(-2, 2) for _ in range(SAMPLES)],
        },
        "units": {"cpu_percent": "% of a core", "memory_mb": "MB"},
    }


def _noisy(level: float, dice: random.Random) -> float:
    return max(0.0, dice.gauss(level, level / 2) + dice.choice([0.0] * 12 + [60.0]))


def house(seed: int, busy: float = 8.0) -> tuple[list[dict[str, Any]], dict[str, Any], random.Random]:
    """Three idle devices, one of them drawn, and the dice."""
    dice = random.Random(seed)
    devices = [idle(device, dice, busy) for device in DEVICES]
    return devices, dice.choice(devices), dice


def findings(devices: list[dict[str, Any]]) -> dict[str, Any]:
    return findings_of(series_of(devices))


@pytest.mark.parametrize("busy", [1.0, 8.0, 25.0])
def test_nothing_is_found_on_idle_devices_of_a_busy_machine(busy: float) -> None:
    for seed in range(200):
        found = findings(house(seed, busy)[0])
        assert (found["stressed"], found["findings"]) == (None, []), f"seed {seed}"
        assert found["sentence"] == "Nothing unusual was found on the 3 devices."


@pytest.mark.parametrize("share", [35.0, 60.0, 95.0])
def test_a_cpu_load_is_found_and_named(share: float) -> None:
    for seed in range(200):
        devices, loaded, dice = house(seed)
        cpu = loaded["metrics"]["cpu_percent"]
        loaded["metrics"]["cpu_percent"] = [value + dice.gauss(share, share / 6) for value in cpu]
        found = findings(devices)
        assert found["stressed"] == loaded["device"], f"seed {seed}"
        assert [(f["metric"], f["kind"]) for f in found["findings"]] == [("cpu_percent", "level")], f"seed {seed}"
        assert loaded["device"] in found["sentence"]
        assert "CPU" in found["sentence"]


def test_memory_held_is_found() -> None:
    for seed in range(100):
        devices, loaded, _ = house(seed)
        loaded["metrics"]["memory_mb"] = [value + 100 for value in loaded["metrics"]["memory_mb"]]
        found = findings(devices)
        assert found["stressed"] == loaded["device"], f"seed {seed}"
        assert [(f["metric"], f["kind"]) for f in found["findings"]] == [("memory_mb", "level")]


def test_memory_that_grows_is_found() -> None:
    for seed in range(100):
        devices, loaded, _ = house(seed)
        loaded["metrics"]["memory_mb"] = [value + 2 * n for n, value in enumerate(loaded["metrics"]["memory_mb"])]
        found = findings(devices)
        assert found["stressed"] == loaded["device"], f"seed {seed}"
        assert ("memory_mb", "growth") in [(f["metric"], f["kind"]) for f in found["findings"]]


def test_a_disk_that_fills_is_found() -> None:
    for seed in range(100):
        devices, loaded, _ = house(seed)
        loaded["metrics"]["disk_mb"] = [value + n for n, value in enumerate(loaded["metrics"]["disk_mb"])]
        found = findings(devices)
        assert found["stressed"] == loaded["device"], f"seed {seed}"
        assert [(f["metric"], f["kind"]) for f in found["findings"]] == [("disk_mb", "growth")]


def test_devices_that_are_all_busy_are_not_unusual() -> None:
    devices, _, _ = house(1)
    for device, level in zip(devices, (60.0, 80.0, 100.0), strict=True):
        device["metrics"]["cpu_percent"] = [level] * SAMPLES
    assert findings(devices)["findings"] == []


def test_one_jump_of_memory_is_no_growth() -> None:
    devices, loaded, _ = house(1)
    loaded["metrics"]["memory_mb"] = [130.0] * 10 + [158.0] * 10
    assert findings(devices)["findings"] == []


def test_a_device_with_two_findings_outweighs_one_with_a_single_finding() -> None:
    devices, _, _ = house(3)
    one, two, _ = devices
    one["metrics"]["cpu_percent"] = [70.0] * SAMPLES
    two["metrics"]["memory_mb"] = [100.0 + 9 * n for n in range(SAMPLES)]
    two["metrics"]["disk_mb"] = [2.0 * n for n in range(SAMPLES)]
    found = findings(devices)
    assert found["stressed"] == two["device"]
    assert {f["device"] for f in found["findings"]} == {one["device"], two["device"]}


def test_a_single_device_is_judged_by_its_growth_alone() -> None:
    devices, loaded, _ = house(1)
    loaded["metrics"]["cpu_percent"] = [99.0] * SAMPLES
    assert findings([loaded])["stressed"] is None
    loaded["metrics"]["disk_mb"] = [float(n) for n in range(SAMPLES)]
    assert findings([loaded])["stressed"] == loaded["device"]
    assert len(devices) == 3


def test_the_figures_are_those_of_the_samples() -> None:
    device = {"device": "d", "seconds": [0.0, 1.0, 2.0, 3.0, 4.0], "metrics": {"m": [1.0, 2.0, 3.0, 4.0, 100.0]}}
    (row,) = findings([device])["figures"]
    assert row == {
        "device": "d",
        "metric": "m",
        "unit": "",
        "samples": 5,
        "mean": 22.0,
        "median": 3.0,
        "p95": 100.0,
        "max": 100.0,
        "trend_per_minute": 60.0,
        "outliers": 1,
    }


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "samples",
        {},
        {"device": 1, "seconds": [1, 2, 3], "metrics": {"m": [1, 2, 3]}},
        {"device": "x", "seconds": [1, 2], "metrics": {"m": [1, 2]}},
        {"device": "x", "seconds": [1, 2, 3], "metrics": {"m": [1, 2]}},
        {"device": "x", "seconds": [1, 2, 3], "metrics": {"m": [1, "2", 3]}},
        {"device": "x", "seconds": [1, 2, 3], "metrics": {"m": [1, float("nan"), 3]}},
        {"device": "x", "seconds": [1, 2, 3], "metrics": [1, 2, 3]},
        {"device": "x", "seconds": list(range(9_999)), "metrics": {"m": list(range(9_999))}},
    ],
)
def test_samples_that_cannot_be_read_are_left_out(bad: object) -> None:
    devices, _, _ = house(1)
    assert findings([bad, *devices])["devices"] == sorted(DEVICES)
    assert series_of([bad]) == []


def test_equal_times_and_constant_values_do_not_divide_by_zero() -> None:
    device = {"device": "d", "seconds": [1.0, 1.0, 1.0], "metrics": {"memory_mb": [5.0, 5.0, 5.0]}}
    (row,) = findings([device])["figures"]
    assert (row["trend_per_minute"], row["outliers"]) == (0.0, 0)
