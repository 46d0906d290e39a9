"""`ioa-p2p up`: run the node here, or in the background."""

import os

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.init import read_settings


@node_command()
@click.option("--detach", is_flag=True, help="Run in the background; return when the node is ready.")
@click.option("--wait", "wait_s", type=click.FloatRange(0.1, 600), default=30.0, show_default=True,
              help="With --detach: seconds to wait for it.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of config.toml, for this run.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@click.option("--quiet", is_flag=True, help="Log to the file only.")
def command(here: Here, detach: bool, wait_s: float, settings: tuple[str, ...], log_level: str, quiet: bool) -> None:
    """Run the node until it is stopped."""
    from ioa_p2p.node.config import load

    config = load(here.home, read_settings(settings), os.environ)
    here.home.read_key()
    with here.home.lock():
        pass  # told now, before anything costly is loaded; the node takes it for good
    if detach:
        from ioa_p2p.cli.detach import start

        flags = [part for text in settings for part in ("--set", text)]
        here.out.result(*start(here, [*flags, "--log-level", log_level], wait_s))
    else:
        from ioa_p2p.cli.foreground import run

        run(config, log_level, quiet=quiet)
