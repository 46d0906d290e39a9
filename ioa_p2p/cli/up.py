"""`ioa-p2p up`: run the node here, or in the background; `--seed`: as one that others join by."""

import ipaddress
import os
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.init import ANYWHERE, read_settings
from ioa_p2p.cli.seconds import Seconds

if TYPE_CHECKING:
    from ioa_p2p.node.config import Config

SEED_PORT = 4701  # of a seed that was told none: its line must last


@node_command()
@click.option("--detach", is_flag=True, help="Run in the background; return when the node is ready.")
@click.option(
    "--seed",
    "as_seed",
    is_flag=True,
    help=f"Be a seed: on a fixed port ({SEED_PORT} unless dht.port says another); tell the line for others.",
)
@click.option("--host", metavar="IP", help=f"Address to listen on, for this run; {ANYWHERE} = all of this machine.")
@click.option(
    "--wait",
    "wait_s",
    type=Seconds(0.1, 600),
    default=30.0,
    show_default=True,
    help="With --detach: seconds to wait for it.",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of config.toml, for this run.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@click.option("--quiet", is_flag=True, help="Log to the file only.")  # fmt: skip
def command(
    here: Here,
    detach: bool,
    as_seed: bool,
    host: str | None,
    wait_s: float,
    settings: tuple[str, ...],
    log_level: str,
    quiet: bool,
) -> None:
    """Run the node until it is stopped. HUP makes it read its configuration again."""
    flags = _flags(here, as_seed, host, settings)
    config = _load(here, flags)
    here.home.read_key()
    with here.home.lock():
        pass  # told now, before anything costly is loaded; the node takes it for good
    if detach:
        from ioa_p2p.cli.detach import start

        status, text = start(here, [*_as_options(flags), "--log-level", log_level], wait_s)
        lines = [text, seed_text(here.ask("id")["seed"], config)] if as_seed else [text]
        here.out.result(status, "\n".join(lines))
    else:
        from ioa_p2p.cli.foreground import run

        def tell(seed: str) -> None:
            if as_seed:
                here.out.result({"seed": seed}, seed_text(seed, config))

        run(config, log_level, quiet=quiet, tell=tell, read_again=lambda: _load(here, flags))


def seed_text(line: str, config: "Config") -> str:
    """The line, its TXT record, and how to see from elsewhere that both work."""
    from ioa_p2p.node.config import parse_seed
    from ioa_p2p.node.dns import txt_line

    domain = config.seed_dns[0] if config.seed_dns else "seeds.example.org"
    seed, probe = parse_seed(line), "--name probe"
    return "\n".join(
        [
            f"seed   {line}",
            f"DNS    {txt_line(domain, seed)}",
            f"check  on another machine: ioa-p2p init {probe} --public --mesh {shlex.quote(config.mesh)} --seed {line}",
            f"       ioa-p2p up {probe} --detach && ioa-p2p seeds list {probe}",
            *([f"       dig +short TXT {domain}"] if config.seed_dns else []),
            *_warnings(seed.host),
        ]
    )


def _warnings(host: str) -> list[str]:
    address = ipaddress.ip_address(host)
    if address.is_loopback:
        return [f"note   it listens on {host}: this machine alone can use it. Beyond it: --host {ANYWHERE}"]
    if address.is_private:
        return [f"note   {host} is a private address: beyond this network write the public address or name instead"]
    return []


def _flags(here: Here, as_seed: bool, host: str | None, settings: tuple[str, ...]) -> dict[str, str]:
    """All that was said for this run, as settings."""
    flags = {**({"dht.host": host, "link.host": host} if host else {}), **read_settings(settings)}
    if as_seed and not _load(here, flags).dht_port:
        flags["dht.port"] = str(SEED_PORT)
    return flags


def _as_options(flags: Mapping[str, str]) -> list[str]:
    return [part for key, value in flags.items() for part in ("--set", f"{key}={value}")]


def _load(here: Here, flags: Mapping[str, str]) -> "Config":
    from ioa_p2p.node.config import load

    return load(here.home, flags, os.environ)
