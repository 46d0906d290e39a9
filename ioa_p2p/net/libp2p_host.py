"""The trio side of the libp2p links: one host, its dials, its link streams, in a thread of its own.

    Libp2pLinks (asyncio) ── token.run_sync_soon ──> Host ── Pipe ══ peer
         ^                                             │
         └── call_soon_threadsafe, one a batch ── inbox <── Switchboard

Everything here runs on the trio thread, but for `inbox` (a deque: this side appends, the other pops) and counters
with one writer each. One connection carries one link; the end of either is the end of both.
"""
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# trio's start_soon and run_sync_soon, and some modules of libp2p, are not fully typed.

import ipaddress
import random
import socket
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import cast

import psutil
import trio
from libp2p.abc import INetStream
from libp2p.custom_types import TProtocol
from libp2p.exceptions import BaseLibp2pError
from libp2p.host.basic_host import BasicHost
from libp2p.network.connection.swarm_connection import SwarmConn
from libp2p.peer.id import ID
from multiaddr import Multiaddr

from ioa_p2p.errors import NetError
from ioa_p2p.net.libp2p_circuit import HOP, STOP, CircuitRefusedError, is_circuit, muxer_of, open_stream
from ioa_p2p.net.libp2p_patches import check_port_free, node_of, peer_id_of, sturdy_swarm
from ioa_p2p.net.libp2p_pipe import Pipe
from ioa_p2p.net.libp2p_relay import Relay
from ioa_p2p.net.libp2p_relayed import Relayed
from ioa_p2p.net.ports import Endpoint, Frames, LinkEvent, RelayDown, RelayTerms, RelayUp
from ioa_p2p.net.switchboard import Link, Switchboard
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.link import PROTOCOL, Hello

_ENDS = (OSError, BaseLibp2pError, trio.BrokenResourceError, trio.ClosedResourceError)
_LINK_PROTOCOL = TProtocol(PROTOCOL)


class PipeWire:
    """A `Wire` over a pipe: writes at once when it can, else leaves it to the `write` task."""

    def __init__(self, stream: INetStream, host: "Host") -> None:
        self.pipe = Pipe(stream, self._on_data)
        self.link: Link | None = None
        self._host = host
        self._woken = trio.Event()
        self._left = b""  # taken from the session, beyond the peer's window
        self._writing = False  # the task is at it: nothing may overtake

    @property
    def busy(self) -> bool:
        """Something waits or is being written."""
        waits = self.link is not None and self.link.outbox.waiting_bytes > 0
        return waits or self._writing or bool(self._left) or not self.pipe.ready

    def wake(self) -> None:
        while self.link is not None and not self._writing and not self._left and self.pipe.ready:
            data = self.link.session.take()
            if not data:
                return
            self._left = self.pipe.write_now(data)
        self._woken.set()

    def close(self) -> None:
        self.pipe.abort()

    def credit(self) -> None:
        """Let the peer send on, if the node has room."""
        if self._host.may_credit(self):
            self.pipe.give_credit()
            if not self.pipe.ready:
                self._woken.set()

    async def write(self) -> None:
        """For ever: what could not be written at once."""
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            self._writing = True
            await self.pipe.write(self._left)
            self._left, self._writing = b"", False
            self.wake()

    def _on_data(self, data: bytes) -> None:
        if self.link is not None:
            self._host.received(self.link, data)
            if self.pipe.credit_due:
                self.credit()


class _BeforeWaiting(trio.abc.Instrument):
    """Calls once in every round of trio's loop, when all tasks have done what they could."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def before_io_wait(self, timeout: float) -> None:
        self._call()


class Host:
    """One libp2p host. relay: what others get of us. post: called, on this thread, when `inbox` was empty and no longer
    is."""

    def __init__(
        self, seed: bytes, hello: Hello, dice: random.Random, listen: Endpoint, relay: RelayTerms | None,
        post: Callable[[], None],
    ) -> None:  # fmt: skip
        self.inbox: deque[tuple[LinkEvent, Link | None]] = deque()
        self.read_bytes = 0  # of frames, taken out of the inbox; written by the other side only
        self.posted = False  # the other side has been called and has not begun to read
        self.withheld: set[PipeWire] = set()
        self._port = 0  # where we listen, once we do
        self._token: trio.lowlevel.TrioToken
        self._come_bytes = 0
        self._listen = listen
        self._post = post
        self._swarm = sturdy_swarm(seed)
        self._host = BasicHost(self._swarm)
        self._own = self._swarm.get_peer_id()
        own = node_of(self._own)
        assert own is not None, "our key is Ed25519"
        self.switchboard = Switchboard(own, hello, dice)
        self._relay = Relay(relay, self.switchboard.counters) if relay else None
        self._relayed = Relayed(self._swarm, self._relay_news)
        self._wires: set[PipeWire] = set()
        self._nursery: trio.Nursery
        self._dials: trio.CapacityLimiter
        self._stop: trio.Event

    async def run(self, opened: Callable[[], None]) -> None:
        """Listen, call `opened`, and serve until `stop`. Raises NetError when it cannot listen."""
        self._stop = trio.Event()
        self._dials = trio.CapacityLimiter(limits.LINK_DIALS_MAX)
        self._token = trio.lowlevel.current_trio_token()
        self._host.set_stream_handler(_LINK_PROTOCOL, self._accept)
        self._host.set_stream_handler(STOP, self._relayed.accept)
        if self._relay:
            self._host.set_stream_handler(HOP, self._relay.serve)
        if self._listen.port:
            check_port_free(self._listen)
        async with self._host.run([_multiaddr(self._listen)]), trio.open_nursery() as self._nursery:
            self._relayed.nursery = self._nursery
            self._port = self._listening()
            hello = self.switchboard.hello
            self.switchboard.hello = codec.replace(hello, addresses=hello.addresses or self.addresses)
            self._nursery.start_soon(self._beat)
            trio.lowlevel.add_instrument(_BeforeWaiting(self._call_over))
            opened()
            await self._stop.wait()
            await self._leave()
            self._nursery.cancel_scope.cancel()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Our dialable addresses as of now, for a machine may move to another network; none before we listen."""
        hosts = _own_hosts(self._listen.host) if self._listen.host in ("0.0.0.0", "::") else [self._listen.host]
        addresses = (f"{_multiaddr(Endpoint(host, self._port))}/p2p/{self._own}" for host in hosts)
        return tuple(addresses)[: limits.RECORD_ADDRESSES_MAX] if self._port else ()

    def stop(self) -> None:
        self._stop.set()

    # -- from the other side, through `soon` ---------------------------------------------------------------

    def soon(self, call: Callable[..., None], *args: object) -> None:
        """Run one of the methods below on this thread; may be called from any."""
        self._token.run_sync_soon(call, *args)

    def connect(self, peer: bytes, addresses: Sequence[str]) -> None:
        self.switchboard.connect(trio.current_time(), peer, addresses)
        self._dial_due()

    def forget(self, peer: bytes) -> None:
        self.switchboard.forget(trio.current_time(), peer)
        self._hand_over()

    def cut(self, peer: bytes, reason: str) -> None:
        self.switchboard.cut(trio.current_time(), peer, reason)
        self._hand_over()

    def relay_through(self, peers: Collection[bytes]) -> None:
        self._relayed.want(peers)

    def wake(self, links: Iterable[Link]) -> None:
        for link in links:
            link.wire.wake()

    def credit(self) -> None:
        """The other side has read on: let withheld peers send on."""
        wires, self.withheld = self.withheld, set()
        for wire in wires:
            wire.credit()

    # -- for our wires -----------------------------------------------------------------------------------

    def received(self, link: Link, data: bytes) -> None:
        self.switchboard.received(trio.current_time(), link, data)
        self._hand_over()

    def may_credit(self, wire: PipeWire) -> bool:
        """False while the node has LINK_INBOX_BYTES_MAX still to read; then `credit` asks again."""
        if self._come_bytes - self.read_bytes <= limits.LINK_INBOX_BYTES_MAX:
            return True
        self.withheld.add(wire)
        return False

    # -- links -------------------------------------------------------------------------------------------

    async def _accept(self, stream: INetStream) -> None:
        """Handler of inbound link streams."""
        peer = node_of(stream.muxed_conn.peer_id)
        if peer is None:
            await stream.reset()
        else:
            await self._carry(stream, peer, dialled=False)

    async def _carry(self, stream: INetStream, peer: bytes, *, dialled: bool) -> None:
        """Carry one link over this stream until either ends."""
        wire = PipeWire(stream, self)
        remote, circuit = wire.pipe.remote(), wire.pipe.circuit
        address = circuit.address if circuit else str(_multiaddr(remote)) if remote else ""
        via = node_of(circuit.relay) if circuit else None
        link = self.switchboard.opened(trio.current_time(), peer, address, wire, dialled=dialled, via=via)
        wire.link = link
        self._wires.add(wire)
        try:
            if link is not None:
                await self._run_wire(wire)
        except* _ENDS:
            pass
        except* Exception as faults:  # libp2p raises what it likes; no peer may end the host
            self._count_faults(faults)
        finally:
            self._wires.discard(wire)
            self.withheld.discard(wire)
            wire.close()
            if link is not None:
                self.switchboard.closed(trio.current_time(), link, "closed")
            self._hand_over()

    async def _run_wire(self, wire: PipeWire) -> None:
        wire.pipe.open()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wire.write)
            await wire.pipe.ended()
            nursery.cancel_scope.cancel()

    def _count_faults(self, faults: BaseExceptionGroup[Exception]) -> None:
        for fault in faults.exceptions:
            self.switchboard.counters[f"fault {type(fault).__name__}"] += 1

    def _hand_over(self) -> None:
        """New events into the inbox."""
        for event, link in self.switchboard.take_events():
            if isinstance(event, Frames):
                self._come_bytes += sum(len(body) for _, body in event.frames)
            self.inbox.append((event, link))

    def _relay_news(self, event: RelayUp | RelayDown) -> None:
        self.inbox.append((event, None))

    def _call_over(self) -> None:
        """One call for however many events, as the last act of a round: the threads share one interpreter lock."""
        if self.inbox and not self.posted:
            self.posted = True
            self._post()

    async def _beat(self) -> None:
        while True:
            await trio.sleep(limits.LINK_BEAT_S)
            self.switchboard.beat(trio.current_time())
            self.credit()  # in case the other side had read all just before a wire was withheld
            self._dial_due()
            self._hand_over()

    # -- dials -------------------------------------------------------------------------------------------

    def _dial_due(self) -> None:
        for peer, addresses in self.switchboard.due(trio.current_time()):
            self._nursery.start_soon(self._dial, peer, addresses)

    async def _dial(self, peer: bytes, addresses: Sequence[str]) -> None:
        async with self._dials:
            stream, reason = await self._first_stream(peer, addresses[: limits.RECORD_ADDRESSES_MAX])
        if stream is None:
            self.switchboard.dial_failed(trio.current_time(), peer, reason)
            self._hand_over()
        else:
            await self._carry(stream, peer, dialled=True)

    async def _first_stream(self, peer: bytes, addresses: Sequence[str]) -> tuple[INetStream | None, str]:
        """Dial the addresses in turn, each as soon as the one before failed or is slow; the first stream wins."""
        won: list[INetStream] = []
        reasons = ["no-address"]

        async def attempt(address: str, failed: trio.Event) -> None:
            stream, reason = await self._dial_one(peer, address)
            if stream is None:
                reasons.append(reason)
                failed.set()
            elif won:
                muxer_of(stream).abort()  # two came at once
            else:
                won.append(stream)
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for address in addresses:
                failed = trio.Event()
                nursery.start_soon(attempt, address, failed)
                with trio.move_on_after(limits.LINK_STAGGER_S):
                    await failed.wait()
        return (won[0], "") if won else (None, reasons[-1])

    async def _dial_one(self, peer: bytes, address: str) -> tuple[INetStream | None, str]:
        """A link stream over a connection of its own, or None and why not."""
        with trio.move_on_after(limits.LINK_HANDSHAKE_S):
            try:
                return await self._open_link(peer_id_of(peer), address), ""
            except CircuitRefusedError as refusal:
                return None, refusal.status
            except ValueError:
                return None, "bad-address"
            except _ENDS:
                return None, "no-answer"
            except Exception as fault:  # as above
                return None, type(fault).__name__
        return None, "timeout"

    async def _open_link(self, peer: ID, address: str) -> INetStream:
        if is_circuit(address):
            conn = await self._relayed.dial(peer, address)
        else:
            conn = cast(SwarmConn, await self._swarm.dial_addr(Multiaddr(address), peer))
        try:
            return await open_stream(conn, _LINK_PROTOCOL)
        except BaseException:
            muxer_of(conn).abort()
            raise

    # -- beginning and end -------------------------------------------------------------------------------

    def _listening(self) -> int:
        """Our port. Raises NetError when libp2p does not listen."""
        for address in self._host.get_transport_addrs():
            return int(address.value_for_protocol("tcp") or 0)
        raise NetError("cannot-bind", f"libp2p cannot listen on {self._listen.host}:{self._listen.port}")

    async def _leave(self) -> None:
        """Up to a second to write what waits and to let peers read it; then no socket is left to hold us up."""
        with trio.move_on_after(1):
            while any(wire.busy for wire in self._wires):  # noqa: ASYNC110  once in a life, not worth an event
                await trio.sleep(0.01)
            for wire in self._wires:
                wire.pipe.shut()
            while self._wires:  # noqa: ASYNC110
                await trio.sleep(0.01)
        self.switchboard.close(trio.current_time())
        self._hand_over()
        self._call_over()
        self._swarm.abort_all()


def _multiaddr(endpoint: Endpoint) -> Multiaddr:
    family = "ip6" if ":" in endpoint.host else "ip4"
    return Multiaddr(f"/{family}/{endpoint.host}/tcp/{endpoint.port}")


def _own_hosts(wildcard: str) -> list[str]:
    """This machine's addresses of the wildcard's family. Link-local ones mean nothing to others, nor do loopback ones,
    which are told by a machine that has no other."""
    family = socket.AF_INET6 if ":" in wildcard else socket.AF_INET
    found = [entry.address for nic in psutil.net_if_addrs().values() for entry in nic if entry.family == family]
    addresses = [ipaddress.ip_address(text) for text in found if "%" not in text]
    return [str(address) for address in addresses if not address.is_loopback] or [str(one) for one in addresses]
