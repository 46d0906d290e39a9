"""`ioa-p2p init`: a folder, a key, a commented config.toml."""

import ipaddress
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.errors import UsageError

if TYPE_CHECKING:
    from ioa_p2p.node.config import Config

ANYWHERE = "0.0.0.0"
"""Listen at all addresses of this machine."""

_TARGET = re.compile(r"""(\btarget\s*=\s*)(["'])([^"'\\\n]+)\2""")
"""`target = "..."` in a TOML file, its comments and layout around it left as they are."""


@node_command()
@click.option("--mesh", metavar="NAME", help="The mesh to join or begin.")
@click.option("--seed", "seeds", multiple=True, metavar="KEY@HOST:PORT", help="A node to ask first; may be repeated.")
@click.option(
    "--seed-dns", multiple=True, metavar="NAME", help="A domain whose TXT records name seeds; may be repeated."
)
@click.option(
    "--seed-key",
    "seed_keys",
    multiple=True,
    metavar="NODE",
    help="Who signs lists of seeds for this mesh; may be repeated.",
)
@click.option("--public", is_flag=True, help=f"For a mesh of the internet: --host {ANYWHERE} --set profile=wan.")
@click.option("--allow", multiple=True, metavar="NODE", help="A node that may give this one tasks; may be repeated.")
@click.option("--host", metavar="IP", help="Address to listen on; 127.0.0.1 is this machine only.")
@click.option("--agent", "agents", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A TOML file with [agents.NAME] tables; may be repeated.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any other key of config.toml.")
@click.option("--new-key", is_flag=True, help="The key is lost: become a new node, keep the configuration.")
def command(
    here: Here,
    mesh: str | None,
    seeds: tuple[str, ...],
    seed_dns: tuple[str, ...],
    seed_keys: tuple[str, ...],
    public: bool,
    allow: tuple[str, ...],
    host: str | None,
    agents: tuple[Path, ...],
    settings: tuple[str, ...],
    new_key: bool,
) -> None:
    """Set a node up: its folder, key and configuration."""
    host = host or (ANYWHERE if public else None)
    given = {"mesh": mesh, "seeds": ",".join(seeds), "allow": ",".join(allow), "dht.host": host, "link.host": host,
             "seed_dns": ",".join(seed_dns), "seed_list.keys": ",".join(seed_keys),
             "profile": "wan" if public else None}  # fmt: skip
    flags = {key: value for key, value in given.items() if value} | read_settings(settings)
    _refuse_to_overwrite(here, new_key)
    if not here.home.exists:
        text = render(here.home.name, flags, [_agent_text(path) for path in agents])
        here.home.make_folders()
        here.home.config.write_text(text, encoding="utf-8")
    if not here.home.key.exists():
        here.home.forget()
        here.home.make_key()
    _tell(here)


def read_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping. Raises UsageError('bad-setting')."""
    for text in settings:
        if "=" not in text:
            raise UsageError("bad-setting", f"--set {text}", "write --set KEY=VALUE, such as --set dht.port=7000")
    return {key.strip(): value.strip() for key, _, value in (text.partition("=") for text in settings)}


def render(name: str, flags: Mapping[str, str], agents: list[str]) -> str:
    """A commented config.toml: given values written out, the rest as commented defaults. Raises UsageError."""
    from ioa_p2p.node.config import SETTINGS, check_flags

    values = check_flags(flags)
    lines = [f"# ioa-p2p node {name!r}. Flags and IOA_P2P_... variables win over this file.", ""]
    section = ""
    for setting in SETTINGS:
        head, _, key = setting.key.rpartition(".")
        if head != section:
            lines += [f"[{head}]", ""]
            section = head
        written = setting.key in values
        value = values[setting.key] if written else setting.default
        lines += [f"# {setting.meaning}", f"{'' if written else '# '}{key} = {_toml(value)}", ""]
    return "\n".join(lines) + "".join(f"\n{text}" for text in agents)


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)  # pyright: ignore[reportUnknownArgumentType]


def _agent_text(path: Path) -> str:
    """The text of an agents file, checked, its targets good from any folder.
    Raises UsageError('bad-agent' | 'bad-config')."""
    from ioa_p2p.node import config

    table = config.read_file(path)
    if list(table) != ["agents"]:
        raise UsageError("bad-agent", f"{path}: only [agents.NAME] tables belong here", "move other keys to --set")
    agents = config.read_agents(table["agents"], str(path)).values()
    targets = {agent.options.get("target") for agent in agents if "folder" not in agent.options}
    text = path.read_text(encoding="utf-8")
    return _TARGET.sub(lambda line: line[1] + _settled(line[3], path.parent) if line[3] in targets else line[0], text)


def _settled(target: str, folder: Path) -> str:
    """A TOML string: a file that is there, beside the agents file or else where we work, by its whole path."""
    file, colon, function = target.partition(":")
    found = next((place / file for place in (folder, Path.cwd()) if (place / file).is_file()), None)
    return json.dumps(f"{found.resolve()}{colon}{function}" if found else target, ensure_ascii=False)


def _refuse_to_overwrite(here: Here, new_key: bool) -> None:
    home = here.home
    if new_key and home.key.exists():
        raise UsageError("key-exists", f"{home.key} holds a key", "move it away first if you mean it")
    if home.exists and not new_key:
        lost = not home.key.exists()
        hint = (
            "its key is gone: `ioa-p2p init --new-key` makes another node" if lost else "edit that file, or use --name"
        )
        raise UsageError("already-initialised", f"{home.config} exists", hint)


def _tell(here: Here) -> None:
    from ioa_p2p.crypto.keys import NodeKey
    from ioa_p2p.wire import ids

    home, node = here.home, ids.node_text(NodeKey(here.home.read_key()).node)
    result = {"node": node, "name": home.name, "config": str(home.config), "key": str(home.key)}
    here.out.result(result, f"node    {node}\nconfig  {home.config}\nkey     {home.key} (keep it secret, back it up)")
    for note in _notes(here):
        here.out.say(note)
    here.out.say(here.spelt(f"next: {_next(here)}"))


def _next(here: Here) -> str:
    config = _config(here)
    may_seed = config.profile == "wan" and ipaddress.ip_address(config.dht_host).is_unspecified
    return "`ioa-p2p up`" + ", or to be a seed that others join by: `ioa-p2p up --seed`" * may_seed


def _config(here: Here) -> "Config":
    from ioa_p2p.node.config import load

    return load(here.home, {}, os.environ)


def _notes(here: Here) -> Iterator[str]:
    """What the person may not have meant."""
    from ioa_p2p.node.lan import is_wanted

    config = _config(here)
    if not (config.seeds or config.seed_dns or config.seed_list_keys):
        where = "looks in the local network and waits" if is_wanted(config) else "waits"
        yield (
            f"no seed is given, so in mesh {config.mesh!r} this node {where} for others. To join one that exists: "
            f"`ioa-p2p id` on a node of it prints a line for seeds in {here.home.config}"
        )
    if ipaddress.ip_address(config.dht_host).is_loopback:
        yield f"it listens on {config.dht_host}, for this machine alone; for others set dht.host and link.host"
