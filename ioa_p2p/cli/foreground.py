"""Running the node in this process, until a signal or `ioa-p2p down` stops it."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

from ioa_p2p.errors import StorageError, UsageError
from ioa_p2p.node.config import Config
from ioa_p2p.node.home import Home
from ioa_p2p.node.service import serving

if TYPE_CHECKING:
    from ioa_p2p.node.node import Node

LOG_BYTES_MAX = 2 * 1024 * 1024  # then a new file begins
LOG_FILES_KEPT = 3  # older ones go
ENDING = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger(__name__)


def run(
    config: Config, level: str, *, quiet: bool, tell: Callable[[str], None], read_again: Callable[[], Config]
) -> None:
    """Returns when the node has closed. Raises what keeps it from opening (IoaError).

    tell(seed line): called once it is up. read_again(): the configuration as it is now, when HUP asks for it.
    """
    _log_to(config.home, level, quiet)
    os.environ["NODE_FOLDER"] = str(config.home.data_folder)  # for agents that keep files beside the node's
    asyncio.run(_until_stopped(config, tell, read_again))


async def _until_stopped(config: Config, tell: Callable[[str], None], read_again: Callable[[], Config]) -> None:
    """The first signal ends the wait; leaving the block closes everything in order; a second one ends at once."""
    loop = asyncio.get_running_loop()
    async with serving(config) as node:
        wait = asyncio.ensure_future(node.run_until_stopped())
        for number in ENDING:
            loop.add_signal_handler(number, wait.cancel)
        hangup = partial(_hang_up, node, wait.cancel, read_again, had_terminal=os.isatty(0))
        loop.add_signal_handler(signal.SIGHUP, hangup)
        _log.info("node %r is up", config.name)
        tell(str(node.seed))
        await asyncio.wait((wait,))
        for number in (*ENDING, signal.SIGHUP):
            loop.remove_signal_handler(number)
        if not wait.cancelled():
            wait.result()
    _log.info("node %r is down", config.name)


def _hang_up(node: "Node", end: Callable[[], object], read_again: Callable[[], Config], *, had_terminal: bool) -> None:
    """HUP: our terminal was closed, and we with it; or whoever runs us wants the configuration read again."""
    if had_terminal and not os.isatty(0):
        end()
        return
    try:
        read = read_again()
    except UsageError as fault:
        _log.error("the configuration cannot be read; the old one goes on: %s (%s)", fault, fault.hint)
        return
    node.reload(read)


def _log_to(home: Home, level: str, quiet: bool) -> None:
    """A bounded file always, stderr too unless `quiet`. Raises StorageError('no-log')."""
    home.make_folders()
    logging.raiseExceptions = False  # a full disk costs the line, and no trace on the owner's terminal
    handlers: list[logging.Handler] = [_log_file(home)]
    if not quiet:
        handlers.append(logging.StreamHandler(sys.stderr))
    layout = "%(asctime)s %(levelname)-7s %(name)s %(message)s"
    logging.basicConfig(level=logging.WARNING, format=layout, handlers=handlers)
    logging.getLogger("ioa_p2p").setLevel(level.upper())


def _log_file(home: Home) -> logging.Handler:
    try:
        return RotatingFileHandler(home.log, maxBytes=LOG_BYTES_MAX, backupCount=LOG_FILES_KEPT, encoding="utf-8")
    except OSError as fault:
        hint = "move it away, or give this user the right to write there"
        raise StorageError("no-log", f"{home.log}: {fault.strerror}", hint) from None
