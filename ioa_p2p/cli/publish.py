"""`ioa-p2p publish`: put the records of this node's agents into the mesh now."""

import click

from ioa_p2p.cli.here import Here, node_command


@node_command()
@click.argument("agent", required=False)
def command(here: Here, agent: str | None) -> None:
    """Publish the record of AGENT, or of all agents here, at once."""
    from ioa_p2p.cli.output import columns

    answer = here.ask("publish", {"agent": agent} if agent else {}, wait_s=60.0)
    rows = [
        (record["agent"], record["seq"], record["copies"], " ".join(record["skills"])) for record in answer["records"]
    ]
    here.out.result(answer, columns(("AGENT", "SEQ", "COPIES", "SKILLS"), rows))
    for record in answer["records"]:
        for warning in record.get("warnings", []):
            here.out.say(f"{record['agent']}: {warning}")
