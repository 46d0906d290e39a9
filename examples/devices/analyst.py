"""Finds what is unusual in the measurements of several devices, by robust statistics; no model."""

import statistics
from dataclasses import dataclass

from figures import Series, series_of

from ioa_p2p.adapters.agent import Failed, Result, skill


@dataclass(frozen=True)
class Rule:
    """When one metric of a device is unusual.

    above: by how much its median must exceed that of every other device; times: and by which factor. growth: what
    its trend must add within the measurement. Both in the metric's unit; each is more than a busy machine's noise.
    """

    words: str
    above: float
    times: float
    growth: float | None


RULES = {
    "cpu_percent": Rule("CPU", 12.0, 2.5, None),
    "memory_mb": Rule("memory", 48.0, 1.25, 24.0),
    "disk_mb": Rule("disk use", 512.0, 4.0, 8.0),
    "disk_write_kb_s": Rule("disk writes", 4_000.0, 3.0, None),
    "connections": Rule("open connections", 30.0, 3.0, 30.0),
}
GROWS_STEADILY = 0.8  # share of the samples' rank order that a growth must keep (Kendall's tau)


@skill(
    "metrics.analyse",
    inputs=["metrics.samples*"],
    outputs=["metrics.findings"],
    description="Analyse measurements of devices: find anything unusual, outliers, trends; compare the devices.",
    tags=["statistics", "anomaly", "outlier", "trend"],
)
def analyse(task, progress):
    """{"devices", "figures": [row, ...], "findings": [...], "stressed": name or null, "sentence", ...}."""
    series = series_of(task.inputs.get("metrics.samples", []))
    if not series:
        return Failed("no-samples", "none of the measurements could be read", retry=False)
    progress(0.5, f"{len({each.device for each in series})} devices, {len(series)} series")
    findings = findings_of(series)
    return Result({"metrics.findings": findings}, summary=findings["sentence"])


def findings_of(series: list[Series]) -> dict:
    """Strongest finding first. `stressed`: the device whose findings weigh most, or None."""
    found = sorted((finding for each in series for finding in _judge(each, series)), key=lambda f: -f["weight"])
    devices = sorted({each.device for each in series})
    weights = {device: sum(f["weight"] for f in found if f["device"] == device) for device in devices}
    stressed = max(devices, key=lambda device: weights[device]) if found else None
    return {
        "devices": devices,
        "samples": max(len(each.values) for each in series),
        "seconds": round(max(each.seconds[-1] for each in series), 1),
        "figures": [each.row() for each in series],
        "findings": found,
        "stressed": stressed,
        "sentence": _sentence(stressed, found, len(devices)),
    }


def _judge(one: Series, series: list[Series]) -> list[dict]:
    rule = RULES.get(one.metric)
    if rule is None:
        return []
    peers = [each.median for each in series if each.metric == one.metric and each.device != one.device]
    return [finding for finding in (_level(one, rule, peers), _growth(one, rule)) if finding is not None]


def _level(one: Series, rule: Rule, peers: list[float]) -> dict | None:
    """Far above every other device, most of the time."""
    if not peers:
        return None
    excess, highest = one.median - max(peers), max(peers)
    if excess < rule.above or one.median < rule.times * highest:
        return None
    text = f"{rule.words} of {one.device} is {one.median:.0f} {one.unit}, the others have {_range(peers)}"
    return _finding(one, "level", excess / rule.above, one.median, text) | {"peers": [round(p, 2) for p in peers]}


def _growth(one: Series, rule: Rule) -> dict | None:
    """A rise that is large and steady; a jump or noise is not steady."""
    if rule.growth is None or one.growth < rule.growth or _steadiness(one.values) < GROWS_STEADILY:
        return None
    text = f"{rule.words} of {one.device} grew by {one.growth:.0f} {one.unit} within {one.seconds[-1]:.0f} s"
    return _finding(one, "growth", one.growth / rule.growth, one.growth, text)


def _finding(one: Series, kind: str, weight: float, value: float, text: str) -> dict:
    return {
        "device": one.device,
        "metric": one.metric,
        "kind": kind,
        "weight": round(weight, 2),
        "value": round(value, 2),
        "unit": one.unit,
        "text": text,
    }


def _steadiness(values: tuple[float, ...]) -> float:
    """Kendall's tau against time: 1 when every later sample is higher."""
    pairs = [(values[j] > values[i]) - (values[j] < values[i]) for j in range(len(values)) for i in range(j)]
    return statistics.fmean(pairs)


def _range(peers: list[float]) -> str:
    low, high = f"{min(peers):.0f}", f"{max(peers):.0f}"
    return low if low == high else f"{low} to {high}"


def _sentence(stressed: str | None, found: list[dict], devices: int) -> str:
    if stressed is None:
        return f"Nothing unusual was found on the {devices} devices."
    texts = [finding["text"] for finding in found if finding["device"] == stressed]
    return f"{stressed} is under unusual load: {'; '.join(texts)}."
