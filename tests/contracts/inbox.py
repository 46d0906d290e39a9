"""What a port delivered, with bounded waits for what is still to come."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ioa_p2p.net.ports import Frames, LinkDown, LinkUp, RelayDown, RelayUp

T = TypeVar("T")
WAIT_S = 60.0
"""A bound, not an expectation: long enough for a busy machine, short enough to fail a hung test."""


async def poll(found: Callable[[], T], wait_s: float = WAIT_S) -> T:
    """Wait for something that rings no bell, such as a counter; return what `found` says."""
    async with asyncio.timeout(wait_s):
        while not (value := found()):
            await asyncio.sleep(0.01)
        return value


class Inbox:
    """Items of batches in order; call it as `on_events` or `on_datagrams`."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.batches = 0
        self._news = asyncio.Event()

    def __call__(self, batch: Sequence[Any]) -> None:
        self.batches += 1
        self.items.extend(batch)
        self._news.set()

    async def until(self, found: Callable[[], T], wait_s: float = WAIT_S) -> T:
        """Wait until `found()` is true; return what it says."""
        async with asyncio.timeout(wait_s):
            while not (value := found()):
                self._news.clear()
                await self._news.wait()
            return value

    # -- for links ------------------------------------------------------------------------------------

    def ups(self, peer: bytes) -> list[LinkUp]:
        return [item for item in self.items if isinstance(item, LinkUp) and item.peer == peer]

    def downs(self, peer: bytes) -> list[LinkDown]:
        return [item for item in self.items if isinstance(item, LinkDown) and item.peer == peer]

    def relay_ups(self, peer: bytes) -> list[RelayUp]:
        return [item for item in self.items if isinstance(item, RelayUp) and item.peer == peer]

    def relay_downs(self, peer: bytes) -> list[RelayDown]:
        return [item for item in self.items if isinstance(item, RelayDown) and item.peer == peer]

    def frames(self, peer: bytes) -> list[tuple[int, bytes]]:
        return [frame for item in self.items if isinstance(item, Frames) and item.peer == peer for frame in item.frames]
