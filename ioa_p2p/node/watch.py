"""Did the machine sleep, or move to another network? Looked at every few seconds; whoever asks is told why.

    boot clock ran ahead of our own pace ──┐
    other addresses, or another way out ───┴──> on_change("woke up" | "the network changed")

Failed sends need no counter of their own: without a way out the probe below has no address, and its return is a change.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress

import psutil

from ioa_p2p.wire import limits

LOOK_S = 3.0  # an address that changed is told within as much
_FAR = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))  # nobody's (RFC 5737, 3849); nothing is sent

Addresses = frozenset[str]


class Watch:
    """boot(): seconds since the machine started, sleep included. addresses(): `local_addresses`, or a test's."""

    def __init__(
        self,
        boot: Callable[[], float],
        on_change: Callable[[str], None],
        addresses: "Callable[[], Addresses] | None" = None,
    ) -> None:
        self._boot = boot
        self._addresses = addresses or local_addresses
        self._on_change = on_change
        self._last_s = boot()
        self._last = self._addresses()

    async def keep(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        now_s, now = self._boot(), self._addresses()
        slept = now_s - self._last_s > LOOK_S + limits.DHT_JUMP_S
        moved = now != self._last
        self._last_s, self._last = now_s, now
        if moved or slept:
            self._on_change("the network changed" if moved else "woke up")


def local_addresses() -> Addresses:
    """This machine's addresses that mean something to others, and those it would send from ("> ..."), if it can."""
    entries = [entry.address for nic in psutil.net_if_addrs().values() for entry in nic]
    return frozenset([*filter(_is_told, entries), *(f"> {source}" for source in map(_way_out, _FAR) if source)])


def hosts_of(bind: str) -> list[str]:
    """The addresses at which a socket bound to `bind` is reached from elsewhere."""
    ours = ipaddress.ip_address(bind)
    if not ours.is_unspecified:
        return [bind]
    told = sorted(text for text in local_addresses() if not text.startswith(">"))
    return [text for text in told if ipaddress.ip_address(text).version == ours.version]


def _is_told(text: str) -> bool:
    """No loopback, no link-local, no hardware address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local)


def _way_out(far: tuple[str, socket.AddressFamily]) -> str:
    """The address that a datagram to somewhere far would carry; empty without a way there. Nothing is sent."""
    host, family = far
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return str(probe.getsockname()[0])
    return ""
