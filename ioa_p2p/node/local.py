"""What a node knows of agents without asking anybody: its own, and its local directory's.

own cards and records ──┐
storage's Catalogue ────┴──> Search, at once, offline too
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from ioa_p2p.node.finder import Known
from ioa_p2p.node.sense import Aspect
from ioa_p2p.wire.records import Card


class LocalDirectory:
    """own: records and cards of our agents. find: candidates of the directory (words, aspect, limit, keys); may block.

    kept: a card by its hash, from a cache.
    """

    def __init__(
        self,
        own: Callable[[], Iterable[Known]],
        find: Callable[[Sequence[str], Aspect | None, int, Sequence[str]], Sequence[Known]],
        kept: Callable[[bytes], Card | None],
    ) -> None:
        self._own = own
        self._find = find
        self._kept = kept

    def own(self) -> Iterable[Known]:
        return self._own()

    def card(self, card_hash: bytes) -> Card | None:
        return self._kept(card_hash)

    async def known(
        self, words: Sequence[str], aspect: Aspect | None, limit: int, keys: Sequence[str]
    ) -> Sequence[Known]:
        return await asyncio.to_thread(self._find, words, aspect, limit, keys)
