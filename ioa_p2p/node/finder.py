"""Finding agents: from words, types and meaning to cards, asking as few as will do.

    local directory, own agents ──────────────────────────────────> hits at once ── asked whether they live ──┐
    query ──> cells, words ──> pointers ──> candidates ──> records of the best ──> cards of the best ──> hits

Everything found is untrusted text; who it is from is proven, and that its node answers: by its record given by itself,
or by a link that stands. Whoever's node answers neither way is not offered. A dead node costs one short wait, however
many agents it had (node/asking.py). Order among hits: node/hits.py.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ioa_p2p.dht.events import RecordFound
from ioa_p2p.errors import UsageError
from ioa_p2p.node import clock
from ioa_p2p.node.asking import Agent, Asking, Mesh, Reach, packed
from ioa_p2p.node.budget import Budget
from ioa_p2p.node.candidates import Candidate, Candidates
from ioa_p2p.node.hits import Hit, Source
from ioa_p2p.node.query import Query
from ioa_p2p.node.sense import Aspect
from ioa_p2p.node.silence import Silence
from ioa_p2p.node.trust import Level, Trust
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import NodeId
from ioa_p2p.wire.records import AgentRecord, Card

AGENTS_MAX = 256  # whose cards one search reads in all, however often it is widened
AT_ONCE = 16  # records and cards fetched at the same time
LOCAL_MAX = 10  # of the local directory, asked whether they live

Known = tuple[AgentRecord, Card]


class Local(Protocol):
    """What is known without asking anybody."""

    def own(self) -> Iterable[Known]:
        """Our own agents."""
        ...

    async def known(
        self, words: Sequence[str], aspect: Aspect | None, limit: int, keys: Sequence[str]
    ) -> Sequence[Known]:
        """The likeliest of the local directory, the best first. keys: what all have, as `Query.facts`."""
        ...

    def card(self, card_hash: bytes) -> Card | None:
        """A card we have anyway."""
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """What every search works with. load: of a node, 0 to 1, as it last told; None if it never did.

    silence: nodes that did not answer of late.
    patience_s: for a node's first word once others have answered, by the wall's clock.
    """

    mesh: Mesh
    reach: Reach
    local: Local
    trust: Trust
    load: Callable[[NodeId], float | None] = lambda node: None
    silence: Silence = field(default_factory=Silence)
    patience_s: float = limits.SILENT_WAIT_S


class Search:
    """One search, which may be widened by further keys; nothing is fetched twice.

    aspect: of the query's text, if there is a model. thorough: it leads to an assignment, so pointers are read over
    more paths and to the end, and no budget is kept. on_hit: told of each hit, and again when its node answered.
    """

    def __init__(
        self,
        means: Means,
        query: Query,
        aspect: Aspect | None = None,
        on_hit: Callable[[Hit], None] = lambda hit: None,
        *,
        thorough: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self.query = query
        self.aspect = aspect
        self.hits: dict[Agent, Hit] = {}
        self.budget = budget or Budget()
        self.holders = 0
        self.local_hits = 0
        self._means = means
        self._on_hit = on_hit
        self._thorough = thorough
        self._candidates = Candidates(aspect.numbers if aspect else (), query.words, query.filter_keys)
        self._searched: dict[str, None] = {}
        self._seen: set[Agent] = set()
        self._asking = Asking(means.mesh, means.reach, means.silence, means.patience_s, self.budget, self._has_answers)
        for record, card in means.local.own():
            self._take(record, card, Source.OWN, answered=True)

    @property
    def searched(self) -> frozenset[str]:
        """Index keys looked up so far."""
        return frozenset(self._searched)

    @property
    def offered(self) -> list[Hit]:
        """Hits whose nodes answered; if nobody at all answers (we are offline), what the local directory says."""
        return [hit for hit in self.hits.values() if hit.answered or not self._asking.heard]

    @property
    def unreached(self) -> int:
        """Agents that are not offered because their nodes do not answer."""
        return len(self._asking.unreached - {hit.agent for hit in self.offered})

    async def run(self) -> None:
        """All of it: what is known here at once, then the mesh."""
        await self.look_here()
        keys = self.query.keys(self.aspect.keys if self.aspect else ())
        await asyncio.gather(self.confirm(), self._ask_mesh(keys))

    async def widen(self, keys: Iterable[str]) -> None:
        """Search these index keys too (those not searched yet), and read the cards of whoever is under them."""
        await self._gather(keys)
        await self._look_at(AGENTS_MAX - len(self._seen))

    # -- what is known here

    async def look_here(self) -> None:
        """Hits of the local directory; their nodes have not answered yet."""
        wanted = self.query.words, self.aspect, LOCAL_MAX, self.query.facts
        for record, card in await self._means.local.known(*wanted):
            if (record.node, record.agent) not in self._seen and self.query.fits(card):
                self.local_hits += 1
                self._take(record, card, Source.DIRECTORY, answered=False)

    async def confirm(self) -> None:
        """Ask the nodes of local hits; who says that the agent is gone or changed loses its hit."""
        await asyncio.gather(*(self._confirm(hit) for hit in list(self.hits.values()) if not hit.answered))

    async def _confirm(self, hit: Hit) -> None:
        found = await self._asking.record(*hit.agent, packed(hit.record.endpoint))
        if found is None or found.record is None:
            return
        if found.record.gone:
            del self.hits[hit.agent]
        elif found.record.card != hit.record.card:
            await self._card(found, hit.keys)
        elif found.direct or await self._asking.linked(found.record):
            self._take(found.record, hit.card, Source.DIRECTORY, answered=True)

    def _has_answers(self) -> bool:
        """Nodes answered, so there is something to show without the silent."""
        return any(hit.answered and hit.source is not Source.OWN for hit in self.hits.values())

    # -- the mesh: pointers

    async def _ask_mesh(self, keys: Iterable[str]) -> None:
        await self._gather(keys)
        await self._look_at(limits.FIND_CARDS_MAX)

    async def _gather(self, keys: Iterable[str]) -> None:
        """Pointers of keys in their order, some at a time, as far as the budget goes."""
        waiting = iter([key for key in dict.fromkeys(keys) if key not in self._searched])
        await _workers(limits.FIND_KEYS_AT_ONCE, lambda at_work: self._next_key(waiting, at_work))

    async def _next_key(self, waiting: Iterator[str], at_work: int) -> bool:
        """Look up one more key. False: there is none, or it may cost too much."""
        if not (self._thorough or self.budget.may_begin(at_work)):
            return False
        key = next(waiting, None)
        if key is None:
            return False
        self._searched[key] = None
        await self._follow(key)
        return True

    async def _follow(self, key: str) -> None:
        sketch = self.aspect.sketch if self.aspect else b""
        try:
            found = await self._means.mesh.pointers(key, sketch, thorough=self._thorough, wanted=self._wanted(key))
        except (UsageError, TimeoutError):
            return
        self.holders += found.answered
        self._asking.heard = self._asking.heard or found.answered > 0
        self.budget.charge_key(found.rpcs, found.size_bytes)
        self._candidates.add(key, found.pointers)

    def _wanted(self, key: str) -> int:
        """Pointers that will do: all, where an assignment or a filter depends on them."""
        if self._thorough or key in self.query.filter_keys:
            return limits.POINTERS_READ_MAX
        return limits.FIND_CELL_POINTERS if key.startswith("cell:") else limits.FIND_WORD_POINTERS

    # -- the mesh: records and cards of the best

    async def _look_at(self, count: int) -> None:
        """Until `count` more agents are hits, or nobody is left."""
        queue = self._short_list(count // 2)
        left = count

        async def one_more(at_work: int) -> bool:
            nonlocal left
            if left <= 0 or not (self._thorough or self.budget.may_ask(at_work)):
                return False
            if not queue:
                return False
            candidate = self._next(queue)
            left -= 1
            if not await self._look(candidate):
                left += 1
            return True

        await _workers(AT_ONCE, one_more)

    def _next(self, queue: list[Candidate]) -> Candidate:
        """The best whose node is not being asked for its first word, so that one dead node holds up nobody else."""
        free = (place for place, one in enumerate(queue) if not self._asking.is_pending(one.node))
        return queue.pop(next(free, 0))

    def _short_list(self, trusted: int) -> list[Candidate]:
        """Whom to look at, the most promising first; the best `trusted` of those we trust before all strangers, so
        that no flood of strangers keeps them out."""
        levels = {one: self._level(one) for one in self._candidates.best() if (one.node, one.agent) not in self._seen}
        wanted = [one for one, level in levels.items() if level <= self.query.trust]
        first = [one for one in wanted if levels[one] < Level.STRANGER][:trusted]
        return [*first, *(one for one in wanted if one not in first)]

    def _level(self, candidate: Candidate) -> Level:
        return self._means.trust.standing(candidate.node, candidate.agent).level

    async def _look(self, candidate: Candidate) -> bool:
        """Whether it became a hit."""
        agent = (candidate.node, candidate.agent)
        self._seen.add(agent)
        found = await self._asking.record(*agent, candidate.endpoint)
        return found is not None and await self._card(found, tuple(sorted(candidate.keys)))

    async def _card(self, found: RecordFound, keys: tuple[str, ...]) -> bool:
        """The card of a record found, if its node answers; then it is a hit if it passes the filters."""
        record = found.record
        if record is None or record.gone:
            return False
        card = self._means.local.card(record.card)
        if card is None or not found.direct:
            if not await self._asking.linked(record):
                return False
            card = card or await self._fetch(record)
        if card is None or card.name != record.agent or not self.query.fits(card):
            return False
        self._take(record, card, Source.MESH, answered=True, keys=keys)
        return True

    async def _fetch(self, record: AgentRecord) -> Card | None:
        try:
            card = await self._means.mesh.card(record.node, record.card)
        except (UsageError, TimeoutError):
            return None
        self.budget.charge(1, len(codec.encode(card)) if card else 0)
        return card

    def _take(
        self, record: AgentRecord, card: Card, source: Source, *, answered: bool, keys: tuple[str, ...] = ()
    ) -> None:
        node, agent = record.node, record.agent
        self._seen.add((node, agent))
        age_s = max(0.0, clock.now().wall - record.issued)
        standing = self._means.trust.standing(node, agent)
        if not self.query.fits(card) or standing.level > self.query.trust:
            return  # of what is known here; the mesh is asked for no such
        hit = Hit(record, card, age_s, standing, source, answered, keys, self._means.load(node))
        self.hits[node, agent] = hit
        if answered or not self._means.silence.has(node):  # who is likely to be dead is shown when we are offline
            self._on_hit(hit)


async def _workers(count: int, work: Callable[[int], Awaitable[bool]]) -> None:
    """Run up to `count` at a time, each until it says False. work(others): how many others are at work."""
    busy = 0

    async def worker() -> None:
        nonlocal busy
        more = True
        while more:
            busy += 1
            try:
                more = await work(busy - 1)
            finally:
                busy -= 1

    await asyncio.gather(*(worker() for _ in range(count)))
