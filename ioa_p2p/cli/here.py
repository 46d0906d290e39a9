"""What every command is given: which node it means and how to speak. `node_command` adds the three options."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ioa_p2p.cli.client import Answers
    from ioa_p2p.cli.output import Output
    from ioa_p2p.node.home import Home


@dataclass(frozen=True)
class Here:
    """The node a command speaks of, and its output."""

    home: "Home"
    out: "Output"

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
            name = "" if self.home.name == "default" else f" --name {self.home.name}"
            first = "" if self.home.exists else f"set it up: `ioa-p2p init{name}`, then "
            hint = f"{first}start it: `ioa-p2p up --detach{name}`"
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

        return function(Here(find_home(name, home, os.environ), Output(as_json=as_json)), **rest)

    return wrapper
