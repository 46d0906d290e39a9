"""`ioa-p2p seeds`: the first contacts of this node, and the signed lists of who runs a mesh."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.errors import UsageError

if TYPE_CHECKING:
    from ioa_p2p.node.config import Config
    from ioa_p2p.wire.seeds import SeedList

DAY_S = 86_400
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """First contacts. Which are known, from where, and whether they answer; signed lists of them."""


@node_command(command, name="list")
def list_seeds(here: Here) -> None:
    """Every seed this node knows, who named it, and whether it answers."""
    from ioa_p2p.cli.output import columns

    answer = here.ask("seeds")
    rows = [
        (seed["source"], "yes" if seed["answers"] else "no", seed["seed"], ", ".join(seed["addresses"]) or "no address")
        for seed in answer["seeds"]
    ]
    here.out.result(answer, columns(("FROM", "ANSWERS", "SEED", "AT"), rows))
    for note in answer["notes"]:
        here.out.say(note)


@node_command(command, name="sign")
@click.argument("seeds", nargs=-1, required=True, metavar="KEY@HOST:PORT...")
@click.option("--out", "file", type=FILE, required=True, help="The list to write; its number follows that of the old.")
@click.option("--days", type=click.IntRange(1, 400), default=90, show_default=True, help="How long it is good.")
def sign(here: Here, seeds: tuple[str, ...], file: Path, days: int) -> None:
    """Write a list of seeds for this mesh, signed by this node."""
    from ioa_p2p.crypto.keys import NodeKey
    from ioa_p2p.node import seed_list
    from ioa_p2p.node.config import parse_seed
    from ioa_p2p.wire import ids

    key, network = NodeKey(here.home.read_key()), ids.network_id(_config(here).mesh)
    now = int(time.time())
    number = _number_in(file, network) + 1
    frame = seed_list.sign(key, network, [parse_seed(text) for text in seeds], number, now, days * DAY_S)
    seed_list.write(file, frame)
    told = _described(seed_list.open_list(frame, network))
    here.out.result({**told, "file": str(file)}, f"{file} holds list number {number}: {_count(seeds)}")
    here.out.say(f'nodes take it that have seed_list.keys = ["{told["signer"]}"]')


@node_command(command, name="check")
@click.argument("file", type=FILE)
def check(here: Here, file: Path) -> int:
    """What a list says, and whether this node would take it."""
    from ioa_p2p.cli.output import pairs
    from ioa_p2p.node import seed_list
    from ioa_p2p.wire import ids

    config = _config(here)
    told = seed_list.open_list(seed_list.read(file), ids.network_id(config.mesh))
    here.out.line(pairs(_described(told)))
    try:
        seed_list.judge(told, config.seed_list_keys, time.time())
    except UsageError as fault:
        here.out.result({**_described(told), "good": False, "code": fault.code, "why": str(fault), "hint": fault.hint})
        here.out.say(f"not taken: {fault}\nhint:  {fault.hint}")
        return 1
    here.out.result({**_described(told), "good": True}, "it is good")
    return 0


@node_command(command, name="add")
@click.argument("file", type=FILE)
def add(here: Here, file: Path) -> None:
    """Give this node a newer list; one that runs takes it within seconds."""
    from ioa_p2p.node import seed_list
    from ioa_p2p.node.access import list_file
    from ioa_p2p.wire import ids

    config = _config(here)
    network, place = ids.network_id(config.mesh), list_file(config)
    frame = seed_list.read(file)
    told = seed_list.open_list(frame, network)
    seed_list.judge(told, config.seed_list_keys, time.time())
    before = seed_list.read(place) if place.exists() else None
    if before is not None and seed_list.open_list(before, network).node == told.node:
        seed_list.succeed(frame, told, before, network)
    here.home.make_folders()
    seed_list.write(place, frame)
    here.out.result(
        {**_described(told), "file": str(place)}, f"{place} holds list number {told.number}: {_count(told.seeds)}"
    )


def _config(here: Here) -> "Config":
    from ioa_p2p.node.config import load

    return load(here.home, {}, os.environ)


def _number_in(file: Path, network: bytes) -> int:
    """The number of the list that is there; 0 without one. Raises UsageError for a file that is something else."""
    from ioa_p2p.node import seed_list

    return seed_list.open_list(seed_list.read(file), network).number if file.exists() else 0


def _count(seeds: Sequence[str]) -> str:
    return "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"


def _described(told: "SeedList") -> dict[str, Any]:
    from ioa_p2p.node.seed_list import date
    from ioa_p2p.wire.ids import node_text

    return {
        "signer": node_text(told.node),
        "number": told.number,
        "issued": date(told.issued),
        "expires": date(told.expires),
        "seeds": list(told.seeds),
    }
