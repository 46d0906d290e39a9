"""Writes a short report about devices: what was found, the figures, the chart, how it was measured."""

from ioa_p2p.adapters.agent import Attachment, Failed, Result, skill

COLUMNS = [
    ("CPU, % of a core: median (p95)", "cpu_percent"),
    ("Memory, MB: median (p95)", "memory_mb"),
    ("Disk writes, kB/s: median (p95)", "disk_write_kb_s"),
    ("Connections: median (p95)", "connections"),
]
METHOD = """\
Each device measured its own node (the process and all its children, its data folder, its open connections) {samples}
times within {seconds:.0f} s. CPU counts in percent of one core. "Median" is the middle value, "p95" the value that 95 %
of the samples do not exceed; both ignore single spikes. A device counts as unusual when its median lies far above that
of every other device, or when memory, disk use or connections grow steadily; the limits are larger than the noise of a
busy machine."""
LIMITS = """\
The measurement shows a few seconds, not a day. Devices on one machine share its cores, so a load on one slows the
others a little. Network bytes are counted for the whole machine and are not compared."""


@skill(
    "report.write",
    inputs=["metrics.findings", "image.chart"],
    outputs=["report.markdown"],
    description="Write a short report with a chart on how devices are doing and anything unusual found, in Markdown.",
    tags=["report", "markdown", "summary"],
)
def write(task, progress):
    """The Markdown text; report.md and the chart are attached."""
    findings = next((f for f in task.inputs.get("metrics.findings", []) if isinstance(f, dict)), None)
    if findings is None:
        return Failed("no-findings", "there is nothing to report on", retry=False)
    chart = next((c for c in task.inputs.get("image.chart", []) if isinstance(c, dict)), {})
    picture = next((each for each in task.attachments if each.media_type == "image/png"), None)
    text = report(task.goal, findings, chart, picture)
    files = (Attachment("report.md", "text/markdown", text.encode()), *([picture] if picture else []))
    return Result({"report.markdown": text}, files, str(findings.get("sentence", "")))


def report(goal: str, findings: dict, chart: dict, picture: Attachment | None) -> str:
    """Everything from the findings; a section without figures is left out."""
    parts = [
        f"# {title(findings)}",
        f"> {line(goal)}" if goal else "",
        f"**{line(findings.get('sentence', ''))}**",
        evidence(findings),
        f"![{line(chart.get('alt', 'Chart'))}]({picture.name})" if picture else "*The chart could not be had.*",
        "## Figures\n\n" + table(findings),
        "## How it was measured\n\n"
        + METHOD.format(samples=findings.get("samples", "several"), seconds=findings.get("seconds", 0)),
        "## Limits\n\n" + LIMITS,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def title(findings: dict) -> str:
    stressed = findings.get("stressed")
    return f"{line(stressed)} needs a look" if stressed else "All devices are doing fine"


def evidence(findings: dict) -> str:
    """One bullet a finding, strongest first; or what was looked at."""
    devices = ", ".join(line(device) for device in findings.get("devices", []))
    found = [f"- {line(each['text'])}" for each in findings.get("findings", [])]
    if not found:
        return f"{devices} were compared: CPU, memory, disk and connections. None differs enough to mention."
    return f"{devices} were compared. What stands out:\n\n" + "\n".join(found)


def table(findings: dict) -> str:
    """Devices down, metrics across, each cell "median (p95)"."""
    rows = {(row["device"], row["metric"]): row for row in findings.get("figures", [])}
    lines = ["| Device | " + " | ".join(name for name, _ in COLUMNS) + " |", "|---" + "|---:" * len(COLUMNS) + "|"]
    for device in findings.get("devices", []):
        loud = "**" if device == findings.get("stressed") else ""
        cells = [cell(rows.get((device, metric))) for _, metric in COLUMNS]
        lines.append(f"| {loud}{line(device)}{loud} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(row: dict | None) -> str:
    return f"{row['median']:g} ({row['p95']:g})" if row else "–"


def line(text: object) -> str:
    """Foreign text on one line that cannot become markup."""
    return " ".join(str(text).split()).translate({ord(sign): f"\\{sign}" for sign in "|<>[]`*_\\"})
