"""Links and datagrams within one process: the same contract as libp2p and UDP, on the loop's own time.

    MemoryLinks ── _End ══ bytes ══ _End ── MemoryLinks         one MemoryHub is one network
    MemoryLinks ── _End ══ via ══ _End ── MemoryLinks           likewise, through a third node
    MemoryDatagrams ── hub.ports[endpoint] ── MemoryDatagrams

A hub can block the way from one node to another: bytes wait, as TCP would keep them; datagrams and dials are lost.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from ioa_p2p.errors import NetError
from ioa_p2p.net.ports import Endpoint, LinkDown, LinkEvent, LinkUp, RelayDown, RelayUp
from ioa_p2p.net.switchboard import Link, Switchboard
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.link import Hello

CIRCUIT = "/p2p-circuit"


class MemoryHub:
    """One network in memory. `links` by address, `ports` by endpoint."""

    def __init__(self) -> None:
        self.links: dict[str, MemoryLinks] = {}
        self.ports: dict[Endpoint, MemoryDatagrams] = {}
        self._blocked: set[tuple[bytes, bytes]] = set()
        self._next = 0

    def number(self) -> int:
        """A number not handed out before, for an address or port."""
        self._next += 1
        return self._next

    def block(self, source: bytes, target: bytes) -> None:
        """Nothing gets from node `source` to node `target` until `unblock`."""
        self._blocked.add((source, target))

    def unblock(self, source: bytes, target: bytes) -> None:
        self._blocked.discard((source, target))
        for links in self.links.values():
            links.flush()

    def is_blocked(self, source: bytes, target: bytes, via: bytes | None = None) -> bool:
        if via is not None:
            return self.is_blocked(source, via) or self.is_blocked(via, target)
        return (source, target) in self._blocked

    def way(self, address: str, peer: bytes) -> "tuple[MemoryLinks, MemoryLinks | None] | None":
        """Whom one gets to who dials `peer` at this address, and through whom; None: nobody is there."""
        plain, through, _ = address.partition(CIRCUIT)
        found = self.links.get(plain)
        if found is None or not through:
            return (found, None) if found else None
        reached = next((links for links in self.links.values() if links.node == peer), None)
        return (reached, found) if reached and found.node in reached.relays else None


class MemoryLinks:
    """`Links` over a hub. node: our key, 32 B; hello: what we say of ourselves (addresses filled in at open);
    relay: whether others may be reached through us."""

    def __init__(
        self, hub: MemoryHub, node: bytes, hello: Hello, dice: random.Random, address: str = "", *, relay: bool = False
    ) -> None:
        self.node = node
        self.hub = hub
        self.relays: set[bytes] = set()  # who passes links on to us
        self._address = address
        self._relay = relay
        self._relay_news: list[RelayUp | RelayDown] = []
        self._switchboard = Switchboard(node, hello, dice)
        self._standing: dict[bytes, Link] = {}
        self._ends: set[_End] = set()
        self._on_events: Callable[[Sequence[LinkEvent]], None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._beat: asyncio.TimerHandle | None = None
        self._delivering = False

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self._address,) if self._on_events else ()

    @property
    def peers(self) -> frozenset[bytes]:
        return frozenset(self._standing)

    @property
    def counters(self) -> dict[str, int]:
        return self._switchboard.counters

    async def open(self, on_events: Callable[[Sequence[LinkEvent]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._address = self._address or f"/memory/{self.hub.number()}"
        if self._address in self.hub.links:
            raise NetError("port-in-use", f"{self._address} is taken", "choose another port")
        self.hub.links[self._address] = self
        self._on_events = on_events
        hello = self._switchboard.hello
        self._switchboard.hello = codec.replace(hello, addresses=hello.addresses or self.addresses)
        self._beat = self._loop.call_later(limits.LINK_BEAT_S, self._on_beat)

    def connect(self, peer: bytes, addresses: Sequence[str]) -> None:
        self._switchboard.connect(self._loop.time(), peer, addresses)
        self._settle()

    def forget(self, peer: bytes) -> None:
        self._switchboard.forget(self._loop.time(), peer)
        self._settle()

    def cut(self, peer: bytes, reason: str) -> None:
        self._switchboard.cut(self._loop.time(), peer, reason)
        self._settle()

    def relay_through(self, peers: Collection[bytes]) -> None:
        for peer in self.relays.difference(peers):
            self._lose_relay(peer, "given up")
        for peer in set(peers) - self.relays:
            self._ask_relay(peer)
        self._settle()

    def send(self, peer: bytes, kind: int, body: bytes) -> bool:
        link = self._standing.get(peer)
        sent = link is not None and link.outbox.put(kind, body)
        if link is not None and sent:
            link.wire.wake()
        else:
            self.counters["send-no-link" if link is None else "send-refused"] += 1
        return sent

    async def aclose(self) -> None:
        if self._on_events is None:
            return
        assert self._beat is not None, "an open port beats"
        self._beat.cancel()
        self.flush()
        self._switchboard.close(self._loop.time())
        for links in list(self.hub.links.values()):
            links.hang_up(via=self)
        del self.hub.links[self._address]
        self._deliver()
        self._on_events = None

    def flush(self) -> None:
        for end in list(self._ends):
            end.write()

    # -- carrying ---------------------------------------------------------------------------------------

    def _on_beat(self) -> None:
        self._switchboard.beat(self._loop.time())
        self._settle()
        self._beat = self._loop.call_later(limits.LINK_BEAT_S, self._on_beat)

    def _settle(self) -> None:
        """After every input: start the dials that are due, hand over events soon."""
        for peer, addresses in self._switchboard.due(self._loop.time()):
            self._loop.call_soon(self._dial, peer, addresses)
        if not self._delivering:
            self._delivering = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivering = False
        events = self._switchboard.take_events()
        for event, link in events:
            if isinstance(event, LinkUp):
                self._standing[event.peer] = link
            elif isinstance(event, LinkDown):
                del self._standing[event.peer]
                self._lose_relay(event.peer, "link lost")
        batch = [*(event for event, _ in events), *self._relay_news]
        self._relay_news = []
        if batch and self._on_events is not None:
            self._on_events(batch)

    def _dial(self, peer: bytes, addresses: Sequence[str]) -> None:
        ways = [way for address in addresses if (way := self.hub.way(address, peer))]
        there, via = next(((there, via) for there, via in ways if self._is_open(there.node, via)), (None, None))
        now = self._loop.time()
        if there is None:
            self._switchboard.dial_failed(now, peer, "no-answer")
        elif there.node != peer:
            self._switchboard.dial_failed(now, peer, "wrong-peer")
        else:
            near, far = _End(self, via), _End(there, via)
            near.far, far.far = far, near
            near.open(peer, there.seen_at(via), dialled=True)
            far.open(self.node, self.seen_at(via), dialled=False)
        self._settle()

    def _is_open(self, peer: bytes, via: "MemoryLinks | None") -> bool:
        through = via.node if via else None
        return not (self.hub.is_blocked(self.node, peer, through) or self.hub.is_blocked(peer, self.node, through))

    # -- relaying -----------------------------------------------------------------------------------------

    def seen_at(self, via: "MemoryLinks | None") -> str:
        """The address that a peer knows us by."""
        return via._address + CIRCUIT if via else self._address

    def hang_up(self, via: "MemoryLinks") -> None:
        """That relay is gone, or no longer ours: so is what it carried."""
        for end in [end for end in self._ends if end.via is via]:
            self.soon(end.hang_up)

    def _ask_relay(self, peer: bytes) -> None:
        there = next((links for links in self.hub.links.values() if links.node == peer), None)
        if there is None or peer not in self._standing:
            self._relay_news.append(RelayDown(peer, "no link"))
        elif not there._relay:
            self._relay_news.append(RelayDown(peer, "refused"))
        else:
            self.relays.add(peer)
            self._relay_news.append(RelayUp(peer, self.seen_at(there)))

    def _lose_relay(self, peer: bytes, reason: str) -> None:
        if peer in self.relays:
            self.relays.discard(peer)
            self._relay_news.append(RelayDown(peer, reason))

    # -- for our ends -----------------------------------------------------------------------------------

    def opened(self, end: "_End", peer: bytes, address: str, *, dialled: bool) -> Link | None:
        self._ends.add(end)
        via = end.via.node if end.via else None
        link = self._switchboard.opened(self._loop.time(), peer, address, end, dialled=dialled, via=via)
        self._settle()
        return link

    def received(self, link: Link, data: bytes) -> None:
        self._switchboard.received(self._loop.time(), link, data)
        self._settle()

    def ended(self, end: "_End", link: Link | None) -> None:
        self._ends.discard(end)
        if link is not None:
            self._switchboard.closed(self._loop.time(), link, "closed")
            self._settle()

    def soon(self, call: Callable[[], None]) -> None:
        self._loop.call_soon(call)


class _End:
    """One end of a byte stream; a `Wire`."""

    far: "_End"

    def __init__(self, links: MemoryLinks, via: MemoryLinks | None) -> None:
        self.links = links
        self.via = via
        self._link: Link | None = None
        self._woken = False
        self._closed = False

    def open(self, peer: bytes, address: str, *, dialled: bool) -> None:
        self._link = self.links.opened(self, peer, address, dialled=dialled)
        if self._link is None:
            self.close()

    def wake(self) -> None:
        if not self._woken:
            self._woken = True
            self.links.soon(self.write)

    def write(self) -> None:
        self._woken = False
        if self._link is None or self._is_blocked(self.links, self.far.links):
            return
        while not self._closed and (data := self._link.session.take()):
            self.far.read(data)

    def read(self, data: bytes) -> None:
        if self._link is not None and not self._closed:
            self.links.received(self._link, data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.links.ended(self, None)
            self.links.soon(self.far.hang_up)

    def hang_up(self) -> None:
        if not self._closed and not self._is_blocked(self.far.links, self.links):
            self._closed = True
            self.links.ended(self, self._link)

    def _is_blocked(self, source: MemoryLinks, target: MemoryLinks) -> bool:
        return source.hub.is_blocked(source.node, target.node, self.via.node if self.via else None)


class MemoryDatagrams:
    """`Datagrams` over a hub. node names us to `hub.block`."""

    def __init__(self, hub: MemoryHub, node: bytes = b"", port: int = 0) -> None:
        self.counters: Counter[str] = Counter()
        self.node = node
        self._hub = hub
        self._endpoint = Endpoint("127.0.0.1", port)
        self._on_datagrams: Callable[[Sequence[tuple[Endpoint, bytes]]], None] | None = None
        self._batch: list[tuple[Endpoint, bytes]] = []
        self._loop: asyncio.AbstractEventLoop

    @property
    def endpoint(self) -> Endpoint:
        return self._endpoint

    async def open(self, on_datagrams: Callable[[Sequence[tuple[Endpoint, bytes]]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        endpoint = self._endpoint._replace(port=self._endpoint.port or 20_000 + self._hub.number())
        if endpoint in self._hub.ports:
            raise NetError("port-in-use", f"UDP port {endpoint.port} is taken", "choose another port")
        self._hub.ports[endpoint] = self
        self._endpoint = endpoint
        self._on_datagrams = on_datagrams

    def send(self, to: Endpoint, data: bytes) -> None:
        there = self._hub.ports.get(to)
        if len(data) > limits.DATAGRAM_BYTES_MAX:
            self.counters["send-oversize"] += 1
        elif self._on_datagrams is None:
            self.counters["send-closed"] += 1
        elif there is not None and not self._hub.is_blocked(self.node, there.node):
            there.receive(self._endpoint, data)

    def receive(self, source: Endpoint, data: bytes) -> None:
        """From the hub: handed over in the loop's next round, with whatever else has come."""
        if not self._batch:
            self._loop.call_soon(self._deliver)
        self._batch.append((source, data))

    async def aclose(self) -> None:
        if self._on_datagrams is not None:
            self._on_datagrams = None
            del self._hub.ports[self._endpoint]

    def _deliver(self) -> None:
        batch, self._batch = self._batch, []
        if self._on_datagrams is not None:
            self._on_datagrams(batch)
