"""What a put and a get cost, against the kademlia package in the same run: `python -m bench.dht [--json] [--small]`.

    n nodes of ours, then n of kademlia's, in this process, over real UDP on loopback
    ── puts, gets ──> CPU-ms each, ratio ours / theirs (worse of both counts)
    ── 30 % of ours fall silent ──> gets and puts of the others: p95 and success

Both meshes grow node by node and are warmed up by as many puts and gets before, so that nodes have met. What a put or
get leaves to be done behind counts as its own: each phase lasts until its mesh is quiet, and begins with nothing for
Python's collector to find; the standing meshes, which no node would have in its memory, are kept from it. A put of ours
signs a 600 B record, seals every datagram and is verified by every holder; kademlia does none of it. A get is asked by
a node that does not hold the value, on both sides: reading one's own memory is no get.
"""

import asyncio
import gc
import itertools
import logging
import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kademlia.network import Server
from kademlia.utils import digest

from bench._measure import arguments, combine, percentile, report
from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.box import NONCE_BYTES, Boxes
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands, events
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.effects import Effect, Emit, Send, SetTimer
from ioa_p2p.errors import PeerError
from ioa_p2p.node.clock import now
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import Contact, Datagram
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord

T = TypeVar("T")
NETWORK = ids.network_id("bench")
VALUE_BYTES = 600
SILENT_SHARE = 0.3
SETTLE_S = limits.DHT_PASS_ON_S + 0.5  # the longest that a node lets work wait that a put or get has caused


@dataclass(frozen=True)
class Size:
    """How much is measured. counts: of nodes; the worse figure of them is reported."""

    counts: tuple[int, ...] = (50, 100)
    puts: int = 60
    gets: int = 240
    silent_puts: int = 40
    silent_gets: int = 120


SMALL = Size((30,), 10, 40, 10, 30)


BARS = {
    "put_ratio": 0.9,
    "get_ratio": 1.5,
    "silent_get_p95_s": 0.3,
    "silent_put_p95_s": 1.5,
}
SUCCESS_BAR = 0.99


def main() -> None:
    wanted = arguments("What a put and a get cost, against the kademlia package, and with silent nodes.")
    logging.disable(logging.WARNING)
    size = SMALL if wanted.small else Size()
    runs = [asyncio.run(measure(size)) for _ in range(wanted.runs)]
    figures = combine(runs, {"silent_success": min})
    bars = {f"{name} <= {bar}": figures[name] <= bar for name, bar in BARS.items()}
    bars[f"silent_success >= {SUCCESS_BAR}"] = figures["silent_success"] >= SUCCESS_BAR
    report(figures, bars, runs=len(runs), as_json=wanted.json)


async def measure(size: Size) -> dict[str, float]:
    """One run: every count of nodes, the worse figure of each kind."""
    worst: dict[str, float] = {}
    for count in size.counts:
        ours, theirs = await measure_ours(count, size), await measure_kademlia(count, size)
        found = {
            "put_ratio": ours["put_cpu_ms"] / theirs["put_cpu_ms"],
            "get_ratio": ours["get_cpu_ms"] / theirs["get_cpu_ms"],
            **ours,
            **{f"kademlia_{name}": value for name, value in theirs.items()},
        }
        for name, value in found.items():
            worse = min if name == "silent_success" else max
            worst[name] = worse(worst.get(name, value), value)
    return worst


async def measure_ours(count: int, size: Size) -> dict[str, float]:
    peers, dice = await start(count), random.Random(count)
    names = [f"agent-{number}" for number in range(size.puts)]
    owners = [dice.choice(peers) for _ in names]

    async def put(number: int) -> bool:
        return (await owners[number].put(names[number])).ok

    async def get(number: int) -> bool:
        index = number % len(names)
        found = await askers[number].get(owners[index].key.node, names[index])
        return found.record is not None

    async def put_anew(number: int) -> bool:
        return (await dice.choice(awake).put(f"late-{number}")).ok

    def settle() -> Awaitable[None]:
        return quiet(peers, SETTLE_S)

    await timed(put, size.puts, settle)
    askers = [pick(dice, peers, Peer.lacks, name) for name in itertools.islice(itertools.cycle(names), size.gets)]
    await timed(get, size.gets, settle)
    puts, gets = await timed(put, size.puts, settle), await timed(get, size.gets, settle)
    assert all(puts.good + gets.good), "every put and get of a healthy mesh succeeds"
    for peer in dice.sample(peers, int(SILENT_SHARE * count)):
        peer.silent = True
    awake = [peer for peer in peers if not peer.silent]
    askers = [
        pick(dice, awake, Peer.lacks, name) for name in itertools.islice(itertools.cycle(names), size.silent_gets)
    ]
    silent_gets = await timed(get, size.silent_gets, settle)
    silent_puts = await timed(put_anew, size.silent_puts, settle)
    for peer in peers:
        peer.close()
    return {
        "put_cpu_ms": puts.cpu_ms,
        "get_cpu_ms": gets.cpu_ms,
        "put_p95_s": puts.p95_s,
        "get_p95_s": gets.p95_s,
        "silent_get_p95_s": silent_gets.p95_s,
        "silent_put_p95_s": silent_puts.p95_s,
        "silent_success": min(silent_gets.success, silent_puts.success),
    }


async def start(count: int) -> list["Peer"]:
    """`count` peers that all said they are ready."""
    peers = [Peer(number) for number in range(count)]
    contacts = [await peer.open() for peer in peers]
    async with asyncio.timeout(60):
        for peer in peers:
            peer.join(*(contact for contact in contacts[:2] if contact.key != peer.key.node))
            await quiet(peers, 0.01)
        for peer in peers:
            await peer.ready
    return peers


async def quiet(peers: list["Peer"], for_s: float) -> None:
    """Until no peer has sent anything for so long."""
    before = -1
    while before != (sent := sum(peer.sent for peer in peers)):
        before = sent
        await asyncio.sleep(for_s)


async def measure_kademlia(count: int, size: Size) -> dict[str, float]:
    servers, dice = [Server() for _ in range(count)], random.Random(count)
    for server in servers:
        await server.listen(0, interface="127.0.0.1")
    seeds = [server.transport.get_extra_info("sockname") for server in servers[:2]]
    for server in servers:
        await server.bootstrap(seeds)
    value = os.urandom(VALUE_BYTES // 2).hex()

    async def put(number: int) -> bool:
        return bool(await dice.choice(servers).set(f"key {number}", value))

    async def get(number: int) -> bool:
        key = f"key {number % size.puts}"
        return await askers[number].get(key) == value

    def settle() -> Awaitable[None]:
        return asyncio.sleep(SETTLE_S)

    await timed(put, size.puts, settle)
    askers = [pick(dice, servers, lacks, digest(f"key {number % size.puts}")) for number in range(size.gets)]
    await timed(get, size.gets, settle)
    puts, gets = await timed(put, size.puts, settle), await timed(get, size.gets, settle)
    for server in servers:
        server.stop()
    return {"put_cpu_ms": puts.cpu_ms, "get_cpu_ms": gets.cpu_ms}


def lacks(server: Server, key: bytes) -> bool:
    return server.storage.get(key) is None


def pick(dice: random.Random, among: list[T], lacks: Callable[[T, Any], bool], value: Any) -> T:
    """A random one that does not hold the value; any, if chance finds none soon."""
    tried = (dice.choice(among) for _ in range(100))
    return next((one for one in tried if lacks(one, value)), among[0])


@dataclass(frozen=True)
class Timed:
    """good: what each call returned. cpu_ms: of the whole process, a call."""

    good: tuple[bool, ...]
    cpu_ms: float
    p95_s: float

    @property
    def success(self) -> float:
        return sum(self.good) / len(self.good)


async def timed(call: Callable[[int], Awaitable[bool]], times: int, settle: Callable[[], Awaitable[None]]) -> Timed:
    """Call it `times` times, one after another, and let it settle."""
    good: list[bool] = []
    seconds: list[float] = []
    gc.collect()
    gc.freeze()
    cpu_s = time.process_time()
    for number in range(times):
        began = time.perf_counter()
        good.append(await call(number))
        seconds.append(time.perf_counter() - began)
    await settle()
    cpu_ms = (time.process_time() - cpu_s) * 1000 / times
    gc.unfreeze()
    return Timed(tuple(good), cpu_ms, percentile(seconds, 0.95))


class Peer(asyncio.DatagramProtocol):
    """A DHT machine on a UDP socket: the least driver there can be. Storage is none, for nothing here outlives it."""

    def __init__(self, number: int) -> None:
        self.key = NodeKey(ids.blake(b"bench %d" % number))
        self.silent = False
        self.sent = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._machine = DhtMachine(self.key, NETWORK, lambda space: (), random.Random(number), int(time.time() * 1000))
        self._boxes = Boxes(self.key, NETWORK)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._requests = itertools.count()
        self._seqs = itertools.count(int(time.time() * 1000))
        self._timer: asyncio.TimerHandle | None = None

    async def open(self) -> Contact:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self._carry_out(self._machine.start(now()))
        return Contact(self.key.node, *self._transport.get_extra_info("sockname"))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()

    def join(self, *seeds: Contact) -> None:
        self._carry_out(self._machine.handle_command(now(), commands.Join(seeds)))

    async def put(self, name: str) -> events.FramePut:
        frame = envelope.seal(self.key, NETWORK, Kind.RECORD, self._record(name))
        assert abs(len(frame) - VALUE_BYTES) < 8
        return await self._ask(lambda request: commands.PutFrame(request, frame))

    async def get(self, owner: bytes, name: str) -> events.RecordFound:
        return await self._ask(lambda request: commands.SearchRecord(request, owner, name))

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.silent:
            return
        try:
            sender, plain = self._boxes.open(data)
            message = codec.decode(plain, Datagram)  # pyright: ignore[reportArgumentType]
            effects = self._machine.handle_message(now(), Contact(sender, *addr), message)
        except PeerError:
            return
        self._carry_out(effects)

    def lacks(self, name: str) -> bool:
        return all(item.body.agent != name for item in self._machine.held)

    async def _ask(self, make: Callable[[int], Any]) -> Any:
        request = next(self._requests)
        answer = self._waiting[request] = asyncio.get_running_loop().create_future()
        self._carry_out(self._machine.handle_command(now(), make(request)))
        return await answer

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent += 1
                to = effect.to
                sealed = self._boxes.seal(to.key, os.urandom(NONCE_BYTES), codec.encode(effect.message))
                self._transport.sendto(sealed, (to.host, to.port))
            elif isinstance(effect, SetTimer):
                self._arm(effect)
            elif isinstance(effect, Emit):
                self._tell(effect.event)

    def _arm(self, effect: SetTimer) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if effect.at is not None:
            delay_s = max(0.0, effect.at - now().boot)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._fire, effect.name)

    def _fire(self, name: str) -> None:
        self._carry_out(self._machine.handle_timer(now(), name))

    def _tell(self, event: Any) -> None:
        if isinstance(event, events.Ready) and not self.ready.done():
            self.ready.set_result(None)
        answer = self._waiting.pop(getattr(event, "request", -1), None)
        if answer is not None:
            answer.set_result(event)

    def _record(self, name: str) -> AgentRecord:
        """About 530 B, a frame of 600 B: four addresses, as many skills as nodes have."""
        return AgentRecord(
            node=self.key.node,
            agent=name,
            seq=next(self._seqs),
            issued=int(time.time()),
            ttl=7_200,
            gone=False,
            boot=0,
            addresses=tuple(f"/ip4/127.0.0.1/tcp/{port}/{'a' * 67}" for port in range(4_001, 4_005)),
            endpoint="127.0.0.1:4001",
            skills=tuple(f"skill-{number}.measure" for number in range(3)),
            features=(),
            index_model="",
            card=bytes(32),
        )


if __name__ == "__main__":
    main()
