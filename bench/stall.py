"""`./dev bench stall [--json] [--runs N] [--small]`: one member of a talking team stops reading (SIGSTOP).

    ten processes talk ──> p95 of a line's way from mouth to ear, base
    one is stopped, nine talk on ──> p95 among the nine, their memory ──> it goes on and gets all it missed

`p95_ratio` of the nine, stopped over base; `rss_growth_mb` of the one that grew most while one was stopped;
`caught_up` 1 when the stopped one has every line in the end.
"""

import time
from dataclasses import dataclass

from bench._fleet import Fleet
from bench._log_member import LogMember
from bench._measure import Figures, arguments, combine, percentile, report, say

SETTLE_S = 2.0
CATCH_UP_S = 60.0
RSS_GROWTH_MB_MAX = 64.0


@dataclass(frozen=True)
class Size:
    """rate_hz: lines of 1 KiB a second by all together. base_s, stopped_s: how long each spell lasts."""

    members: int = 10
    rate_hz: float = 60.0
    base_s: float = 15.0
    stopped_s: float = 20.0


SMALL = Size(members=4, rate_hz=20.0, base_s=2.0, stopped_s=6.0)


def run(size: Size) -> Figures:
    with Fleet(LogMember, size.members) as fleet:
        fleet.all("join", fleet.all("open"))
        time.sleep(SETTLE_S)
        *others, stopped = range(size.members)
        base = _spell(fleet, others, size.rate_hz, size.base_s)
        rss = fleet.some(others, "rss_mb")
        has = fleet.one(stopped, "delivered_so_far")
        fleet.some(others, "expect_absent", 1)
        fleet.freeze(stopped)
        while_stopped = _spell(fleet, others, size.rate_hz, size.stopped_s)
        grown = max(after - before for after, before in zip(fleet.some(others, "rss_mb"), rss, strict=True))
        fleet.thaw(stopped)
        missed = _lines_each(size.rate_hz, size.stopped_s, others) * len(others)
        caught_up = _catches_up(fleet, stopped, has + missed)
    p95 = percentile(base, 0.95), percentile(while_stopped, 0.95)
    say(f"p95 {p95[0]:.1f} ms, {p95[1]:.1f} ms with one stopped; memory grew by {grown:.1f} MB")
    return {
        "p95_base_ms": p95[0],
        "p95_stopped_ms": p95[1],
        "p95_ratio": p95[1] / p95[0],
        "rss_growth_mb": grown,
        "caught_up": float(caught_up),
    }


def _spell(fleet: Fleet, talkers: list[int], rate_hz: float, seconds: float) -> list[float]:
    """Ways of all lines among the talkers, in ms. Raises RuntimeError if one did not arrive."""
    fleet.some(talkers, "take_figures")
    each = _lines_each(rate_hz, seconds, talkers)
    fleet.some(talkers, "say", each, rate_hz / len(talkers))
    expected, until = each * len(talkers) * (len(talkers) - 1), time.monotonic() + SETTLE_S * 5
    while sum(fleet.some(talkers, "delivered_so_far")) < expected:
        if time.monotonic() > until:
            raise RuntimeError("a line did not arrive among those that read")
        time.sleep(0.05)
    return [way for _, ways in fleet.some(talkers, "take_figures") for way in ways]


def _lines_each(rate_hz: float, seconds: float, talkers: list[int]) -> int:
    return max(1, round(rate_hz * seconds / len(talkers)))


def _catches_up(fleet: Fleet, stopped: int, lines: int) -> bool:
    until = time.monotonic() + CATCH_UP_S
    while time.monotonic() < until:
        if fleet.one(stopped, "delivered_so_far") >= lines:
            return True
        time.sleep(0.2)
    return False


def main() -> None:
    options = arguments(__doc__.splitlines()[0])
    size = SMALL if options.small else Size()
    f = combine([run(size) for _ in range(options.runs)], {"caught_up": min})
    bars = {
        "p95_ratio <= 2": f["p95_ratio"] <= 2.0,
        f"rss_growth_mb <= {RSS_GROWTH_MB_MAX:g}": f["rss_growth_mb"] <= RSS_GROWTH_MB_MAX,
        "caught_up = 1": f["caught_up"] == 1.0,
    }
    report(f, bars, runs=options.runs, as_json=options.json)


if __name__ == "__main__":
    main()
