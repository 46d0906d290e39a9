"""`ioa-p2p id`: who this node is, and the line others use as their seed."""

import os
from typing import Any

from ioa_p2p.cli.here import Here, node_command


@node_command()
def command(here: Here) -> None:
    """The node's id, and the line by which others join through it."""
    from ioa_p2p.cli.client import NotRunningError

    try:
        known = here.ask("id")
    except NotRunningError:
        known = _at_rest(here)
    seed = known.get("seed") or "(known while the node runs, or with a fixed dht.port)"
    here.out.result(known, f"node  {known['node']}\nmesh  {known['mesh']}\nseed  {seed}")


def _at_rest(here: Here) -> dict[str, Any]:
    """What key and configuration alone tell."""
    from ioa_p2p.crypto.keys import NodeKey
    from ioa_p2p.node.config import Seed, load
    from ioa_p2p.wire import ids

    config = load(here.home, {}, os.environ)
    node = NodeKey(here.home.read_key()).node
    seed = str(Seed(node, config.dht_host, config.dht_port)) if config.dht_port else ""
    return {"node": ids.node_text(node), "mesh": config.mesh, "seed": seed}
