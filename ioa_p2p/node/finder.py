"""Finding agents: from words or types to cards, the best first.

    index keys ──> pointers ──> records ──> link ──> cards ──> ranked
        and what the local directory holds ─┘

Everything found is untrusted text; who it is from is proven.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.mind.match import ranked
from ioa_p2p.node import clock
from ioa_p2p.node.directory import Directory
from ioa_p2p.node.neighbourhood import Neighbourhood
from ioa_p2p.steps import FoundAgent
from ioa_p2p.wire.records import AgentRecord, Card
from ioa_p2p.wire.words import words

DIAL_S = 4.0  # for a link to an agent's node, once; who cannot be dialled does not count as found
AGENTS_MAX = 256  # looked at in one search
AT_ONCE = 16  # records and cards fetched at the same time
WORDS_MAX = 12  # of a query; more words add little and cost a lookup each

Agent = tuple[bytes, str]


@dataclass(frozen=True, slots=True)
class Hit:
    """One agent found. age_s: since its record was issued."""

    record: AgentRecord
    card: Card
    age_s: float

    @property
    def found(self) -> FoundAgent:
        return FoundAgent(self.record.node, self.card, self.record.addresses)


class Search:
    """One search, which may be widened by further keys; nothing is fetched twice.

    own: our own records and cards, found without asking anybody.
    """

    def __init__(
        self,
        directory: Directory,
        neighbourhood: Neighbourhood,
        own: Iterable[tuple[AgentRecord, Card]],
        on_hit: Callable[[Hit], None] = lambda hit: None,
    ) -> None:
        self.hits: dict[Agent, Hit] = {}
        self.holders: int = 0
        self._directory = directory
        self._neighbourhood = neighbourhood
        self._on_hit = on_hit
        self._searched: set[str] = set()
        self._seen: set[Agent] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        for record, card in own:
            self._take(record, card)

    @property
    def searched(self) -> frozenset[str]:
        return frozenset(self._searched)

    async def widen(self, keys: Iterable[str]) -> None:
        """Search these index keys too (those not searched yet)."""
        fresh = [key for key in keys if key not in self._searched]
        self._searched.update(fresh)
        await asyncio.gather(*(self._follow(key) for key in fresh))

    async def _follow(self, key: str) -> None:
        try:
            found = await self._directory.pointers(key)
        except (UsageError, TimeoutError):
            return
        self.holders = max(self.holders, found.answered)
        agents = dict.fromkeys((pointer.node, pointer.agent) for pointer in found.pointers)
        await asyncio.gather(*(self._fetch(*agent) for agent in agents))

    async def _fetch(self, node: bytes, agent: str) -> None:
        if (node, agent) in self._seen or len(self._seen) >= AGENTS_MAX:
            return
        self._seen.add((node, agent))
        async with self._slots:
            try:
                await self._fetch_now(node, agent)
            except (UsageError, TimeoutError):
                return

    async def _fetch_now(self, node: bytes, agent: str) -> None:
        record = (await self._directory.record(node, agent)).record
        if record is None or record.gone:
            return
        if await self._neighbourhood.linked(node, record.addresses, DIAL_S):
            card = await self._directory.card(node, record.card)
            if card is not None and card.name == agent:
                self._take(record, card)

    def _take(self, record: AgentRecord, card: Card) -> None:
        hit = Hit(record, card, max(0.0, clock.now().wall - record.issued))
        self._seen.add((record.node, record.agent))
        self.hits[record.node, record.agent] = hit
        self._on_hit(hit)


def keys_of(text: str = "", skill: str = "", out: str = "") -> list[str]:
    """The index keys a query asks for. Raises UsageError('empty-query')."""
    keys = [f"skill:{skill}"] if skill else []
    keys += [f"out:{out}"] if out else []
    keys += [f"word:{word}" for word in dict.fromkeys(words(text))][:WORDS_MAX]
    if not keys:
        raise UsageError("empty-query", "nothing to search for", "give a word, --skill or --out")
    return keys


def best_first(hits: Iterable[Hit], text: str, skill: str = "", out: str = "") -> list[Hit]:
    """Those that fit the filters, ranked by the words if there are any."""
    fitting = [hit for hit in hits if _fits(hit.card, skill, out)]
    if not words(text):
        return fitting
    return [fitting[number] for number in ranked(text, [hit.card for hit in fitting])]


def _fits(card: Card, skill: str, out: str) -> bool:
    return any(
        (not skill or one.name == skill or one.name.startswith(skill + ".")) and (not out or out in one.outputs)
        for one in card.skills
    )


def hit_event(hit: Hit, node_text: Callable[[bytes], str]) -> dict[str, Any]:
    return {
        "kind": "hit",
        "agent": hit.record.agent,
        "node": node_text(hit.record.node),
        "skills": [skill.name for skill in hit.card.skills],
        "description": hit.card.description,
        "age_s": round(hit.age_s, 1),
    }
