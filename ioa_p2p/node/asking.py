"""Asking the nodes of agents that a search came upon: whether they live, and for their newest records.

    record(node, agent) ── the node's first? ──> asked, by datagram, else by link ──> its record
                            │                      └── nothing for a while ──> silent: no agent of it is asked for
                            └── no: once the first has its answer

A dead node costs one short wait, however many agents it had, and none while node/silence.py remembers it.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from ioa_p2p.dht.direct import RELAYED
from ioa_p2p.dht.events import PointersFound, RecordFound
from ioa_p2p.errors import UsageError
from ioa_p2p.node.budget import Budget
from ioa_p2p.node.silence import Silence
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import pack_endpoint
from ioa_p2p.wire.ids import NodeId
from ioa_p2p.wire.records import AgentRecord, Card

DIAL_S = 4.0  # for a link to an agent's node, once
ASK_BYTES = limits.DATAGRAM_PADDED_BYTES_MIN  # a request that may have a large answer, sealed

Agent = tuple[NodeId, str]
T = TypeVar("T")


class Mesh(Protocol):
    """The DHT and cards by hash, as node/directory.py gives them. Each raises UsageError('busy'), TimeoutError."""

    async def pointers(
        self, key: str, sketch: bytes = b"", *, thorough: bool = False, wanted: int = limits.POINTERS_READ_MAX
    ) -> PointersFound: ...

    async def record(self, node: NodeId, agent: str, endpoint: bytes = b"") -> RecordFound: ...

    async def card(self, node: NodeId, card_hash: bytes) -> Card | None: ...


class Reach(Protocol):
    """Links, as node/neighbourhood.py makes them."""

    async def linked(self, node: NodeId, addresses: Sequence[str], wait_s: float) -> bool: ...

    def is_linked(self, node: NodeId) -> bool: ...


class Asking:
    """For one search. heard: whether anybody at all answered. unreached: agents whose nodes do not answer.

    has_answers(): other nodes did, so that the silent are waited for no longer than `patience_s`.
    """

    def __init__(
        self,
        mesh: Mesh,
        reach: Reach,
        silence: Silence,
        patience_s: float,
        budget: Budget,
        has_answers: Callable[[], bool],
    ) -> None:
        self.heard = False
        self.unreached: set[Agent] = set()
        self._mesh = mesh
        self._reach = reach
        self._silence = silence
        self._patience_s = patience_s
        self._budget = budget
        self._has_answers = has_answers
        self._first: dict[NodeId, asyncio.Event] = {}

    def is_pending(self, node: NodeId) -> bool:
        """It is asked for its first word now."""
        return node in self._first and not self._first[node].is_set()

    async def record(self, node: NodeId, agent: str, endpoint: bytes) -> RecordFound | None:
        """The newest; None if it cannot be had, or its node not be reached. endpoint: packed, or empty."""
        if self.is_pending(node):
            await self._first[node].wait()
        first = self._first.setdefault(node, asyncio.Event())
        patience_s = math.inf if first.is_set() else self._patience_s
        try:
            return None if self._silence.has(node) else await self._reached(node, agent, endpoint, patience_s)
        finally:
            if self._silence.has(node):
                self.unreached.add((node, agent))
            first.set()

    async def linked(self, record: AgentRecord) -> bool:
        return await self._reach.linked(record.node, record.addresses, DIAL_S)

    async def _reached(self, node: NodeId, agent: str, endpoint: bytes, patience_s: float) -> RecordFound | None:
        """By datagram where it should be, else where its record says; else by a link, if one is possible."""
        found = await self._ask(node, agent, endpoint, patience_s)
        if not endpoint and found is not None and (there := _place_of(found.record)):
            found = await self._ask(node, agent, there, patience_s)
        if found is None or found.direct or (found.record is not None and found.record.gone):
            return found
        if not found.silent or (found.record is not None and await self._has_link(found.record, patience_s)):
            return found
        self._silence.note(node, blamed=self.heard)
        return None

    async def _ask(self, node: NodeId, agent: str, endpoint: bytes, patience_s: float) -> RecordFound | None:
        try:
            found = await self._within(patience_s, self._mesh.record(node, agent, endpoint))
        except (UsageError, TimeoutError):
            return None
        if found is None:
            return RecordFound(0, None, 0, 0, silent=True)
        self.heard = self.heard or found.answered > 0
        self._budget.charge(found.asked, found.asked * ASK_BYTES)
        return found

    async def _within(self, patience_s: float, work: Coroutine[Any, Any, T]) -> T | None:
        """What it gives; None if it has not by then, and others have answered."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait([task], timeout=patience_s)
            return await task if task.done() or not self._has_answers() else None
        finally:
            task.cancel()

    async def _has_link(self, record: AgentRecord, patience_s: float) -> bool:
        """Whether a node that no datagram reaches can be linked: it called us, a relay passes us on, or its record
        does not say where it has its DHT, and we asked at the wrong port."""
        if self._reach.is_linked(record.node):
            return True
        if any(RELAYED in address for address in record.addresses):
            return await self.linked(record)
        return not record.endpoint and bool(await self._within(patience_s, self.linked(record)))


def packed(endpoint: str) -> bytes:
    """`ip:port` as a pointer has it; empty for none or a name."""
    host, _, port = endpoint.rpartition(":")
    try:
        return pack_endpoint(host.strip("[]"), int(port)) if host else b""
    except (UsageError, ValueError):
        return b""


def _place_of(record: AgentRecord | None) -> bytes:
    """Where datagrams reach its node: as it says, else the port of its links, which is the same unless it says so."""
    if record is None or record.gone:
        return b""
    plain = (one.split("/") for one in record.addresses if one.startswith("/ip") and RELAYED not in one)
    guessed = next((f"{parts[2]}:{parts[4]}" for parts in plain if len(parts) > 4 and parts[3] == "tcp"), "")
    return packed(record.endpoint or guessed)
