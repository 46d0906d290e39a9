"""Datagrams over UDP on asyncio.

    socket ── readable ──> up to DATAGRAM_BATCH_MAX x recvfrom ──> on_datagrams(batch)
    send ──> sendto, at once; what the kernel will not take now is dropped and counted

Own reader instead of asyncio's DatagramProtocol: one callback a batch, and an ICMP error (a peer's port is closed)
is one counted errno, not a reason to stop.
"""

import asyncio
import errno
import ipaddress
import socket
from collections import Counter
from collections.abc import Callable, Sequence

from ioa_p2p.errors import NetError
from ioa_p2p.net.ports import Endpoint
from ioa_p2p.wire import limits

_RECEIVE_BYTES = limits.DATAGRAM_BYTES_MAX + 1  # one more, to tell a longer one
_MAPPED = "::ffff:"  # how a socket bound to :: writes an IPv4 address (RFC 4291, 2.5.5.2); nobody else ever sees it
_KERNEL_BUFFER_BYTES = 1024 * 1024  # a burst of some 800 datagrams outlives a busy moment of ours


class UdpDatagrams:
    """`Datagrams` on one socket. host: a literal IPv4 or IPv6 address; port 0: any free one."""

    def __init__(self, host: str = "0.0.0.0", port: int = 0) -> None:
        self.counters: Counter[str] = Counter()
        self._bind = Endpoint(host, port)
        self._family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
        self._socket: socket.socket | None = None
        self._on_datagrams: Callable[[Sequence[tuple[Endpoint, bytes]]], None]

    @property
    def endpoint(self) -> Endpoint:
        if self._socket is None:
            return self._bind
        host, port, *_ = self._socket.getsockname()
        return Endpoint(host, port)

    async def open(self, on_datagrams: Callable[[Sequence[tuple[Endpoint, bytes]]], None]) -> None:
        self._on_datagrams = on_datagrams
        self._socket = _bound(self._family, self._bind)
        asyncio.get_running_loop().add_reader(self._socket, self._readable)

    def send(self, to: Endpoint, data: bytes) -> None:
        if len(data) > limits.DATAGRAM_BYTES_MAX:
            self.counters["send-oversize"] += 1
        elif self._socket is None:
            self.counters["send-closed"] += 1
        else:
            try:
                self._socket.sendto(data, self._as_ours(to))
            except OSError as fault:  # full buffer, no route, wrong family, or an ICMP error of an earlier send
                self.counters[f"send-{_name(fault)}"] += 1

    async def aclose(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _readable(self) -> None:
        batch: list[tuple[Endpoint, bytes]] = []
        for _ in range(limits.DATAGRAM_BATCH_MAX):
            if not self._receive(batch):
                break
        if batch:
            self._on_datagrams(batch)

    def _receive(self, batch: list[tuple[Endpoint, bytes]]) -> bool:
        """One datagram into `batch`. False: none is left for now."""
        assert self._socket is not None, "a closed socket has no reader"
        try:
            data, address = self._socket.recvfrom(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as fault:  # ICMP port unreachable of an earlier send
            self.counters[f"receive-{_name(fault)}"] += 1
            return True
        if len(data) > limits.DATAGRAM_BYTES_MAX:
            self.counters["receive-oversize"] += 1
        else:
            batch.append((Endpoint(address[0].removeprefix(_MAPPED), address[1]), data))
        return True

    def _as_ours(self, to: Endpoint) -> Endpoint:
        """As our socket writes it."""
        mapped = self._family == socket.AF_INET6 and ":" not in to.host
        return Endpoint(_MAPPED + to.host, to.port) if mapped else to


def _bound(family: int, endpoint: Endpoint) -> socket.socket:
    """A bound non-blocking socket. Raises NetError('port-in-use' | 'cannot-bind')."""
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BUFFER_BYTES)
    try:
        opened.bind(endpoint)
    except OSError as fault:
        opened.close()
        if fault.errno == errno.EADDRINUSE:
            hint = "stop the other program, or set another port; 0 takes any free one"
            raise NetError("port-in-use", f"UDP port {endpoint.port} on {endpoint.host} is in use", hint) from None
        hint = "check the address and port in the config"
        raise NetError("cannot-bind", f"UDP {endpoint.host}:{endpoint.port}: {fault.strerror}", hint) from None
    return opened


def _name(fault: OSError) -> str:
    """EAGAIN -> "eagain"; counters speak names, not numbers."""
    return errno.errorcode.get(fault.errno or 0, "error").lower()
