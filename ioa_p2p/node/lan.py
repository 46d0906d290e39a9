"""Nodes of the same mesh on the local network: found by multicast DNS, and told of us. docs/wire.md, "Local network".

    zeroconf ── announcement ── neighbour_of ──> Neighbour ──> on_change(): seeds, and links to the first few
       ^── our own announcement                  gone, or too many: forgotten

Whatever strangers announce is an address to try, no more: the DHT's boxes and the links prove who is there. Where
multicast does not work nothing is found, which is counted and no reason to stop.
"""

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.node.config import Config, Seed
from ioa_p2p.wire import ids, limits

if TYPE_CHECKING:
    from zeroconf import ServiceStateChange
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

SERVICE = "_ioa-p2p._udp.local."
VERSION = "1"
FIRST_S = 1.5  # the first look waits so long for somebody: answers to a question come within a second
FLUSH_S = 1.5  # after a change the old address is still told for a second (RFC 6762, 10.2)
EVERY_S = 60.0  # changes are told at once; this only repeats them

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A node as announced. hosts: literal addresses of our family. port: its DHT's, UDP. link_port: its links', TCP."""

    node: bytes
    hosts: tuple[str, ...]
    port: int
    link_port: int


@dataclass(frozen=True, slots=True)
class Us:
    """What we announce. hosts(): the addresses that others here reach us at, as of now; one of them is `bind`, if that
    is not every address (0.0.0.0, ::)."""

    node: bytes
    network: bytes
    bind: str
    port: int
    link_port: int
    hosts: Callable[[], Sequence[str]]


class Lan:
    """A Source. on_change() is called when somebody came or went."""

    name = "lan"
    every_s = EVERY_S
    problem = ""

    def __init__(self, us: Us, on_change: Callable[[], None]) -> None:
        self.counters: Counter[str] = Counter()
        self._us = us
        self._on_change = on_change
        self._found: dict[str, Neighbour] = {}
        self._first = asyncio.Event()
        self._moving = asyncio.Lock()
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._asking: set[asyncio.Task[None]] = set()

    @property
    def neighbours(self) -> list[Neighbour]:
        """The ones we use, first found first."""
        return list(self._found.values())[: limits.LAN_SEEDS_MAX]

    async def look(self) -> Sequence[Seed]:
        if not self._first.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_S):
                    await self._first.wait()
            self._first.set()
        return [Seed(one.node, host, one.port) for one in self.neighbours for host in one.hosts]

    # -- life

    async def open(self) -> None:
        """Announce and listen. Without multicast this does nothing, counted as 'lan-unavailable'."""
        from zeroconf.asyncio import AsyncServiceBrowser, AsyncZeroconf  # only here: many nodes know no LAN

        _quiet()
        try:
            self._zeroconf = AsyncZeroconf(interfaces=self._interfaces())
            await self._announce(self._zeroconf)
            self._browser = AsyncServiceBrowser(self._zeroconf.zeroconf, SERVICE, handlers=[self._on_service])
        except Exception as fault:  # no interface, no multicast route, no right to it
            self.counters["lan-unavailable"] += 1
            log.info("no discovery on the local network: %s", fault or type(fault).__name__)
            await self.aclose()

    async def aclose(self) -> None:
        """Say goodbye, if anybody can hear it."""
        for asking in self._asking:
            asking.cancel()
        zeroconf, browser, self._zeroconf, self._browser = self._zeroconf, self._browser, None, None
        try:
            if browser is not None:
                await browser.async_cancel()
            if zeroconf is not None:
                await zeroconf.async_unregister_all_services()
                await zeroconf.async_close()
        except Exception as fault:
            log.debug("leaving the local network: %r", fault)

    async def reopen(self) -> None:
        """Our addresses changed: announce the new ones, and ask again who is there."""
        async with self._moving:  # two moves in a row: one after the other
            await self.aclose()
            self._found.clear()
            await self.open()

    # -- hearing

    def _on_service(self, zeroconf: Any, service_type: str, name: str, state_change: "ServiceStateChange") -> None:
        if state_change.name == "Removed":
            self._forget(name)
        elif len(self._asking) < limits.LAN_PEERS_MAX:
            asking = asyncio.ensure_future(self._ask(name, FLUSH_S if state_change.name == "Updated" else 0.0))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        else:
            self.counters["lan-overloaded"] += 1

    async def _ask(self, name: str, after_s: float) -> None:
        """The details of an announcement."""
        from zeroconf.asyncio import AsyncServiceInfo

        await asyncio.sleep(after_s)
        if self._zeroconf is None:
            return
        try:
            info = AsyncServiceInfo(SERVICE, name)
            if await info.async_request(self._zeroconf.zeroconf, limits.LAN_WAIT_S * 1_000):
                self._hear(name, neighbour_of(self._us, info.properties, info.parsed_addresses(), info.port or 0))
        except PeerError as fault:
            self.counters[fault.code] += 1
        except Exception as fault:  # a name that zeroconf will not ask for, a socket that went
            self.counters["lan-bad-name"] += 1
            log.debug("asking for %r: %r", name, fault)

    def _hear(self, name: str, neighbour: Neighbour | None) -> None:
        if neighbour is None or self._found.get(name) == neighbour:
            return
        self._found[name] = neighbour
        if len(self._found) > limits.LAN_PEERS_MAX:
            del self._found[next(iter(self._found))]
        self._first.set()
        self._on_change()

    def _forget(self, name: str) -> None:
        if self._found.pop(name, None) is not None:
            self._on_change()

    # -- telling

    async def _announce(self, zeroconf: Any) -> None:
        """Under another name if ours is taken, as by a copy of our key."""
        await zeroconf.async_register_service(self._announcement(), allow_name_change=True)

    def _interfaces(self) -> Any:
        from zeroconf import InterfaceChoice

        bind = ipaddress.ip_address(self._us.bind)
        return InterfaceChoice.All if bind.is_unspecified else [self._us.bind]

    def _announcement(self) -> "AsyncServiceInfo":
        from zeroconf.asyncio import AsyncServiceInfo

        us, label = self._us, ids.node_text(self._us.node)[:16]
        return AsyncServiceInfo(
            SERVICE,
            f"{label}.{SERVICE}",
            port=us.port,
            properties={"v": VERSION, "n": us.network.hex(), "k": ids.node_text(us.node), "p": str(us.link_port)},
            addresses=[ipaddress.ip_address(host).packed for host in us.hosts()],
            server=f"ioa-{label}.local.",
        )


def is_wanted(config: Config) -> bool:
    """Whether to be seen on the local network: told so, or a node of the local kind that listens beyond loopback."""
    beyond = not ipaddress.ip_address(config.dht_host).is_loopback
    return config.lan == "on" or (config.lan == "auto" and config.profile == "lan" and beyond)


def neighbour_of(us: Us, properties: Mapping[bytes, bytes | None], hosts: Sequence[str], port: int) -> Neighbour | None:
    """What a stranger announced, if it is a node of our mesh and not ourselves. Raises PeerError('lan-bad-record')."""
    texts = {key: _text(properties.get(key.encode())) for key in ("v", "n", "k", "p")}
    if texts["v"] != VERSION or texts["n"] != us.network.hex():
        return None
    try:
        node = ids.node_from_text(texts["k"])
    except UsageError:
        raise PeerError("lan-bad-record", "no node key") from None
    usable = tuple(host for host in hosts if _usable(host, us.bind))[: limits.LAN_ADDRESSES_MAX]
    if not usable or not 0 < port <= 0xFFFF or not _is_port(texts["p"]):
        raise PeerError("lan-bad-record", "no address, or no port")
    return Neighbour(node, usable, port, int(texts["p"])) if node != us.node else None


def _text(value: bytes | None) -> str:
    return (value or b"")[: limits.SEED_TEXT_BYTES_MAX].decode("ascii", "replace")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) <= 0xFFFF


def _usable(host: str, bind: str) -> bool:
    """One that our socket can send to: of its family, and loopback only from loopback. No scoped address."""
    try:
        address, ours = ipaddress.ip_address(host), ipaddress.ip_address(bind)
    except ValueError:
        return False
    if address.version != ours.version or address.is_unspecified or address.is_multicast or "%" in host:
        return False
    if address.version == 6 and address.is_link_local:
        return False
    return address.is_loopback == ours.is_loopback


class _Silence(logging.Filter):
    """zeroconf tells of every packet that it cannot send; on a machine without multicast that is each of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR


def _quiet() -> None:
    logger = logging.getLogger("zeroconf")
    if not any(isinstance(one, _Silence) for one in logger.filters):
        logger.addFilter(_Silence())
