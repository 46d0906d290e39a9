"""`ioa-p2p publish`: put the records of this node's agents into the mesh now."""

from typing import Any

import click

from ioa_p2p.cli.here import Here, node_command


@node_command()
@click.argument("agent", required=False)
def command(here: Here, agent: str | None) -> None:
    """Publish the record of AGENT, or of all agents here, at once. Says how many holders have it, and what was cut."""
    from ioa_p2p.cli.output import columns

    answer = here.ask("publish", {"agent": agent} if agent else {}, wait_s=60.0)
    heads = ("AGENT", "SEQ", "HOLDERS", "KEYS", "BY", "SKILLS")
    here.out.result(answer, columns(heads, [_row(record) for record in answer["records"]]))
    for record in answer["records"]:
        for warning in record.get("warnings", []):
            here.out.say(f"{record['agent']}: {warning}")


def _row(record: dict[str, Any]) -> tuple[Any, ...]:
    """HOLDERS: confirmed of asked. BY: how it is found."""
    holders = f"{record['copies']} of {record['holders']}"
    by = "meaning, words" if record["meaning"] else "words"
    return record["agent"], record["seq"], holders, record["keys"], by, " ".join(record["skills"])
