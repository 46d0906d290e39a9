"""`ioa-p2p status`: how this node is."""

import time
from typing import Any

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.seconds import Seconds

POLL_S = 0.2


@node_command()
@click.option("--wait", "wait_s", type=Seconds(0, 600), default=0.0, help="Seconds to wait until it is ready.")
def command(here: Here, wait_s: float) -> None:
    """How the node is. Readiness, neighbours, records, teams, tasks, counters."""
    status = _ready(here, wait_s) if wait_s else here.ask("status")
    here.out.result(status, _text(status))


def _text(status: dict[str, Any]) -> str:
    from ioa_p2p.cli.output import pairs

    counters = [f"{name} {count}" for name, count in status.get("counters", {}).items() if count]
    return pairs({**status, "counters": counters})


def _ready(here: Here, wait_s: float) -> dict[str, Any]:
    """The status once the node says it is ready. Raises TimedOutError, or NotRunningError when it never came up."""
    from ioa_p2p.cli.client import NotRunningError, TimedOutError

    deadline = time.monotonic() + wait_s
    if here.home.holder() is None:
        here.out.say(f"no node {here.home.name!r} runs here yet; waiting up to {wait_s:g} s for one to start")
    while True:
        late = time.monotonic() > deadline
        try:
            status = here.ask("status")
            if status.get("ready"):
                return status
            if late:
                raise TimedOutError("timeout", f"not ready after {wait_s:g} s", "see `ioa-p2p doctor`")
        except NotRunningError:
            if late:
                raise
        time.sleep(POLL_S)
