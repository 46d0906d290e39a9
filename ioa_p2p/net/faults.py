"""A port with bad weather: wraps any `Datagrams` or `Links`, loses, delays, duplicates, reorders and cuts.

    node ── send ──> dice: lost? twice? late? ──> the wrapped port ──> ...

Only what we send suffers; wrap both sides for weather both ways. Dice are handed in, so a seed replays a storm.
On datagrams faults are a network's; on links they are a bad runtime's (frames lost inside a link that stands),
harsher than TCP allows, and a cut, which is what TCP does instead. A delay keeps a link's order unless reorder is
asked for; datagrams keep none.
"""

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ioa_p2p.net.ports import Datagrams, Endpoint, LinkEvent, Links

_NEXT_S = 1e-6  # between two frames of one link: the loop's heap of timers keeps no order among equals


@dataclass(frozen=True, slots=True)
class DatagramFaults:
    """Chances 0..1; delays in seconds, drawn evenly between the two."""

    loss: float = 0.0
    twice: float = 0.0
    delay_s: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """Chances 0..1 a frame; `cut` ends the link (LinkDown 'cut') in the frame's place."""

    loss: float = 0.0
    twice: float = 0.0
    cut: float = 0.0
    reorder: float = 0.0
    delay_s: tuple[float, float] = (0.0, 0.0)


class FaultyDatagrams:
    """`Datagrams` in bad weather; `faults` may be replaced at any time."""

    def __init__(self, inner: Datagrams, dice: random.Random, faults: DatagramFaults) -> None:
        self.faults = faults
        self._inner = inner
        self._dice = dice

    @property
    def endpoint(self) -> Endpoint:
        return self._inner.endpoint

    @property
    def counters(self) -> dict[str, int]:
        return self._inner.counters

    async def open(self, on_datagrams: Callable[[Sequence[tuple[Endpoint, bytes]]], None]) -> None:
        await self._inner.open(on_datagrams)

    def send(self, to: Endpoint, data: bytes) -> None:
        for _ in range(_copies(self._dice, self.faults)):
            delay = self._dice.uniform(*self.faults.delay_s)
            if delay:
                asyncio.get_running_loop().call_later(delay, self._inner.send, to, data)
            else:
                self._inner.send(to, data)

    async def aclose(self) -> None:
        await self._inner.aclose()


class FaultyLinks:
    """`Links` in bad weather; `faults` may be replaced at any time."""

    def __init__(self, inner: Links, dice: random.Random, faults: LinkFaults) -> None:
        self.faults = faults
        self._inner = inner
        self._dice = dice
        self._free_at: dict[bytes, float] = {}

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._inner.addresses

    @property
    def peers(self) -> frozenset[bytes]:
        return self._inner.peers

    @property
    def counters(self) -> dict[str, int]:
        return self._inner.counters

    async def open(self, on_events: Callable[[Sequence[LinkEvent]], None]) -> None:
        await self._inner.open(on_events)

    def connect(self, peer: bytes, addresses: Sequence[str]) -> None:
        self._inner.connect(peer, addresses)

    def forget(self, peer: bytes) -> None:
        self._inner.forget(peer)

    def cut(self, peer: bytes, reason: str) -> None:
        self._inner.cut(peer, reason)

    def relay_through(self, peers: Collection[bytes]) -> None:
        self._inner.relay_through(peers)

    def send(self, peer: bytes, kind: int, body: bytes) -> bool:
        """True may be a lie here: the frame can be lost, late or twice, as the faults say."""
        if peer not in self._inner.peers:
            return self._inner.send(peer, kind, body)
        if self._dice.random() < self.faults.cut:
            self._inner.cut(peer, "cut")
            return True
        sent = True
        for _ in range(_copies(self._dice, self.faults)):
            sent = self._send_once(peer, kind, body) and sent
        return sent

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _send_once(self, peer: bytes, kind: int, body: bytes) -> bool:
        loop = asyncio.get_running_loop()
        at = loop.time() + self._dice.uniform(*self.faults.delay_s)
        if self._dice.random() >= self.faults.reorder:
            at = self._free_at[peer] = max(at, self._free_at.get(peer, 0.0) + _NEXT_S)
        if at <= loop.time():
            return self._inner.send(peer, kind, body)
        loop.call_at(at, self._inner.send, peer, kind, body)
        return True


def _copies(dice: random.Random, faults: DatagramFaults | LinkFaults) -> int:
    """0: lost, 1: as sent, 2: duplicated."""
    if dice.random() < faults.loss:
        return 0
    return 2 if dice.random() < faults.twice else 1
