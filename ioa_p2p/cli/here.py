"""What every command is given: which node it means and how to speak. `node_command` adds the three options."""

import functools
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ioa_p2p.errors import IoaError

if TYPE_CHECKING:
    from ioa_p2p.cli.client import Answers
    from ioa_p2p.cli.output import Output
    from ioa_p2p.node.home import Home


_COMMAND = re.compile(r"`(ioa-p2p [^`]*)`")


@dataclass(frozen=True)
class Here:
    """The node a command speaks of, and its output. flags: the options that choose this node, as they are typed."""

    home: "Home"
    out: "Output"
    flags: str = ""

    def spelt(self, text: str) -> str:
        """`ioa-p2p ...` in a hint, so that it speaks of this node and not of the default one."""
        return _COMMAND.sub(lambda found: f"`{found[1]}{self.flags}`" if self._lacks(found[1]) else found[0], text)

    def _lacks(self, command: str) -> bool:
        return not ("--name" in command or "--home" in command)

    def call(self, verb: str, args: dict[str, Any], wait_s: float | None = 30.0) -> "Answers":
        """Events of the running node, then its result. See `client.call`."""
        from ioa_p2p.cli import client

        self._need_node()
        return client.call(self.home.socket, verb, args, wait_s)

    def ask(self, verb: str, args: dict[str, Any] | None = None, wait_s: float | None = 30.0) -> dict[str, Any]:
        """One answer of the running node. See `client.ask`."""
        from ioa_p2p.cli import client

        self._need_node()
        return client.ask(self.home.socket, verb, args or {}, wait_s)

    def _need_node(self) -> None:
        """Raises NotRunningError('not-running'): nothing holds the folder, and what to type about it."""
        from ioa_p2p.cli.client import NotRunningError

        if self.home.holder() is None:
            first = "" if self.home.exists else "set it up: `ioa-p2p init`, then "
            hint = f"{first}start it: `ioa-p2p up --detach`"
            raise NotRunningError("not-running", f"no node {self.home.name!r} runs here", hint)


def node_command(group: click.Group | None = None, **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A click command whose function gets `here` first; it takes --name, --home and --json besides its own."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        make = group.command if group else click.command
        return make(**attributes)(_with_here(function))

    return decorate


def _with_here(function: Callable[..., Any]) -> Callable[..., Any]:
    @click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for scripts.")
    @click.option("--home", metavar="FOLDER", help="Where nodes keep their files (IOA_P2P_HOME).")
    @click.option("--name", metavar="NAME", help="Which node of this machine (IOA_P2P_NAME).  [default: default]")
    @functools.wraps(function)
    def wrapper(name: str | None, home: str | None, as_json: bool, **rest: Any) -> Any:
        from ioa_p2p.cli.output import Output
        from ioa_p2p.node.home import find_home

        place = find_home(name, home, os.environ)
        here = Here(place, Output(as_json=as_json), _flags(place, home))
        try:
            return function(here, **rest)
        except IoaError as fault:
            fault.hint = here.spelt(fault.hint)
            raise

    return wrapper


def _flags(home: "Home", folder: str | None) -> str:
    """Those that choose this node; what the environment says, it says to the next command too."""
    from ioa_p2p.node.home import NAME_DEFAULT

    name = f" --name {home.name}" * (home.name != NAME_DEFAULT)
    return name + (f" --home {shlex.quote(folder)}" if folder else "")
