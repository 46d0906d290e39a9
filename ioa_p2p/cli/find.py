"""`ioa-p2p find`: which agents can do this?"""

from typing import Any

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.seconds import Seconds
from ioa_p2p.errors import UsageError

LEVELS = ("mine", "granted", "introduced", "succeeded", "stranger")


@node_command()
@click.argument("words", nargs=-1)
@click.option("--skill", metavar="NAME", help="Only agents with this very skill, such as stats.outliers.")
@click.option("--in", "input_", metavar="TYPE", help="Only agents with a skill that takes this type.")
@click.option("--out", "output", metavar="TYPE", help="Only agents with a skill that makes this type.")
@click.option("--tag", metavar="TAG", help="Only agents with a skill that carries this tag.")
@click.option("--trust", type=click.Choice(LEVELS), help="Only agents trusted at least so far.")
@click.option("--explain", is_flag=True, help="Say of each why it stands where it stands, and what the search cost.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many are listed.")
@click.option("--timeout", "timeout_s", type=Seconds(0.1, 60), default=15.0, show_default=True,
              help="Seconds to search; what was found by then is the answer.")  # fmt: skip
def command(
    here: Here, words: tuple[str, ...], skill: str | None, input_: str | None, output: str | None, tag: str | None,
    trust: str | None, explain: bool, limit: int, timeout_s: float,
) -> None:  # fmt: skip
    """Find agents by WORDS, by skill, or by what they take or make.

    Agents are shown as they are found, then listed in order: those trusted most first, then by how well they match.
    """
    from ioa_p2p.cli.stream import events

    filters = {"skill": skill, "in": input_, "out": output, "tag": tag}
    if not (words or any(filters.values())):
        raise UsageError("nothing-to-find", "say what to find", "`ioa-p2p find disk usage`, or --skill, or --out")
    args = {"words": " ".join(words), **filters, "trust": trust, "limit": limit, "timeout_s": timeout_s}
    shown = _Shown(here)
    result = events(here.call("find", args, wait_s=timeout_s + 15.0), shown.show)
    here.out.result(result)
    _list(here, result, explain)


class _Shown:
    """Shows each agent once, as it is found; with --json every event."""

    def __init__(self, here: Here) -> None:
        self._here = here
        self._agents: set[tuple[str, str]] = set()

    def show(self, hit: dict[str, Any]) -> None:
        from ioa_p2p.cli.output import one_line

        self._here.out.event(hit)
        agent = (hit["agent"], hit["node"])
        if agent in self._agents:
            return
        self._agents.add(agent)
        fresh = "" if hit.get("answered", True) else ", not asked yet"
        skills = " ".join(hit["skills"])
        self._here.out.line(f"{_name(hit)}  {hit['trust']}, {_ago(hit['age_s'])} old{fresh}  {skills}")
        if hit.get("description"):
            self._here.out.line(f"    {one_line(hit['description'])}")


def _list(here: Here, result: dict[str, Any], explain: bool) -> None:
    """The order, who covers which need, and what it rests on."""
    if result["ranked"]:
        here.out.line("\nbest first:")
    for number, hit in enumerate(result["ranked"], 1):
        here.out.line(f"{number:3}. {_name(hit)}  {hit['trust']}")
        if explain:
            here.out.line(f"     {'; '.join(hit['why'])}")
    if len(result["needs"]) > 1:
        here.out.line("\nfor each need:")
    for need in result["needs"] if len(result["needs"]) > 1 else ():
        here.out.line(f"  {need['need']}: {', '.join(map(_short, need['agents'])) or 'nobody'}")
    by = "meaning and words" if result["ranking"] == "meaning" else "words"
    here.out.say(f"{result['hits']} found, ranked by {by}; {result['holders']} holders asked")
    if result["silent"]:
        here.out.say(f"{result['silent']} agents not shown: their nodes do not answer")
    if explain:
        here.out.say(
            f"{result['rpcs']} requests, {result['bytes'] / 1024:.0f} KiB; "
            f"{result['local_hits']} were known in the local directory"
        )


def _name(hit: dict[str, Any]) -> str:
    return f"{hit['agent']}@{hit['node'][:8]}"


def _short(name: str) -> str:
    agent, _, node = name.partition("@")
    return f"{agent}@{node[:8]}"


def _ago(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.0f} h"
