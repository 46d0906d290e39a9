"""The DHT machine as the node's other parts use it: awaitable searches, and cards by hash.

pointers(key) | record(node, agent) | card(node, hash) ── command, request number ──> machine
                └─────────── future <── PointersFound | RecordFound | CardFound ──┘
"""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from ioa_p2p.dht import commands, events
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.dht.store import Item
from ioa_p2p.node import clock
from ioa_p2p.node.runtime import Driver
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import AgentRecord, Card

ANSWER_S = limits.DHT_LOOKUP_S + 5.0  # the machine ends every search by itself; this only guards the caller


class Directory:
    """driver: of `machine`. Feed every event of the machine to `on_event`."""

    def __init__(self, machine: DhtMachine, driver: Driver) -> None:
        self._machine = machine
        self._driver = driver
        self._requests = itertools.count(1)
        self._futures: dict[int, asyncio.Future[Any]] = {}

    def on_event(self, event: Any) -> bool:
        """True if the event answers a search of ours."""
        if not isinstance(event, events.RecordFound | events.PointersFound | events.CardFound | events.FramePut):
            return False
        future = self._futures.pop(event.request, None)
        if future is not None and not future.done():
            future.set_result(event)
        return True

    def held_items(self) -> list[Item]:
        """All records and pointers held here, own ones included; some may be past their time."""
        return self._machine.held

    def held_records(self) -> list[AgentRecord]:
        """What the local directory holds, own records included, none past its time."""
        return [item.body for item in self._machine.alive(clock.now()) if isinstance(item.body, AgentRecord)]

    def kept_card(self, card_hash: bytes) -> Card | None:
        """A card that is ours or cached."""
        return self._machine.kept_card(card_hash)

    async def pointers(
        self, key: str, sketch: bytes = b"", *, thorough: bool = False, wanted: int = limits.POINTERS_READ_MAX
    ) -> events.PointersFound:
        """Agents under an index key text ("word:chart", "out:metrics.samples"); of a cell's the nearest to the sketch.

        wanted: at most. thorough: for a search that leads to an assignment.
        """
        return await self._ask(lambda request: commands.SearchPointers(request, key, thorough, wanted, sketch))

    async def record(self, node: bytes, agent: str, endpoint: bytes = b"") -> events.RecordFound:
        """The newest; from the node itself if it answers at `endpoint` (packed)."""
        return await self._ask(lambda request: commands.FetchRecord(request, node, agent, endpoint))

    async def held_record(self, node: bytes, agent: str) -> events.RecordFound:
        """The newest, after every holder was heard."""
        return await self._ask(lambda request: commands.SearchRecord(request, node, agent, thorough=True))

    async def card(self, node: bytes, card_hash: bytes) -> Card | None:
        """From the cache, or over a link that stands; None if it cannot be had."""
        found: events.CardFound = await self._ask(lambda request: commands.FetchCard(request, node, card_hash))
        return found.card

    async def _ask(self, command: Callable[[int], Any]) -> Any:
        """Raises UsageError('busy'), TimeoutError."""
        request = next(self._requests)
        future = self._futures[request] = asyncio.get_running_loop().create_future()
        try:
            self._driver.command(command(request))
            async with asyncio.timeout(ANSWER_S):
                return await future
        finally:
            self._futures.pop(request, None)
