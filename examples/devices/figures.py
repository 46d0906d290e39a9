"""Samples from devices we do not know, made safe; and the robust statistics of one series.

Robust: the median instead of the mean, the median absolute deviation (MAD) instead of the standard deviation,
Theil and Sen's median of pairwise slopes for the trend: a single spike moves none of them.
"""

import math
import statistics
from dataclasses import dataclass

SAMPLES_MAX = 500  # the trend looks at every pair
DEVICES_MAX = 32
OUTLIER_DEVIATIONS = 6.0
MAD_TO_SIGMA = 1.4826  # for a normal distribution
RANK_95 = 0.95


@dataclass(frozen=True)
class Series:
    """One metric of one device over time, at least three samples."""

    device: str
    metric: str
    unit: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """Nearest rank."""
        return sorted(self.values)[math.ceil(RANK_95 * len(self.values)) - 1]

    @property
    def trend_per_s(self) -> float:
        """Theil-Sen slope."""
        pairs = [
            (later - earlier, self.values[j] - self.values[i])
            for i, earlier in enumerate(self.seconds)
            for j, later in enumerate(self.seconds[i + 1 :], i + 1)
            if later > earlier
        ]
        return statistics.median(rise / run for run, rise in pairs) if pairs else 0.0

    @property
    def growth(self) -> float:
        """What the trend adds over the time that was measured."""
        return self.trend_per_s * (self.seconds[-1] - self.seconds[0])

    @property
    def outliers(self) -> int:
        """Samples far from the median, measured by the MAD."""
        middle = self.median
        sigma = MAD_TO_SIGMA * statistics.median(abs(value - middle) for value in self.values)
        return sum(abs(value - middle) > OUTLIER_DEVIATIONS * sigma for value in self.values) if sigma else 0

    def row(self) -> dict:
        """The figures as they are reported."""
        return {
            "device": self.device,
            "metric": self.metric,
            "unit": self.unit,
            "samples": len(self.values),
            "mean": round(self.mean, 2),
            "median": round(self.median, 2),
            "p95": round(self.p95, 2),
            "max": round(max(self.values), 2),
            "trend_per_minute": round(60 * self.trend_per_s, 2),
            "outliers": self.outliers,
        }


def series_of(documents: list) -> list[Series]:
    """All usable series of `metrics.samples` documents; what is malformed is left out."""
    found: dict[tuple[str, str], Series] = {}
    for document in documents[:DEVICES_MAX]:
        for series in _of_one(document):
            found[series.device, series.metric] = series
    return list(found.values())


def _of_one(document: object) -> list[Series]:
    match document:
        case {"device": str() as device, "seconds": list() as seconds, "metrics": dict() as metrics}:
            units = document.get("units") if isinstance(document.get("units"), dict) else {}
        case _:
            return []
    return [
        Series(device[:40], str(name)[:40], str(units.get(name, ""))[:40], tuple(seconds), tuple(values))
        for name, values in metrics.items()
        if _usable(seconds) and isinstance(values, list) and _usable(values) and len(values) == len(seconds)
    ]


def _usable(values: list) -> bool:
    numbers = all(isinstance(value, int | float) and math.isfinite(value) for value in values)
    return numbers and 3 <= len(values) <= SAMPLES_MAX
