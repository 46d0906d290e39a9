"""How a node gets into its mesh, and back into it after sleep or a move.

config, LAN, DNS, signed list ──> Seeds ──> the DHT's Join        LAN ──> links to who is near
Watch: woke up, network changed ──> publish anew, Refresh, dial again, announce again, look again
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ioa_p2p.dht import commands
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.dht.peers import SPACE as PEERS
from ioa_p2p.errors import PeerError
from ioa_p2p.net.ports import Datagrams
from ioa_p2p.node import clock, lan, seeds
from ioa_p2p.node.config import Config, Seed
from ioa_p2p.node.dns import DnsSeeds
from ioa_p2p.node.lan import Lan, Us
from ioa_p2p.node.neighbourhood import Neighbourhood, link_address
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.seed_list import ListSeeds
from ioa_p2p.node.seeds import ConfigSeeds, Known, Seeds, Source
from ioa_p2p.node.watch import Watch, hosts_of
from ioa_p2p.storage.base import Storage
from ioa_p2p.wire import ids
from ioa_p2p.wire.dht import Contact, unpack_contact

HOW_TO_GET_ONE = "`ioa-p2p id` on a node that runs prints its line: add it to seeds in config.toml, or try seed_dns"

log = logging.getLogger(__name__)


class Access:
    """addresses(): where our links are dialled, as of now. on_move(): the node is told too. link_port: of our links."""

    def __init__(
        self,
        config: Config,
        own: bytes,
        storage: Storage,
        dht: Driver,
        datagrams: Datagrams,
        link_port: int,
        neighbourhood: Neighbourhood,
        addresses: Callable[[], tuple[str, ...]],
        on_move: Callable[[], None],
    ) -> None:
        assert isinstance(dht.machine, DhtMachine)
        self._machine = dht.machine
        self._config = config
        self._own = own
        self._storage = storage
        self._dht = dht
        self._datagrams = datagrams
        self._link_port = link_port
        self._neighbourhood = neighbourhood
        self._addresses = addresses
        self._on_move = on_move
        self.seeds = Seeds(own, self._join, lambda: self._machine.seeds_heard)
        self._dns = DnsSeeds(())
        self._lan: Lan | None = None
        self._near: frozenset[bytes] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()

    # -- life

    def open(self) -> None:
        self.follow(self._config)
        self._do(Watch(lambda: clock.now().boot, self._moved).keep())

    def follow(self, config: Config) -> None:
        """Ask these sources from now on, in the order in which they are trusted to be good and near."""
        self._config = config
        self._dns = DnsSeeds(config.seed_dns)
        sources: list[Source] = [ConfigSeeds(config), *self._seek_lan(), self._dns]
        sources.append(ListSeeds(list_file(config), config.seed_list_keys, self._network, self._storage))
        self.seeds.follow(sources)

    async def aclose(self) -> None:
        self.seeds.close()
        for task in self._tasks:
            task.cancel()
        if self._lan is not None:
            await self._lan.aclose()

    def _seek_lan(self) -> list[Lan]:
        """Be on the local network, or no longer."""
        if lan.is_wanted(self._config) and self._lan is None:
            self._lan = Lan(self._us(), self._neighbours_changed)
            self._do(self._lan.open())
        elif self._lan is not None and not lan.is_wanted(self._config):
            left, self._lan = self._lan, None
            self._neighbours_changed()
            self._do(left.aclose())
        return [self._lan] if self._lan is not None else []

    @property
    def _network(self) -> bytes:
        return ids.network_id(self._config.mesh)

    # -- what people are told

    @property
    def problems(self) -> list[str]:
        """What keeps sources from naming seeds."""
        return self.seeds.problems

    @property
    def notes(self) -> list[str]:
        """What whoever runs the node should know of its way into the mesh."""
        return [*([self._alone] if self._alone else []), *self.problems]

    @property
    def _alone(self) -> str:
        """What a node is told that knows nobody to ask; empty if it does."""
        if self._machine.contacts or self.seeds.known or self._remembered():
            return ""
        mesh = self._config.mesh
        return f"no seed is known, so this node waits for others. To join those of mesh {mesh!r}: {HOW_TO_GET_ONE}"

    @property
    def counters(self) -> Counter[str]:
        return self._dns.counters + (self._lan.counters if self._lan is not None else Counter[str]())

    def rows(self) -> list[dict[str, Any]]:
        """Every first contact we know of; the remembered ones last, for they may be 200. docs/control.md, `seeds`."""
        good = {contact.key for contact in self._machine.contacts}
        remembered = [seeds.row(known, answers=known.seed.node in good) for known in self._remembered()]
        named = [seeds.row(known, answers=self.seeds.answers(known.seed)) for known in self.seeds.known]
        return [*named, *remembered]

    def _remembered(self) -> list[Known]:
        """The DHT's own memory; a damaged row is a peer less."""
        found: list[Known] = []
        for _, packed in self._storage.scan(PEERS):
            try:
                contact = unpack_contact(packed)
            except PeerError:
                continue
            found.append(Known(Seed(*contact), "remembered", (contact,)))
        return found

    # -- what happens

    def _join(self, contacts: tuple[Contact, ...]) -> None:
        if not contacts and self._alone:
            log.info(self._alone)
        self._dht.command(commands.Join(contacts))

    def _moved(self, why: str) -> None:
        log.info("%s: looking for the mesh anew", why)
        self._dht.command(commands.Moved(self._addresses()))
        self._neighbourhood.redial()
        self._on_move()
        self.seeds.wake()
        if self._lan is not None:
            self._do(self._lan.reopen())

    def _neighbours_changed(self) -> None:
        """Link to the first few that are near, and try them as seeds."""
        near: dict[bytes, list[str]] = {}
        for one in self._lan.neighbours if self._lan is not None else ():  # two may claim one key: both are tried
            near.setdefault(one.node, []).extend(link_address(host, one.link_port) for host in one.hosts)
        for node in self._near - near.keys():
            self._neighbourhood.drop(node, "lan")
        for node, addresses in near.items():
            self._neighbourhood.want(node, addresses, "lan")
        self._near = frozenset(near)
        self.seeds.wake("lan")

    def _us(self) -> Us:
        endpoint, bind = self._datagrams.endpoint, self._config.dht_host
        return Us(self._own, self._network, bind, endpoint.port, self._link_port, lambda: hosts_of(bind))

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def list_file(config: Config) -> Path:
    """Where the signed seed list is."""
    return Path(config.seed_list_file).expanduser() if config.seed_list_file else config.home.seed_list
