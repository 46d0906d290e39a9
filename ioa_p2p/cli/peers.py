"""`ioa-p2p peers`: the neighbours this node has links to."""

from typing import Any

from ioa_p2p.cli.here import Here, node_command


@node_command()
def command(here: Here) -> None:
    """The neighbours."""
    from ioa_p2p.cli.output import columns

    answer = here.ask("peers")
    rows = [
        (peer["node"], _where(peer), "out" if peer.get("outbound") else "in", peer.get("software", ""))
        for peer in answer["peers"]
    ]
    here.out.result(answer, columns(("NODE", "ADDRESS", "DIALLED", "SOFTWARE"), rows))


def _where(peer: dict[str, Any]) -> str:
    """Its address; of a link that a third node carries, who that is."""
    return f"through {peer['via']}" if peer.get("via") else peer.get("address", "")
