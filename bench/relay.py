"""`python -m bench.relay [--json] [--runs N] [--small]`: what a link through a third peer costs.

Two nodes and a relay, each in a process of its own, on loopback: the time of a frame there and back, and bytes a second
one way, first over a direct link, then through the relay. CPU-ms are the relay's alone, per MB it passed.
"""

import asyncio
import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from nacl.signing import SigningKey

from bench._measure import Figures, arguments, combine, percentile, report, say
from ioa_p2p.net.libp2p import Libp2pLinks
from ioa_p2p.net.ports import Frames, RelayTerms, RelayUp
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import VERSION, Hello, LinkKind

WAIT_S = 60.0
BODY = bytes(60_000)


@dataclass(frozen=True)
class Size:
    """trips: there and back, one after another. frames: of 60 kB, one way."""

    trips: int = 500
    frames: int = 1_000


SMALL = Size(trips=20, frames=20)


def seed_of(number: int) -> bytes:
    return bytes([number]) * 32


def node_of(number: int) -> bytes:
    return bytes(SigningKey(seed_of(number)).verify_key)


class Side:
    """One node. Everything that comes wakes whoever waits."""

    def __init__(self, number: int, *, relay: bool) -> None:
        hello = Hello(VERSION, network_id("bench"), 1, "bench")
        self.links = Libp2pLinks(seed_of(number), hello, random.Random(number), relay=RelayTerms() if relay else None)
        self.address = ""
        self.came = 0
        self.echoes = False
        self._news = asyncio.Event()

    def on_events(self, events: Any) -> None:
        for event in events:
            if isinstance(event, RelayUp):
                self.address = event.address
            elif isinstance(event, Frames):
                self.came += len(event.frames)
                for kind, body in event.frames if self.echoes else ():
                    self.links.send(event.peer, kind, body)
        self._news.set()

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not holds():
                self._news.clear()
                await self._news.wait()


async def relay(pipe: Connection) -> None:
    side = Side(3, relay=True)
    await side.links.open(side.on_events)
    pipe.send(side.links.addresses)
    while await asyncio.to_thread(pipe.recv):
        pipe.send((time.process_time(), side.links.counters.get("relay-bytes", 0)))
    await side.links.aclose()


async def reached(pipe: Connection) -> None:
    """Answers each frame while it is small talk, and counts while it is bulk."""
    side = Side(2, relay=False)
    await side.links.open(side.on_events)
    side.links.connect(node_of(3), await asyncio.to_thread(pipe.recv))
    await side.until(lambda: node_of(3) in side.links.peers)
    side.links.relay_through({node_of(3)})
    await side.until(lambda: side.address)
    pipe.send((side.links.addresses, [side.address]))
    while (word := await asyncio.to_thread(pipe.recv)) is not None:
        side.echoes, side.came = not word, 0
        pipe.send(True)
        if word:
            await side.until(lambda word=word: side.came >= word)
            pipe.send(True)
    await side.links.aclose()


async def dialler(size: Size, other: Connection, third: Connection) -> Figures:
    direct, relayed = other.recv()
    figures = await _spell("direct", direct, size, other)
    cpu_before, bytes_before = _asked(third, True)
    figures |= await _spell("relayed", relayed, size, other)
    cpu_s, passed = _asked(third, True)
    return figures | {"relay_cpu_ms_mb": (cpu_s - cpu_before) * 1_000 / ((passed - bytes_before) / 1e6)}


async def _spell(name: str, addresses: Sequence[str], size: Size, other: Connection) -> Figures:
    side = Side(1, relay=False)
    await side.links.open(side.on_events)
    side.links.connect(node_of(2), addresses)
    await side.until(lambda: node_of(2) in side.links.peers)
    trips = await _trips(side, other, size.trips)
    mb_s = await _bulk(side, other, size.frames)
    await side.links.aclose()
    return {
        f"{name}_p50_ms": percentile(trips, 0.5),
        f"{name}_p99_ms": percentile(trips, 0.99),
        f"{name}_mb_s": mb_s,
    }


async def _trips(side: Side, other: Connection, count: int) -> list[float]:
    _asked(other, 0)
    took: list[float] = []
    for number in range(count):
        start = time.perf_counter()
        side.links.send(node_of(2), LinkKind.SIGNED, bytes(256))
        await side.until(lambda number=number: side.came > number)
        took.append((time.perf_counter() - start) * 1_000)
    return took


async def _bulk(side: Side, other: Connection, frames: int) -> float:
    _asked(other, frames)
    start = time.perf_counter()
    for _ in range(frames):
        while not side.links.send(node_of(2), LinkKind.SIGNED, BODY):
            await asyncio.sleep(0.001)
    await asyncio.to_thread(other.recv)
    return frames * len(BODY) / 1e6 / (time.perf_counter() - start)


def _asked(pipe: Connection, word: Any) -> Any:
    pipe.send(word)
    return pipe.recv()


def _process(main: Any, pipe: Connection) -> None:
    asyncio.run(main(pipe))


def run(size: Size) -> Figures:
    spawn = multiprocessing.get_context("spawn")
    ends = {main: spawn.Pipe() for main in (relay, reached)}
    processes = [spawn.Process(target=_process, args=(main, far), daemon=True) for main, (_, far) in ends.items()]
    for process in processes:
        process.start()
    third, other = ends[relay][0], ends[reached][0]
    try:
        other.send(third.recv())
        figures = asyncio.run(dialler(size, other, third))
        other.send(None)
        third.send(False)
    finally:
        for process in processes:
            process.join(10)
            process.kill()
    say(f"direct {figures['direct_mb_s']:.0f} MB/s, relayed {figures['relayed_mb_s']:.0f} MB/s")
    return figures


def main() -> None:
    options = arguments(__doc__ or "")
    size = SMALL if options.small else Size()
    runs = [run(size) for _ in range(options.runs)]
    figures = combine(runs, {})
    report(figures, {}, runs=options.runs, as_json=options.json)


if __name__ == "__main__":
    main()
