"""A make-believe mesh for searches: agents under their real index keys, nodes that answer or do not."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ioa_p2p.dht.direct import RELAYED
from ioa_p2p.dht.events import PointersFound, RecordFound
from ioa_p2p.dht.index import index_keys
from ioa_p2p.effects import Rows
from ioa_p2p.mind.meaning import card_text
from ioa_p2p.node import clock
from ioa_p2p.node.finder import Known, Means, Search
from ioa_p2p.node.query import Query
from ioa_p2p.node.sense import Aspect, aspect_of
from ioa_p2p.node.silence import Silence
from ioa_p2p.node.trust import Acquaintances, Past
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import pack_endpoint
from ioa_p2p.wire.records import AgentRecord, Card, Pointer, Skill
from tests.node.hashed import Hashed

OWN = bytes([250]) * 32
MODEL = Hashed()


def no_rows(space: str) -> list[tuple[bytes, bytes]]:
    return []


def node(number: int) -> bytes:
    return number.to_bytes(32)


def card(name: str, description: str = "", skill: str = "", **fields: Any) -> Card:
    return Card(name, description, skills=(Skill(skill or name, **fields),))


def record(
    owner: bytes, card: Card, agent: str = "", *, gone: bool = False, age_s: float = 5.0, relayed: bool = False
) -> AgentRecord:
    hash_ = ids.blake(codec.encode(card))
    issued, skills = int(clock.now().wall - age_s), tuple(skill.name for skill in card.skills)
    addresses = ("/m/1" + RELAYED * relayed,)
    return AgentRecord(
        owner, agent or card.name, 1, issued, 7_200, gone, 0, addresses, "127.0.0.1:9", skills, (), "", hash_
    )


@dataclass
class Market:
    """`agents` by (node, name). silent: nodes that crashed; holders still have their records. direct: nodes answer for
    themselves. relayed: they are behind relays; linkable: linked though silent. hanging: requests to the silent do not
    end. What was asked is noted in `asked`, `keys` (with thorough), `fetched`, `dialled`."""

    agents: dict[tuple[bytes, str], Card] = field(default_factory=dict[tuple[bytes, str], Card])
    gone: set[bytes] = field(default_factory=set[bytes])
    silent: set[bytes] = field(default_factory=set[bytes])
    unreachable: bool = False
    direct: bool = True
    relayed: bool = False
    linkable: set[bytes] = field(default_factory=set[bytes])
    asked: list[bytes] = field(default_factory=list[bytes])
    keys: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    fetched: list[bytes] = field(default_factory=list[bytes])
    dialled: list[bytes] = field(default_factory=list[bytes])
    known_here: list[Known] = field(default_factory=list[Known])
    key_rpcs: int = 6
    hanging: bool = False
    patience_s: float = 0.05
    silence: Silence = field(default_factory=Silence)

    def add(self, number: int, card: Card) -> None:
        self.agents[node(number), card.name] = card

    # -- Mesh

    async def pointers(
        self, key: str, sketch: bytes = b"", *, thorough: bool = False, wanted: int = 0
    ) -> PointersFound:
        self.keys.append((key, thorough))
        if self.unreachable:
            return PointersFound(0, (), 0, 0)
        found = tuple(self.pointer(key, *agent) for agent, card in self.agents.items() if key in self._keys_of(card))
        return PointersFound(0, found, self.key_rpcs, 3, (3,) * len(found), self.key_rpcs, self.key_rpcs * 1_000)

    async def record(self, node: bytes, agent: str, endpoint: bytes = b"") -> RecordFound:
        card = self.agents.get((node, agent))
        if card is None or self.unreachable:
            return RecordFound(0, None, 3, 0 if self.unreachable else 3)
        self.asked.append(node)
        silent = node in self.silent
        if silent and self.hanging:
            await asyncio.Event().wait()
        held = record(node, card, agent, gone=node in self.gone, relayed=self.relayed)
        return RecordFound(0, held, 1, 1, direct=bool(endpoint) and self.direct and not silent, silent=silent)

    async def card(self, node: bytes, card_hash: bytes) -> Card | None:
        self.fetched.append(node)
        cards = [card for (owner, _), card in self.agents.items() if owner == node]
        return next((card for card in cards if ids.blake(codec.encode(card)) == card_hash), None)

    # -- Reach

    async def linked(self, node: bytes, addresses: Sequence[str], wait_s: float) -> bool:
        self.dialled.append(node)
        return node in self.linkable or (node not in self.silent and not self.unreachable)

    def is_linked(self, node: bytes) -> bool:
        return False

    # -- searching it

    def search(
        self, query: Query, *, meaning: bool = False, granted: Iterable[bytes] = (), rows: Rows = no_rows, **how: Any
    ) -> Search:
        trust = Acquaintances(OWN, granted, Past(rows))
        aspect = aspect_of(MODEL, query.text, limits.FIND_CELLS_MAX) if meaning else None
        return Search(
            Means(self, self, Here(self), trust, silence=self.silence, patience_s=self.patience_s),
            query,
            aspect,
            **how,
        )

    def pointer(self, key: str, owner: bytes, agent: str) -> Pointer:
        sketch = aspect_of(MODEL, card_text(self.agents[owner, agent]), 1).sketch
        endpoint = pack_endpoint("127.0.0.1", 9)
        return Pointer(owner, agent, 1, int(clock.now().wall), 7_200, ids.index_key(key), 0, sketch, endpoint)

    def _keys_of(self, card: Card) -> list[str]:
        aspect = aspect_of(MODEL, card_text(card), 3)
        return [*aspect.keys, *index_keys(card)[0]]


@dataclass
class Here:
    market: Market

    def own(self) -> Iterable[Known]:
        return ()

    async def known(
        self, words: Sequence[str], aspect: Aspect | None, limit: int, keys: Sequence[str]
    ) -> Sequence[Known]:
        return self.market.known_here[:limit]

    def card(self, card_hash: bytes) -> Card | None:
        return None
