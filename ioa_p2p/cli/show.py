"""`ioa-p2p show`: one agent's record and card, what of them is proven, and what is only said."""

from typing import Any

import click

from ioa_p2p.cli.here import Here, node_command


@node_command()
@click.argument("agent", metavar="AGENT[@NODE]")
def command(here: Here, agent: str) -> None:
    """Show the card of AGENT, and the state of its signature. NODE may be shortened; without it AGENT is searched."""
    told = here.ask("show", {"agent": agent}, wait_s=60.0)
    here.out.result(told, _text(told))


def _text(told: dict[str, Any]) -> str:
    from ioa_p2p.cli.output import one_line, pairs

    proven = {
        "agent": told["agent"],
        "node": told["node"],
        "signature": f"{told['signature']}: its node signed this record, number {told['seq']}",
        "issued": f"{_when(told['issued'])}, {told['age_s']:.0f} s ago",
        "expires": f"in {told['expires_s']:.0f} s",
        "holders": f"{told['copies']} of {told['holders']} asked have it",
        "trust": f"{told['trust']}: {told['why']}",
        "addresses": told["addresses"],
        "endpoint": told["endpoint"],
        "features": told["features"],
        "meaning": told["index_model"] or "not published by meaning",
        "card": _card(told),
    }
    lines = [pairs(proven), "", "it says of itself:", f"  {one_line(told['description']) or '(nothing)'}"]
    return "\n".join([*lines, *(_skill(skill) for skill in told["skills"])])


def _card(told: dict[str, Any]) -> str:
    """The card is not signed: the signed record names its hash."""
    if told["card"] == "matches":
        return f"matches the hash in the record, {told['card_bytes']} bytes"
    return "not had: its node does not answer, and nobody asked has a copy"


def _skill(skill: dict[str, Any]) -> str:
    from ioa_p2p.cli.output import one_line

    types = f"{', '.join(skill.get('inputs', [])) or '-'} -> {', '.join(skill.get('outputs', [])) or '-'}"
    tags = f"  [{' '.join(skill['tags'])}]" if skill.get("tags") else ""
    line = one_line(f"  {skill['name']}  {types}  {skill.get('effect', '')}{tags}")
    text = one_line(skill.get("description", ""))
    return f"{line.rstrip()}\n      {text}" if text else line.rstrip()


def _when(wall_s: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
