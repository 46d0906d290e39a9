"""`ioa-p2p down`: stop the node and wait until it has let go of its folder."""

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.seconds import Seconds


@node_command()
@click.option("--wait", "wait_s", type=Seconds(0.1, 600), default=20.0, show_default=True, help="Seconds to wait.")
def command(here: Here, wait_s: float) -> None:
    """Stop the node."""
    import time

    from ioa_p2p.cli.client import TimedOutError

    pid = here.home.holder()
    if pid is None and here.home.exists:  # else it may be a misspelt name
        here.out.result({"stopped": "", "pid": None}, f"node {here.home.name!r} does not run; nothing to stop")
        return
    here.ask("stop", wait_s=wait_s)
    deadline = time.monotonic() + wait_s
    while here.home.holder() is not None:
        if time.monotonic() > deadline:
            raise TimedOutError(
                "timeout", f"process {pid} still runs after {wait_s:.0f} s", f"see its log, or `kill {pid}`"
            )
        time.sleep(0.05)
    here.out.result({"stopped": here.home.name, "pid": pid}, f"node {here.home.name!r} is down")
