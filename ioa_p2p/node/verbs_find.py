"""Verbs of the control socket about agents: publish ours, find others', show one. docs/control.md, "Verbs".

publish ── records, copies, what was cut        find ── matches as they come ──> ranked, and who covers which need
show AGENT@NODE ── its newest record from all holders, its card by hash ──> what is proven of it, and what it says
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ioa_p2p.dht.events import Published, Queued, RecordFound
from ioa_p2p.errors import UsageError
from ioa_p2p.node import clock
from ioa_p2p.node.arguments import Args, seconds, text, whole
from ioa_p2p.node.asking import DIAL_S
from ioa_p2p.node.control import Emit
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import Hit, Placed, hit_event
from ioa_p2p.node.node import RANK_S, Node
from ioa_p2p.node.query import Query
from ioa_p2p.node.trust import Level
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.ids import NodeId, node_text
from ioa_p2p.wire.records import AgentRecord, Card, Skill

PUBLISH_WAIT_S = 20.0
FIND_S_MAX = 600.0
SHOW_S = 15.0
HITS_MAX = 1_000
NODE_CHARS_MIN = 4  # of a node's id, to name it by its beginning
LEVELS = {str(level): level for level in Level}
WAITS = {
    "no-answer": "the rest is under way", "no-peers": "nobody is there to hold it",
    "too-few-holders": "too few took it", "clock": "our clock is doubted",
}  # fmt: skip


# -- publish


async def publish(node: Node, args: Args, emit: Emit) -> dict[str, Any]:
    wanted = text(args, "agent")
    names = [wanted] if wanted else sorted(node.agents.cards)
    if not set(names) <= set(node.agents.cards):
        hint = f"it has: {' '.join(node.agents.cards)}"
        raise UsageError("no-agent", f"this node has no agent {wanted[:40]!r}", hint)
    before = {name: node.publishing.told.pop(name, None) for name in names}
    for name in names:
        node.publishing.publish(name)
    with suppress(TimeoutError):
        async with asyncio.timeout(PUBLISH_WAIT_S):
            while not all(_is_settled(node.publishing.told.get(name)) for name in names):
                node.publishing.news.clear()
                await node.publishing.news.wait()
    return {"records": [_published(node, name, before[name]) for name in names]}


def _is_settled(event: Published | Queued | None) -> bool:
    """Waiting longer would change nothing: it is out, or there is nobody to give it to."""
    return isinstance(event, Published) or (isinstance(event, Queued) and event.reason == "no-peers")


def _published(node: Node, name: str, before: Published | Queued | None) -> dict[str, Any]:
    skills = [skill.name for skill in node.agents.cards[name].skills]
    event = node.publishing.told.get(name) or before
    told = {"agent": name, "skills": skills, "meaning": node.publishing.is_meant(name)}
    if isinstance(event, Published):
        warnings = [f"too many index keys; not found under: {' '.join(event.cut)}"] if event.cut else []
        if event.waiting:
            warnings.append(
                f"{event.waiting} index keys found too few holders with room; they are tried again by themselves"
            )
        return {**told, "seq": event.seq, "copies": event.confirmed, "holders": event.holders, "keys": event.keys,
                "cut": list(event.cut), "warnings": warnings}  # fmt: skip
    reason, confirmed, holders = (event.reason, event.confirmed, event.holders) if event else ("no-answer", 0, 0)
    warnings = [f"not out yet ({WAITS.get(reason, reason)}); it is tried again by itself"]
    return {**told, "seq": 0, "copies": confirmed, "holders": holders, "keys": 0, "cut": [], "warnings": warnings}


# -- find


async def find(node: Node, args: Args, emit: Emit) -> dict[str, Any]:
    query = _query(args)
    limit = whole(args, "limit", 20, 1, HITS_MAX)
    timeout_s = seconds(args, "timeout_s", limits.DHT_LOOKUP_S, FIND_S_MAX)
    query.keys()  # says at once if there is nothing to search for
    time_s = asyncio.get_running_loop().time
    end_s = time_s() + timeout_s
    telling = _Telling(node, emit, limit)
    telling.search = search = await node.new_search(query, telling.on_hit)
    with suppress(TimeoutError):  # what was found by then is the answer
        async with asyncio.timeout_at(end_s - min(RANK_S, timeout_s / 4)):
            await search.look_here()
            await node.joined()
            await search.run()
    with suppress(TimeoutError):
        async with asyncio.timeout_at(end_s):
            await telling.end()
    answer = await node.rank(search, end_s - time_s())
    ranked = answer.placed[:limit]
    return {
        "hits": sum(not one.weak for one in ranked),
        "ranked": [_ranked(one) for one in ranked],
        "needs": [{"need": need, "agents": [_name(hit) for hit in hits]} for need, hits in answer.needs],
        "ranking": answer.ranking,
        **_costs(search),
    }


class _Telling:
    """Tells of each hit that matches, when it comes; of at most `limit` agents. Hits are looked at on the model's
    thread, in the order in which they come. search: whose they are; to be set before anything is awaited.
    """

    search: Search

    def __init__(self, node: Node, emit: Emit, limit: int) -> None:
        self._node = node
        self._emit = emit
        self._limit = limit
        self._agents: set[tuple[NodeId, str]] = set()
        self._under_way: set[asyncio.Task[None]] = set()

    def on_hit(self, hit: Hit) -> None:
        self._under_way.add(asyncio.create_task(self._tell(hit)))

    async def end(self) -> None:
        """Until all is told."""
        await asyncio.gather(*self._under_way)

    async def _tell(self, hit: Hit) -> None:
        if not await self._node.is_match(self.search, hit):
            return
        if hit.agent in self._agents or len(self._agents) < self._limit:
            self._agents.add(hit.agent)
            self._emit(hit_event(hit, node_text))


def _query(args: Args) -> Query:
    trust = text(args, "trust") or str(Level.STRANGER)
    if trust not in LEVELS:
        raise UsageError("bad-argument", f"trust must be one of {' '.join(LEVELS)}", "the least level wanted")
    names = {"words": "text", "skill": "skill", "in": "input", "out": "output", "tag": "tag"}
    told = {field: text(args, name) for name, field in names.items()}
    types = {field: told[field].removesuffix("*") for field in ("input", "output")}  # as a card may write them
    return Query(**told | types | {"skill": told["skill"].lower()}, trust=LEVELS[trust])


def _ranked(placed: Placed) -> dict[str, Any]:
    hit = placed.hit
    told = {key: value for key, value in hit_event(hit, node_text).items() if key != "kind"}
    return {**told, "match": round(placed.match, 3), "weak": placed.weak, "why": placed.why}


def _name(hit: Hit) -> str:
    return f"{hit.record.agent}@{node_text(hit.record.node)}"


def _costs(search: Search) -> dict[str, int]:
    return {
        "holders": search.holders,
        "local_hits": search.local_hits,
        "silent": search.unreached,
        "rpcs": search.budget.rpcs,
        "bytes": search.budget.bytes,
    }


# -- show


async def show(node: Node, args: Args, emit: Emit) -> dict[str, Any]:
    try:
        async with asyncio.timeout(SHOW_S):
            return await _shown(node, args)
    except TimeoutError:
        raise UsageError(
            "no-answer", f"no answer within {SHOW_S:.0f} s", "try again, or see `ioa-p2p doctor`"
        ) from None


async def _shown(node: Node, args: Args) -> dict[str, Any]:
    agent, _, where = text(args, "agent").partition("@")
    if not ids.is_agent_name(agent):
        raise UsageError("bad-agent", f"not an agent's name: {agent[:40]!r}", "name it as AGENT or AGENT@NODE")
    await node.joined()
    key = await _node_of(node, agent, where.lower())
    try:
        found = await node.directory.held_record(key, agent)
    except TimeoutError:
        found = RecordFound(0, None, 0, 0)
    if found.record is None or found.record.gone:
        gone = "has left" if found.record else "is not known"
        raise UsageError("no-such-agent", f"{agent}@{where or node_text(key)} {gone}", "see `ioa-p2p find`")
    card = await _card(node, found.record)
    return {**_told_record(node, found, found.record), **_told_card(found.record, card)}


async def _node_of(node: Node, agent: str, where: str) -> NodeId:
    """The one node that has this agent, by its id, by the beginning of one, or because there is no other.

    Raises UsageError('no-such-agent' | 'ambiguous' | 'bad-node-id').
    """
    if len(where) == len(node_text(node.key.node)):
        return ids.node_from_text(where)
    if 0 < len(where) < NODE_CHARS_MIN:
        raise UsageError("bad-node-id", f"{where!r} is too short", f"give at least {NODE_CHARS_MIN} letters of it")
    search = await node.new_search(Query(agent.replace("-", " ")))
    with suppress(TimeoutError):
        async with asyncio.timeout(limits.DHT_LOOKUP_S):
            await search.run()
    found = {hit.record.node for hit in search.hits.values() if hit.record.agent == agent}
    nodes = sorted(one for one in found if node_text(one).startswith(where))
    if len(nodes) == 1:
        return nodes[0]
    if not nodes:
        raise UsageError("no-such-agent", f"no agent {agent!r} is found", "try `ioa-p2p find`, or name AGENT@NODE")
    there = " ".join(f"{agent}@{node_text(one)}" for one in nodes[:8])
    raise UsageError("ambiguous", f"{len(nodes)} nodes have an agent {agent!r}", f"one of {there}")


async def _card(node: Node, record: AgentRecord) -> Card | None:
    kept = node.directory.kept_card(record.card)
    if kept is not None or not await node.neighbourhood.linked(record.node, record.addresses, DIAL_S):
        return kept
    try:
        return await node.directory.card(record.node, record.card)
    except TimeoutError:
        return None


def _told_record(node: Node, found: RecordFound, record: AgentRecord) -> dict[str, Any]:
    """What is proven: a record whose signature is not its node's never comes so far."""
    standing = node.trust.standing(record.node, record.agent)
    return {
        "agent": record.agent,
        "node": node_text(record.node),
        "signature": "good",
        "seq": record.seq,
        "issued": record.issued,
        "age_s": round(found.age_s, 1),
        "expires_s": round(record.issued + record.ttl - clock.now().wall, 1),
        "holders": found.answered,
        "copies": found.copies,
        "trust": str(standing.level),
        "why": standing.why,
        "addresses": list(record.addresses),
        "endpoint": record.endpoint,
        "features": list(record.features),
        "index_model": record.index_model,
    }


def _told_card(record: AgentRecord, card: Card | None) -> dict[str, Any]:
    """What it says of itself. card: 'matches' its hash, or 'not-had': nobody who is there gave it."""
    if card is None:
        return {"card": "not-had", "card_hash": record.card.hex(), "description": "",
                "skills": [{"name": name} for name in record.skills]}  # fmt: skip
    return {
        "card": "matches",
        "card_hash": record.card.hex(),
        "card_bytes": len(codec.encode(card)),
        "version": card.version,
        "description": card.description,
        "skills": [_told_skill(skill) for skill in card.skills],
    }


def _told_skill(skill: Skill) -> dict[str, Any]:
    lists: dict[str, Sequence[str]] = {
        "inputs": skill.inputs, "outputs": skill.outputs, "tags": skill.tags, "examples": skill.examples
    }  # fmt: skip
    told = {name: list(values) for name, values in lists.items()}
    return {"name": skill.name, "description": skill.description, "effect": skill.effect, **told}


HANDLERS: Mapping[str, Any] = {"publish": publish, "find": find, "show": show}
