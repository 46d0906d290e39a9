"""`ioa-p2p find`: which agents can do this?"""

from typing import Any

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.errors import UsageError


@node_command()
@click.argument("words", nargs=-1)
@click.option("--skill", metavar="NAME", help="Only agents with this very skill, such as stats.outliers.")
@click.option("--out", "output", metavar="TYPE", help="Only agents with a skill that makes this type.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@click.option("--timeout", "timeout_s", type=click.FloatRange(0.1, 60), default=15.0, show_default=True)
def command(
    here: Here, words: tuple[str, ...], skill: str | None, output: str | None, limit: int, timeout_s: float
) -> None:
    """Find agents by WORDS, by skill, or by what they make. Hits are shown as they come."""
    from ioa_p2p.cli.stream import events

    if not (words or skill or output):
        raise UsageError("nothing-to-find", "say what to find", "`ioa-p2p find disk usage`, or --skill, or --out")
    args = {"words": " ".join(words), "skill": skill, "out": output, "limit": limit, "timeout_s": timeout_s}
    result = events(here.call("find", args, wait_s=timeout_s + 15.0), lambda event: _show(here, event))
    here.out.result(result)
    here.out.say(f"{result['hits']} found; {result['holders']} holders asked")


def _show(here: Here, event: dict[str, Any]) -> None:
    from ioa_p2p.cli.output import one_line

    here.out.event(event)
    here.out.line(f"{event['agent']}@{event['node']}  {' '.join(event['skills'])}")
    if event.get("description"):
        here.out.line(f"    {one_line(event['description'])}")
