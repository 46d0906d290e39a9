"""Was the job done? What the report says is compared with the samples the devices kept for themselves.

report.md ── title, table ──┐
                            ├─> found, figures_match
samples-*.json, by device ──┘   (figures computed here anew)
"""

import json
import math
import re
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLUMNS = {"CPU": "cpu_percent", "Memory": "memory_mb", "Disk writes": "disk_write_kb_s", "Connections": "connections"}
"""How a column of the report's table begins -> the metric in the samples."""

TITLE = re.compile(r"^# (?P<device>\S+) needs a look$", re.MULTILINE)
PNG = b"\x89PNG\r\n\x1a\n"
Samples = Mapping[str, Sequence[dict[str, Any]]]
Row = Mapping[str, str]


def keep(files: Sequence[Mapping[str, Any]], folder: Path) -> Path | None:
    """Copy the answer's files into `folder`; the report's path there, None when there is none."""
    folder.mkdir()
    for file in files:
        shutil.copy(file["path"], folder / file["name"])
    report = folder / "report.md"
    return report if report.exists() else None


def read_samples(folders: Mapping[str, Path]) -> Samples:
    """Device -> every measurement it kept."""
    return {
        device: [json.loads(file.read_text()) for file in sorted(folder.glob("samples-*.json"))]
        for device, folder in folders.items()
    }


def found_in(report: str) -> str | None:
    """The device the report's title names."""
    title = TITLE.search(report)
    return title["device"] if title else None


def rows_of(report: str) -> dict[str, Row]:
    """The figures' table: device -> metric -> cell."""
    lines = [line.strip("| ") for line in report.splitlines() if line.startswith("|")]
    cells = [[cell.strip(" *") for cell in line.split(" | ")] for line in lines]
    if len(cells) < 3:
        return {}
    metrics = [next((m for start, m in COLUMNS.items() if head.startswith(start)), "") for head in cells[0][1:]]
    return {device: dict(zip(metrics, values, strict=True)) for device, *values in cells[2:]}


def figures_match(rows: Mapping[str, Row], samples: Samples) -> bool:
    """Every row equals the figures of one measurement of that device."""
    return bool(rows) and all(
        any(row == expected(measured, row) for measured in samples.get(device, ())) for device, row in rows.items()
    )


def expected(measured: Mapping[str, Any], metrics: Sequence[str] | Row) -> dict[str, str]:
    """The cells that one measurement should give: `median (p95)`, p95 by nearest rank."""
    return {metric: cell(measured["metrics"].get(metric, ())) for metric in metrics}


def cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    rank = math.ceil(0.95 * len(values)) - 1
    return f"{round(statistics.median(values), 2):g} ({round(sorted(values)[rank], 2):g})"


def is_picture(path: Path) -> bool:
    return path.is_file() and path.read_bytes()[: len(PNG)] == PNG
