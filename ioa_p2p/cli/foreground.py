"""Running the node in this process, until a signal or `ioa-p2p down` stops it."""

import asyncio
import logging
import os
import signal
import sys
from logging.handlers import RotatingFileHandler

from ioa_p2p.errors import StorageError
from ioa_p2p.node.config import Config
from ioa_p2p.node.home import Home
from ioa_p2p.node.service import serving

LOG_BYTES_MAX = 2 * 1024 * 1024  # then a new file begins
LOG_FILES_KEPT = 3  # older ones go
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # HUP: the terminal was closed

_log = logging.getLogger(__name__)


def run(config: Config, level: str, *, quiet: bool) -> None:
    """Returns when the node has closed. Raises what keeps it from opening (IoaError)."""
    _log_to(config.home, level, quiet)
    os.environ["NODE_FOLDER"] = str(config.home.data_folder)  # for agents that keep files beside the node's
    asyncio.run(_until_stopped(config))


async def _until_stopped(config: Config) -> None:
    """The first signal ends the wait; leaving the block closes everything in order; a second one ends at once."""
    loop = asyncio.get_running_loop()
    async with serving(config) as node:
        wait = asyncio.ensure_future(node.run_until_stopped())
        for number in SIGNALS:
            loop.add_signal_handler(number, wait.cancel)
        _log.info("node %r is up", config.name)
        await asyncio.wait((wait,))
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        if not wait.cancelled():
            wait.result()
    _log.info("node %r is down", config.name)


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
