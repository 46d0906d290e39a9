"""Draws measurements as one clear chart: a panel for each metric, a line for each device."""

import io

from figures import Series, series_of

from ioa_p2p.adapters.agent import Attachment, Failed, Result, skill

LABELS = {
    "cpu_percent": "CPU (% of a core)",
    "memory_mb": "Memory (MB)",
    "disk_write_kb_s": "Disk writes (kB/s)",
    "connections": "Open connections",
    "disk_mb": "Disk use (MB)",
}
PANELS = 4
HIGHLIGHT, WARM, INK, SOFT, FAINT = "#c8372d", "#fdf5f4", "#333333", "#666666", "#e3e3e3"
CALM = ["#3b6ea5", "#5f9e8f", "#8a6fae", "#a08a4f", "#6c7a89"]  # apart from the highlight, and from one another
NAME = "chart.png"


@skill(
    "chart.draw",
    inputs=["metrics.samples*", "metrics.findings"],
    outputs=["image.chart"],
    description="Draw a chart of device measurements over time as a PNG; the unusual device stands out.",
    tags=["chart", "plot", "image", "png"],
)
def draw(task, progress):
    """{"file", "title", "alt"}, with the PNG attached."""
    series = series_of(task.inputs.get("metrics.samples", []))
    if not series:
        return Failed("no-samples", "none of the measurements could be read", retry=False)
    findings = next((f for f in task.inputs.get("metrics.findings", []) if isinstance(f, dict)), {})
    stressed, unusual = stressed_of(findings), unusual_of(findings)
    title = title_of(series, stressed)
    progress(0.2, "drawing")
    picture = png(series, stressed, unusual, title)
    shown = ", ".join(LABELS[metric] for metric in panels_of(unusual))
    chart = {"file": NAME, "title": title, "alt": f"{title}. Lines over time: {shown}."}
    return Result({"image.chart": chart}, (Attachment(NAME, "image/png", picture),), title)


def stressed_of(findings: dict) -> str | None:
    """The device to highlight; findings come from an agent we do not know."""
    stressed = findings.get("stressed")
    return stressed if isinstance(stressed, str) else None


def unusual_of(findings: dict) -> set[str]:
    """The metrics in which the highlighted device stands out."""
    found = [each for each in findings.get("findings") or [] if isinstance(each, dict)]
    return {str(each.get("metric")) for each in found if each.get("device") == findings.get("stressed")}


def panels_of(unusual: set[str]) -> list[str]:
    """Four metrics: those that matter now before the others, always in the same order."""
    chosen = sorted(LABELS, key=lambda metric: metric not in unusual)[:PANELS]
    return [metric for metric in LABELS if metric in chosen]


def title_of(series: list[Series], stressed: str | None) -> str:
    devices = len({each.device for each in series})
    return f"{stressed} stands out among {devices} devices" if stressed else f"{devices} devices, nothing unusual"


def png(series: list[Series], stressed: str | None, unusual: set[str], title: str) -> bytes:
    """The picture, 1600 x 1000 pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.25), dpi=160, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12, wspace=0.03, hspace=0.03)
    figure.suptitle(title, x=0.02, ha="left", fontsize=15, fontweight="bold", color=INK)
    colours = _colours(series, stressed)
    for axes, metric in zip(figure.subplots(2, 2, sharex=True).flat, panels_of(unusual), strict=True):
        _panel(axes, [each for each in series if each.metric == metric], colours, stressed)
        _label(axes, LABELS[metric], metric in unusual)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(6, max(1, len(names))), frameon=False, fontsize=11
    )
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Title": title})
    return picture.getvalue()


def _colours(series: list[Series], stressed: str | None) -> dict[str, str]:
    calm = [device for device in sorted({each.device for each in series}) if device != stressed]
    colours = {device: CALM[number % len(CALM)] for number, device in enumerate(calm)}
    return {stressed: HIGHLIGHT, **colours} if stressed else colours


def _panel(axes, series: list[Series], colours: dict[str, str], stressed: str | None) -> None:
    for each in sorted(series, key=lambda one: (one.device == stressed, one.device)):  # the highlight lies on top
        width = 2.8 if each.device == stressed else 1.6
        axes.plot(each.seconds, each.values, color=colours[each.device], lw=width, label=each.device)
    axes.margins(x=0.01, y=0.12)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=FAINT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0, labelsize=9, colors=SOFT)


def _label(axes, text: str, unusual: bool) -> None:
    """The panel's name; a panel that matters says so in the highlight's colour."""
    name, colour, weight = (f"{text}: unusual", HIGHLIGHT, "bold") if unusual else (text, INK, "normal")
    axes.set_title(name, loc="left", fontsize=11, color=colour, fontweight=weight)
    if unusual:
        axes.set_facecolor(WARM)
    if axes.get_subplotspec().is_last_row():
        axes.set_xlabel("seconds since the start of the measurement", fontsize=9, color=SOFT)
