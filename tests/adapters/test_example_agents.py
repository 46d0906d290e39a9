"""The example agents as a node runs them: from their tables, in processes of their own, the whole job."""

import contextlib
import json
import os
import re
import statistics
import struct
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.adapters.base import Attachment, Event, Failed, Progress, Result, Task
from ioa_p2p.adapters.registry import Agents, start_all
from ioa_p2p.mind.chain import Market, Offered
from ioa_p2p.mind.needs import Needs

ROOT = Path(__file__).parents[2]
GOAL = "How are my devices doing? Find anything unusual, and write a short report with a chart."
FILES = [
    "hello/hello.toml",
    "hello/words.toml",
    *(f"devices/{n}.toml" for n in "device analyst charter writer gardener translator".split()),
]


@pytest.fixture
async def agents(tmp_path: Path) -> AsyncIterator[Agents]:
    tables: dict[str, Any] = {}
    for file in FILES:
        tables |= tomllib.loads((ROOT / "examples" / file).read_text())["agents"]
    for table in (each for each in tables.values() if each["adapter"] == "python"):
        table["target"] = str(ROOT / table["target"])
        table["env"] = {"NODE_FOLDER": str(tmp_path), "DEVICE_NAME": "kitchen", "DEVICE_SECONDS": "0.3"}
        table["env"]["DEVICE_INTERVAL_S"] = "0.05"
    started = await start_all(tables)
    assert started.failures == {}
    yield started
    for adapter in started.adapters.values():
        await adapter.aclose()


def with_bytes(event: Event) -> Event:
    """A result's files are there until the run's end: read while they are."""
    if not isinstance(event, Result):
        return event
    files = tuple(Attachment(file.name, file.media_type, file.data) for file in event.attachments)
    return replace(event, attachments=files)


async def done(agents: Agents, agent: str, skill: str, inputs: dict[str, list[Any]], *files: Attachment) -> Result:
    task = Task(b"\x01" * 16, b"\x02" * 16, 1, skill, GOAL, inputs, files)
    async with contextlib.aclosing(agents.adapters[agent].run(task)) as events:
        *before, last = [with_bytes(event) async for event in events]
    assert all(isinstance(event, Progress) for event in before)
    assert isinstance(last, Result), last
    return last


async def test_the_goal_calls_for_a_report_and_all_that_leads_to_it_and_no_near_miss(agents: Agents) -> None:
    offers = [
        Offered(name.encode().ljust(32), name, skill, card.description)
        for name, card in agents.cards.items()
        for skill in card.skills
    ]
    (need,) = Needs(GOAL, Market(offers)).outer
    assert need.first is not None
    parts = [part.name for part in need.first.parts]
    assert parts == ["device.measure", "metrics.analyse", "chart.draw", "report.write"]
    assert {part.name for part in need.first.all_of} == {"device.measure"}


async def test_the_job_is_done_and_the_report_says_what_was_measured(agents: Agents, tmp_path: Path) -> None:
    samples = (await done(agents, "device", "device.measure", {})).outputs["metrics.samples"]
    loaded = samples | {"device": "studio", "metrics": dict(samples["metrics"])}
    loaded["metrics"]["cpu_percent"] = [value + 400 for value in samples["metrics"]["cpu_percent"]]
    inputs = {"metrics.samples": [samples, loaded]}
    findings = (await done(agents, "analyst", "metrics.analyse", inputs)).outputs["metrics.findings"]
    assert findings["stressed"] == "studio"
    chart = await done(agents, "charter", "chart.draw", inputs | {"metrics.findings": [findings]})
    given = {"metrics.findings": [findings], "image.chart": [chart.outputs["image.chart"]]}
    report = await done(agents, "writer", "report.write", given, *chart.attachments)

    (kept,) = sorted(tmp_path.glob("samples-*.json"))  # noqa: ASYNC240 - a test may wait for its disk
    assert json.loads(kept.read_text()) == samples
    text, picture = (file.data for file in report.attachments)
    assert text.decode() == report.outputs["report.markdown"]
    (row,) = re.findall(r"^\| kitchen \| (.*) \|$", text.decode(), re.MULTILINE)
    memory = round(statistics.median(samples["metrics"]["memory_mb"]), 2)
    assert row.split(" | ")[1].split(" ")[0] == f"{memory:g}"
    assert re.search(r"!\[.*\]\((.*)\)", text.decode())[1] == report.attachments[1].name == "chart.png"
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (1600, 1000)


async def test_samples_are_of_the_node_that_runs_the_agent(agents: Agents) -> None:
    samples = (await done(agents, "device", "device.measure", {})).outputs["metrics.samples"]
    assert samples["node_pid"] == os.getpid()
    assert samples["device"] == "kitchen"
    assert len(samples["seconds"]) >= 5
    assert samples["seconds"] == sorted(samples["seconds"])
    assert min(samples["metrics"]["processes"]) >= len(agents.adapters), (
        "the node and its agents; one has no process now"
    )
    assert min(samples["metrics"]["memory_mb"]) > 20
    assert set(samples["metrics"]) == set(samples["units"])
    assert all(len(values) == len(samples["seconds"]) for values in samples["metrics"].values())


async def test_the_smallest_agents_work_together(agents: Agents) -> None:
    hello = await done(agents, "hello", "text.greet", {})
    assert hello.outputs == {"text.greeting": "Hello, chart!"}
    task = Task(b"i", b"k", 1, "text.count", "", {"text.greeting": ["Hello, you two!"]})
    *_, last = [event async for event in agents.adapters["words"].run(task)]
    assert last == Result({"text.words": "3"})


async def test_the_near_misses_are_real_agents_too(agents: Agents) -> None:
    weather = await done(agents, "gardener", "weather.report", {"weather.observations": [[4.5, -1.0], 7]})
    assert weather.outputs == {"weather.text": "Between -1 and 7 degrees. Frost: cover the beds."}
    stock = await done(agents, "broker", "stock.chart", {"stock.prices": [[1, 2, 3, 2, 8]]})
    assert stock.outputs == {"text.chart": "▁▂▃▂█"}
    sleep = await done(agents, "sleeper", "sleep.analyse", {"sleep.nights": [8, 7.5, 3, 8]})
    assert sleep.outputs["sleep.findings"]["unusual"] == [3]
    text = await done(agents, "translator", "text.translate", {"text.english": ["All my devices are fine."]})
    assert text.outputs == {"text.german": "alle meine Geräte sind gut."}


@pytest.mark.parametrize(
    ("agent", "skill"), [("analyst", "metrics.analyse"), ("charter", "chart.draw"), ("writer", "report.write")]
)
async def test_inputs_that_cannot_be_used_are_a_clear_failure(agents: Agents, agent: str, skill: str) -> None:
    task = Task(b"i", b"k", 1, skill, GOAL, {"metrics.samples": ["nonsense", None], "metrics.findings": [1]})
    *_, last = [event async for event in agents.adapters[agent].run(task)]
    assert isinstance(last, Failed)
    assert last.code in ("no-samples", "no-findings")
    assert not last.retry
