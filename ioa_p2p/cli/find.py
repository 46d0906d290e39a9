"""`ioa-p2p find`: which agents can do this?"""

from typing import Any

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.seconds import Seconds
from ioa_p2p.errors import UsageError

LEVELS = ("mine", "granted", "introduced", "succeeded", "stranger")
WEAK = "may not fit"


@node_command()
@click.argument("words", nargs=-1)
@click.option("--skill", metavar="NAME", help="Only agents with this skill; greet or text will do for text.greet.")
@click.option("--in", "input_", metavar="TYPE", help="Only agents with a skill that takes this type; text will do for "
              "text.greeting.")  # fmt: skip
@click.option("--out", "output", metavar="TYPE", help="Only agents with a skill that makes this type; text will do for "
              "text.greeting.")  # fmt: skip
@click.option("--tag", metavar="TAG", help="Only agents with a skill that carries all words of this tag.")
@click.option("--trust", type=click.Choice(LEVELS), help="Only agents trusted so far or more; see above.  "
              "[default: stranger]")  # fmt: skip
@click.option("--explain", is_flag=True, help="Say of each agent why it stands where it stands, and what the search "
              "cost.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True,
              help="How many agents are shown at most.")  # fmt: skip
@click.option("--timeout", "timeout_s", type=Seconds(0.1, 60), default=15.0, show_default=True,
              help="Seconds to search; what was found by then is the answer.")  # fmt: skip
def command(
    here: Here, words: tuple[str, ...], skill: str | None, input_: str | None, output: str | None, tag: str | None,
    trust: str | None, explain: bool, limit: int, timeout_s: float,
) -> None:  # fmt: skip
    """Find agents by WORDS, by skill, or by what they take or make.

    The best match comes first, but your own and granted agents come before all others that match well. Between agents
    that match about alike, the more trusted one comes first. Agents marked "may not fit" are the nearest there are.

    \b
    How far an agent is trusted, the most trusted first:
      mine        it runs on this node
      granted     its node is on my allow list
      introduced  somebody I trust vouches for its node (comes later)
      succeeded   it did tasks for me before, more often well than not
      stranger    nothing good is known of it
    """
    from ioa_p2p.cli.stream import events

    filters = {"skill": skill, "in": input_, "out": output, "tag": tag}
    if not (words or any(filters.values())):
        raise UsageError("nothing-to-find", "say what to find", "`ioa-p2p find disk usage`, or --skill, or --out")
    args = {"words": " ".join(words), **filters, "trust": trust, "limit": limit, "timeout_s": timeout_s}
    watched = _Watched(here)
    try:
        result = events(here.call("find", args, wait_s=timeout_s + 15.0), watched.show)
    finally:
        here.out.redraw("")
    here.out.result(result)
    _list(here, result, explain)
    _sum_up(here, result, explain)


class _Watched:
    """What is found while it is searched: a count that a person sees, with --json every event."""

    def __init__(self, here: Here) -> None:
        self._here = here
        self._agents: set[tuple[str, str]] = set()
        here.out.redraw("searching ...")

    def show(self, hit: dict[str, Any]) -> None:
        self._here.out.event(hit)
        self._agents.add((hit["agent"], hit["node"]))
        self._here.out.redraw(f"searching ... {len(self._agents)} found so far")


def _list(here: Here, result: dict[str, Any], explain: bool) -> None:
    """The agents in their order, and who covers which need."""
    if result["ranked"] and not result["hits"]:
        here.out.line("nothing fits well; nearest:")
    for number, hit in enumerate(result["ranked"], 1):
        here.out.line(_agent(number, hit, explain))
    if len(result["needs"]) > 1:
        here.out.line("\nfor each need:")
        for need in result["needs"]:
            here.out.line(f"  {need['need']}: {', '.join(map(_short, need['agents'])) or 'nobody'}")


def _agent(number: int, hit: dict[str, Any], explain: bool) -> str:
    """Its name, trust and skills; what it says of itself; and why it stands here."""
    from ioa_p2p.cli.output import one_line

    marks = [WEAK] if hit["weak"] else []
    marks += [] if hit["answered"] else ["its node has not answered"]
    facts = ", ".join([hit["trust"], f"{_ago(hit['age_s'])} old", *marks])
    lines = [f"{number:3}. {_name(hit)}  {facts}  {' '.join(hit['skills'])}"]
    lines += [one_line(hit["description"])] if hit["description"] else []
    lines += ["; ".join(hit["why"])] if explain else []
    return "\n     ".join(lines)


def _sum_up(here: Here, result: dict[str, Any], explain: bool) -> None:
    """How much was found, what the order rests on, whom it was asked of."""
    by = {"meaning": "by meaning and words", "words": "by words", "trust": "by trust and age"}[result["ranking"]]
    ranked = f", ranked {by}" if result["hits"] > 1 else ""
    here.out.say(f"{result['hits']} found{ranked}; {result['holders']} answers of holders")
    if not result["hits"]:
        here.out.say(f"hint:  {_HINTS[result['ranking']]}")
    if result["silent"]:
        here.out.say(f"{result['silent']} agents not shown: their nodes do not answer")
    if explain:
        here.out.say(
            f"{result['rpcs']} requests, {result['bytes'] / 1024:.0f} KiB; "
            f"{result['local_hits']} were known in the local directory"
        )


_HINTS = {
    "meaning": "say in other words what is needed, or leave out --skill, --in, --out, --tag or --trust",
    "words": "only equal words match here; try others, or leave out --skill, --in, --out, --tag or --trust",
    "trust": "try a part of the name, as greet of text.greet, or say in words what is needed",
}


def _name(hit: dict[str, Any]) -> str:
    return f"{hit['agent']}@{hit['node'][:8]}"


def _short(name: str) -> str:
    agent, _, node = name.partition("@")
    return f"{agent}@{node[:8]}"


def _ago(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.0f} h"
