"""Our own agents in the mesh: published at the start, on each change, and by their meaning once a model has read them.

card ── publish ──> DHT machine ── Published | Queued ──> told, the local directory
   └── a model, some seconds later ──> cells and sketch ──> published again      leave ──> all withdrawn
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from ioa_p2p.dht import commands
from ioa_p2p.dht.events import Published, Queued
from ioa_p2p.mind.meaning import card_text
from ioa_p2p.node.directory import Directory
from ioa_p2p.node.finder import Known
from ioa_p2p.node.keeping import Keeping
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.sense import CELLS_OF_AGENT, Aspect, Sense
from ioa_p2p.wire import codec
from ioa_p2p.wire.ids import NodeId
from ioa_p2p.wire.records import AgentRecord, Card

FEATURES = ("team/1", "blob/1")
LEAVE_S = 2.0  # for the word that our agents are gone to be taken; a stop never waits longer
READ_S = 300.0  # for the model to read a card: a small device may take long to load it

log = logging.getLogger(__name__)


class Publishing:
    """own: our key. cards: of our agents, by name. addresses(): where our links are dialled, as of now."""

    def __init__(
        self,
        own: NodeId,
        cards: Mapping[str, Card],
        ttl_s: int,
        driver: Driver,
        directory: Directory,
        keeping: Keeping,
        sense: Sense,
        addresses: Callable[[], tuple[str, ...]],
    ) -> None:
        self.told: dict[str, Published | Queued] = {}
        self.news = asyncio.Event()
        self._own = own
        self._cards = cards
        self._ttl_s = ttl_s
        self._driver = driver
        self._directory = directory
        self._keeping = keeping
        self._sense = sense
        self._addresses = addresses
        self._aspects: dict[str, Aspect] = {}
        self._reading: asyncio.Task[None] | None = None
        self._leaving = False

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    def publish(self, agent: str) -> None:
        """Now and until we stop. Raises UsageError('card-too-large')."""
        if self._leaving:
            return
        meant = self._aspects.get(agent)
        cells, sketch, model = (meant.cells, meant.sketch, meant.model) if meant else ((), b"", "")
        card, addresses = self._cards[agent], self._addresses()
        self._driver.command(commands.Publish(card, addresses, "", FEATURES, cells, self._ttl_s, sketch, model))

    def publish_all(self) -> None:
        for agent in self._cards:
            self.publish(agent)

    async def leave(self) -> None:
        """Withdraw all, so that nobody waits for us: told to link neighbours and holders, for `LEAVE_S` at most."""
        self._leaving = True
        self.told.clear()
        self._driver.command(commands.Leave())
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                while not all(_has_left(self.told.get(agent)) for agent in self._cards):
                    self.news.clear()
                    await self.news.wait()

    def read(self) -> None:
        """There is a model now: publish again, so that our agents are found by meaning."""
        self._reading = asyncio.create_task(self._read())

    def is_meant(self, agent: str) -> bool:
        """Whether it is published by its meaning too."""
        return agent in self._aspects

    def records(self) -> list[Known]:
        """Our own records, as they are out there, and their cards."""
        records = {record.agent: record for record in self._directory.held_records() if record.node == self._own}
        return [(records[name], card) for name, card in self._cards.items() if name in records]

    def on_event(self, event: Published | Queued) -> None:
        self.told[event.agent] = event
        self.news.set()
        if isinstance(event, Queued):
            log.info("publishing %s waits: %s", event.agent, event.reason)
            return
        self._keep(event.agent)
        if event.gone:
            log.info("withdrew %s: %d of %d holders", event.agent, event.confirmed, event.holders)
            return
        cut = f", {len(event.cut)} keys cut" * bool(event.cut)
        log.info("published %s: %d of %d holders%s", event.agent, event.confirmed, event.holders, cut)

    async def _read(self) -> None:
        for name, card in self._cards.items():
            aspect = await self._sense.aspect(card_text(card), CELLS_OF_AGENT, READ_S)
            if aspect is not None:
                self._aspects[name] = aspect
                self.publish(name)

    def _keep(self, agent: str) -> None:
        """Our own agents stand in the local directory too."""
        for item in self._directory.held_items():
            if isinstance(item.body, AgentRecord) and (item.body.node, item.body.agent) == (self._own, agent):
                self._keeping.heard(item.body, item.raw)
                self._keeping.card(item.body.card, codec.encode(self._cards[agent]))


def _has_left(event: Published | Queued | None) -> bool:
    """The holders have it, or there is nobody to tell."""
    return isinstance(event, Queued) or (event is not None and event.gone)
