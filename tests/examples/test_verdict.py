"""examples/verdict.py: the report is believed only as far as the samples bear it out."""

from pathlib import Path
from typing import Any

from examples import verdict

REPORT = """# kitchen needs a look

| Device | CPU, % of a core (p95) | Memory, MB (p95) |
|---|---:|---:|
| **kitchen** | 60 (90) | 200 (200) |
| studio | 2.5 (4) | 100 (101) |
"""


def measured(cpu: list[float], memory: list[float]) -> dict[str, Any]:
    return {"metrics": {"cpu_percent": cpu, "memory_mb": memory}}


SAMPLES = {
    "kitchen": [measured([1, 1, 1], [9, 9, 9]), measured([50, 60, 90], [200, 200, 200])],
    "studio": [measured([1, 4, 2, 3], [100, 100, 101])],
}


def test_the_title_names_the_device() -> None:
    assert verdict.found_in(REPORT) == "kitchen"
    assert verdict.found_in("# All devices are doing fine\n") is None


def test_figures_that_some_measurement_gave_match() -> None:
    assert verdict.figures_match(verdict.rows_of(REPORT), SAMPLES)


def test_one_figure_that_no_measurement_gave_does_not_match() -> None:
    assert not verdict.figures_match(verdict.rows_of(REPORT.replace("60 (90)", "61 (90)")), SAMPLES)


def test_a_device_without_samples_does_not_match() -> None:
    assert not verdict.figures_match(verdict.rows_of(REPORT), {"kitchen": SAMPLES["kitchen"]})


def test_a_report_without_figures_does_not_match() -> None:
    assert verdict.rows_of("# All devices are doing fine\n") == {}
    assert not verdict.figures_match({}, SAMPLES)


def test_files_of_the_answer_are_kept_and_the_report_found(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text(REPORT)
    files = [{"name": "report.md", "path": str(tmp_path / "x.md")}]
    report = verdict.keep(files, tmp_path / "report")
    assert report is not None
    assert report.read_text() == REPORT
    assert verdict.keep([], tmp_path / "none") is None


def test_only_a_png_is_a_picture(tmp_path: Path) -> None:
    (tmp_path / "chart.png").write_bytes(verdict.PNG + b"...")
    (tmp_path / "fake.png").write_bytes(b"GIF89a")
    assert verdict.is_picture(tmp_path / "chart.png")
    assert not verdict.is_picture(tmp_path / "fake.png")
    assert not verdict.is_picture(tmp_path / "none.png")
