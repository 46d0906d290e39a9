"""Cards of linked nodes' agents, fetched before anybody asks: so a small mesh is searched at once, and offline too.

link up, or news written ──> linked nodes ── records without a card ──> fetch, one after another ──> CardHeard
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence

from ioa_p2p.errors import UsageError
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import NodeId


class Describing:
    """linked: nodes linked now. lacking(node): hashes of the cards of its agents that are not known; may block.
    fetch(node, hash): over the link that stands. A card that was not given is asked for again with its next link."""

    def __init__(
        self,
        linked: Callable[[], Collection[NodeId]],
        lacking: Callable[[NodeId], Sequence[bytes]],
        fetch: Callable[[NodeId, bytes], Awaitable[object]],
    ) -> None:
        self._linked = linked
        self._lacking = lacking
        self._fetch = fetch
        self._tried: OrderedDict[tuple[NodeId, bytes], None] = OrderedDict()
        self._again = False
        self._task: asyncio.Task[None] | None = None

    def up(self, node: NodeId) -> None:
        """A link to it stands."""
        for tried in [tried for tried in self._tried if tried[0] == node]:
            del self._tried[tried]
        self.look()

    def look(self) -> None:
        """There may be something to fetch."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while self._again:
            self._again = False
            for node in list(self._linked()):
                await self._describe(node)

    async def _describe(self, node: NodeId) -> None:
        for card_hash in await asyncio.to_thread(self._lacking, node):
            if (node, card_hash) in self._tried:
                continue
            self._tried[node, card_hash] = None
            if len(self._tried) > limits.CARDS_TRIED_MAX:
                self._tried.popitem(last=False)
            try:
                await self._fetch(node, card_hash)
            except (UsageError, TimeoutError):
                return
