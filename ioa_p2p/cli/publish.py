"""`ioa-p2p publish`: put the records of this node's agents into the mesh now."""

from typing import Any

import click

from ioa_p2p.cli.here import Here, node_command

HEADS = ("AGENT", "SEQ", "HOLDERS", "KEYS", "BY", "SKILLS")


@node_command()
@click.argument("agent", required=False)
def command(here: Here, agent: str | None) -> None:
    """Publish the record of AGENT, or of all agents here, at once. Says how many holders have it, and what was cut.

    \b
    What the columns say of each agent:
      SEQ      number of its record; the highest counts
      HOLDERS  nodes that confirmed to keep the record, of those asked to
      KEYS     index keys under which it can be found now
      BY       how it is found: by meaning and words, or by words alone
      SKILLS   what it can do
    """
    from ioa_p2p.cli.output import columns

    answer = here.ask("publish", {"agent": agent} if agent else {}, wait_s=60.0)
    here.out.result(answer, columns(HEADS, [_row(record) for record in answer["records"]]))
    for record in answer["records"]:
        for warning in record.get("warnings", []):
            here.out.say(f"{record['agent']}: {warning}")


def _row(record: dict[str, Any]) -> tuple[Any, ...]:
    """HOLDERS: confirmed of asked. BY: how it is found."""
    holders = f"{record['copies']} of {record['holders']}"
    by = "meaning, words" if record["meaning"] else "words"
    return record["agent"], record["seq"], holders, record["keys"], by, " ".join(record["skills"])
