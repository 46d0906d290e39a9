"""`ioa-p2p up`: run the node here, or in the background."""

from typing import TYPE_CHECKING, Any

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.init import read_settings

if TYPE_CHECKING:
    from ioa_p2p.node.config import Config

LOG_BYTES_MAX = 2 * 1024 * 1024  # then a new file; LOG_FILES_KEPT old ones stay
LOG_FILES_KEPT = 3


@node_command()
@click.option("--detach", is_flag=True, help="Run in the background; return when the node is ready.")
@click.option("--wait", "wait_s", type=click.FloatRange(0.1, 600), default=30.0, show_default=True,
              help="With --detach: seconds to wait for it.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of config.toml, for this run.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@click.option("--quiet", is_flag=True, help="Log to the file only.")
def command(here: Here, detach: bool, wait_s: float, settings: tuple[str, ...], log_level: str, quiet: bool) -> None:
    """Run the node until it is stopped."""
    import os

    from ioa_p2p.node.config import load

    config = load(here.home, read_settings(settings), os.environ)
    here.home.read_key()
    with here.home.lock():
        pass  # told now, before anything costly is loaded; the node takes it for good
    if detach:
        from ioa_p2p.cli.detach import start

        flags = [part for text in settings for part in ("--set", text)]
        here.out.result(*start(here, [*flags, "--log-level", log_level], wait_s))
        return
    _log_to(here, log_level, quiet)
    _run(here, config)


def _run(here: Here, config: "Config") -> None:
    import asyncio

    asyncio.run(_until_stopped(here, config))
    here.out.say("stopped")


async def _until_stopped(here: Here, config: "Config") -> None:
    """TERM and INT end the wait; leaving the block closes everything in order."""
    import asyncio
    import importlib
    import signal

    node_class: Any = importlib.import_module("ioa_p2p.node.node").Node  # libp2p comes with it: only here
    async with node_class(config) as node:
        wait: asyncio.Task[None] = asyncio.ensure_future(node.run_until_stopped())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, wait.cancel)
        here.out.say(f"node {config.name!r} is up; Ctrl-C stops it")
        await asyncio.wait((wait,))
        if not wait.cancelled():
            wait.result()


def _log_to(here: Here, level: str, quiet: bool) -> None:
    """The node's log: a bounded file always, stderr too unless `quiet`."""
    import logging
    import sys
    from logging.handlers import RotatingFileHandler

    here.home.make_folders()
    handlers: list[logging.Handler] = [
        RotatingFileHandler(here.home.log, maxBytes=LOG_BYTES_MAX, backupCount=LOG_FILES_KEPT, encoding="utf-8")
    ]
    if not quiet:
        handlers.append(logging.StreamHandler(sys.stderr))
    layout = "%(asctime)s %(levelname)-7s %(name)s %(message)s"
    logging.basicConfig(level=level.upper(), format=layout, handlers=handlers)
    logging.getLogger("ioa_p2p").setLevel(level.upper())
    for noisy in ("asyncio", "libp2p", "trio"):
        logging.getLogger(noisy).setLevel("WARNING")
