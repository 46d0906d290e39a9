"""`ioa-p2p status`: how this node is."""

from ioa_p2p.cli.here import Here, node_command


@node_command()
def command(here: Here) -> None:
    """How the node is: ready, neighbours, records, teams, tasks, counters."""
    from ioa_p2p.cli.output import pairs

    status = here.ask("status")
    here.out.result(status, pairs(status))
