"""`ioa-p2p logs`: the node's log, also when it does not run."""

import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.errors import UsageError

POLL_S = 0.2


@node_command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option(
    "-n", "--lines", type=click.IntRange(0, 100_000), default=50, show_default=True, help="How many old lines."
)
def command(here: Here, follow: bool, lines: int) -> None:
    """The node's log."""
    path = here.home.log
    if not path.exists():
        raise UsageError("no-log", f"no log yet: {path}", "the log begins with `ioa-p2p up`")
    for line in read_lines(path, lines, follow):
        here.out.event({"kind": "log", "line": line})
        here.out.line(line)
    here.out.result({"log": str(path)})


def read_lines(path: Path, last: int, follow: bool) -> Iterator[str]:
    """The last lines of a file; with `follow` also the coming ones, through rotation, until the caller stops."""
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from (line.rstrip("\n") for line in deque(file, last))
        part = ""
        while follow:
            part += file.readline()
            if part.endswith("\n"):
                yield part.rstrip("\n")
                part = ""
            elif _rotated(path, file.fileno()):
                break
            else:
                time.sleep(POLL_S)
    if follow:
        yield from read_lines(path, sys.maxsize, follow)


def _rotated(path: Path, handle: int) -> bool:
    try:
        return path.stat().st_ino != os.fstat(handle).st_ino
    except FileNotFoundError:
        return False
