"""Publishing our agents and keeping them published. docs/wire.md, "Publishing".

    Publish ── seq saved, record and pointers signed ──> put the record ── then its pointers ──> Published
                 ^                                          │                 └─ split: into a shard too
                 │                                          └─ too few, nobody: Queued, tried again by itself
                 └── re-issued at 0.375 ttl +- 20 %, at once on change; Withdraw: the same with a `gone` record

The first put of a life reads our own record wherever it is: a larger seq found (a lost disk, a clone) is passed.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import records
from ioa_p2p.dht.cards import Cards
from ioa_p2p.dht.clock import Clock
from ioa_p2p.dht.commands import Publish
from ioa_p2p.dht.events import CloneAlarm, Published, Queued
from ioa_p2p.dht.index import cell_key, index_keys, is_cell_key
from ioa_p2p.dht.put import Put
from ioa_p2p.dht.search import Means, RecordSearch, Search
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Effect, Emit, Now, Rows, Save
from ioa_p2p.errors import UsageError
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import pack_endpoint
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord, Pointer

SPACE = "dht/seq"


@dataclass(slots=True, eq=False)
class Agent:
    """What is published of one agent. issue: counts re-issues, so that what belongs to an old one is ignored.

    seen_seq: the largest seq of it found out there. depths: by index key, of those whose holders said split: how deep
    its pointers go; kept over re-issues. to_put, placed: pointers of this issue.
    """

    order: Publish
    card: bytes
    keys: list[str]
    cut: list[str]
    gone: bool = False
    issue: int = 0
    seq: int = 0
    seen_seq: int = -1
    looked_up: bool = False
    record: Item | None = None
    pointers: list[Item] = field(default_factory=list[Item])
    depths: dict[bytes, int] = field(default_factory=dict[bytes, int])
    to_put: int = 0
    placed: int = 0
    confirmed: int = 0
    holders: int = 0


@dataclass(slots=True, eq=False)
class Job:
    """One put to be done for one issue of an agent."""

    agent: Agent
    issue: int
    item: Item
    tries: int = 0

    @property
    def stale(self) -> bool:
        return self.issue != self.agent.issue


class Publisher:
    """endpoint() gives `(host, port)` of our DHT as peers see it, or None."""

    def __init__(
        self,
        key: NodeKey,
        network: bytes,
        rows: Rows,
        rng: random.Random,
        boot: int,
        means: Means,
        cards: Cards,
        out: list[Effect],
        endpoint: Callable[[], tuple[str, int] | None],
        clock: Clock,
    ) -> None:
        self._key = key
        self._network = network
        self._rng = rng
        self._boot = boot
        self._means = means
        self._cards = cards
        self._out = out
        self._endpoint = endpoint
        self._clock = clock
        self._seqs = {name.decode(): int.from_bytes(seq) for name, seq in rows(SPACE)}
        self._agents: dict[str, Agent] = {}
        self._jobs: deque[Job] = deque()
        self._waiting: dict[Job, None] = {}  # for their next try
        self._running = 0
        self._running_max = limits.DHT_PUTS_MAX
        self._leaving = False

    @property
    def own(self) -> list[Item]:
        """Every frame of ours that should be out there now. A crowded key keeps what its sample takes: there we see
        to the deepest pointer alone."""
        frames = ((agent, item) for agent in self._agents.values() for item in _frames_of(agent))
        return [item for agent, item in frames if item is agent.record or _is_deepest(agent, item)]

    def publish(self, now: Now, order: Publish) -> None:
        """Raises UsageError('too-many-agents' | 'card-too-large' | 'bad-ttl')."""
        name = order.card.name
        if name not in self._agents and len(self._agents) >= limits.AGENTS_MAX:
            raise UsageError("too-many-agents", f"a node has at most {limits.AGENTS_MAX} agents", "start another node")
        if not limits.TTL_S_MIN <= order.ttl <= limits.TTL_S_MAX:
            raise UsageError("bad-ttl", f"ttl {order.ttl} s", f"choose {limits.TTL_S_MIN}-{limits.TTL_S_MAX} s")
        card = self._cards.own(order.card)
        cells = [cell_key(order.index_model, cell) for cell in order.cells]
        keys, cut = index_keys(order.card, cells)
        known = self._agents.get(name)
        agent = known or Agent(order, card, keys, cut)
        agent.order, agent.card, agent.keys, agent.cut, agent.gone = order, card, keys, cut, False
        self._agents[name] = agent
        self._issue(now, agent)

    def withdraw(self, now: Now, name: str) -> None:
        """Raises UsageError('unknown-agent')."""
        agent = self._agents.get(name)
        if agent is None:
            raise UsageError("unknown-agent", f"no agent {name!r} is published here", "see `ioa-p2p status`")
        agent.gone = True
        self._issue(now, agent)

    def leave(self, now: Now) -> None:
        """Withdraw all that is not withdrawn yet. From now on nobody silent is waited for, nor any put under way."""
        self._leaving = True
        self._running_max = self._running + limits.DHT_PUTS_MAX
        for name in [name for name, agent in self._agents.items() if not agent.gone]:
            self.withdraw(now, name)

    def move(self, addresses: tuple[str, ...], endpoint: str) -> None:
        """What is issued from now on says that we are there."""
        for agent in self._agents.values():
            agent.order = replace(agent.order, addresses=addresses, endpoint=endpoint)

    def issue_all(self, now: Now) -> None:
        """Publish everything anew: we woke up or moved, or our clock is right again."""
        for agent in list(self._agents.values()):
            self._issue(now, agent)

    def pump(self, now: Now) -> None:
        """Start waiting puts, if anybody is there to take them."""
        while self._jobs and self._running < self._running_max and self._may_put:
            job = self._jobs.popleft()
            if not job.stale:
                self._run(now, job)

    def hurry(self) -> None:
        """Somebody is there again: what waits for its next try is due with the next pump."""
        self._jobs += [replace(job, tries=1) for job in self._waiting]
        self._waiting.clear()

    @property
    def _may_put(self) -> bool:
        return len(self._means.peers.table) > 0 and not self._clock.doubted

    # -- issuing

    def _issue(self, now: Now, agent: Agent) -> None:
        """A new issue, and the first steps to put it out. What a wrong clock would sign waits until it is right."""
        if self._clock.doubted:
            self._out.append(Emit(Queued(agent.order.card.name, "clock")))
            return
        self._renew(now, agent)
        assert agent.record is not None
        self._jobs.append(Job(agent, agent.issue, agent.record))
        if not len(self._means.peers.table):
            self._out.append(Emit(Queued(agent.order.card.name, "no-peers")))
        self.pump(now)

    def _renew(self, now: Now, agent: Agent) -> None:
        """Sign record and pointers under the next seq, save it, hold them here too."""
        agent.issue += 1
        agent.to_put = agent.placed = agent.confirmed = agent.holders = 0
        self._sign(now, agent)
        self._out.append(Save(SPACE, agent.order.card.name.encode(), agent.seq.to_bytes(8)))
        for item in _frames_of(agent):
            self._means.store.put(now, item, self._key.node)
        if not agent.gone:
            wait_s = limits.REPUBLISH_TTL_FRACTION * agent.order.ttl
            wait_s *= self._rng.uniform(1 - limits.REPUBLISH_SPREAD, 1 + limits.REPUBLISH_SPREAD)
            self._means.agenda.at(now.boot + wait_s, partial(self._reissue, agent, agent.issue))

    def _reissue(self, agent: Agent, issue: int, now: Now) -> None:
        if agent.issue == issue:
            self._issue(now, agent)

    def _sign(self, now: Now, agent: Agent) -> None:
        name = agent.order.card.name
        agent.seq = max(self._seqs.get(name, 0) + 1, agent.seen_seq + 1, int(now.wall * 1000))
        self._seqs[name] = agent.seq
        record = self._record(now, agent)
        agent.record = self._item(Kind.RECORD, record)
        agent.pointers = [] if agent.gone else list(self._pointers(record, agent))

    def _record(self, now: Now, agent: Agent) -> AgentRecord:
        order, card = agent.order, agent.order.card
        return _fit(
            AgentRecord(
                node=self._key.node,
                agent=card.name,
                seq=agent.seq,
                issued=int(now.wall),
                ttl=order.ttl + (limits.GONE_EXTRA_TTL_S if agent.gone else 0),
                gone=agent.gone,
                boot=self._boot,
                addresses=order.addresses[: limits.RECORD_ADDRESSES_MAX],
                endpoint=order.endpoint or self._seen_endpoint(),
                skills=tuple(skill.name for skill in card.skills[: limits.RECORD_SKILLS_MAX]),
                features=order.features[: limits.FEATURES_MAX],
                index_model=order.index_model,
                card=agent.card,
            )
        )

    def _pointers(self, record: AgentRecord, agent: Agent) -> Iterator[Item]:
        host, _, port = record.endpoint.rpartition(":")
        for key in agent.keys:
            pointer = Pointer(
                node=record.node,
                agent=record.agent,
                seq=record.seq,
                issued=record.issued,
                ttl=record.ttl,
                index=ids.index_key(key),
                depth=0,
                sketch=agent.order.sketch if is_cell_key(key) else b"",
                endpoint=pack_endpoint(host.strip("[]"), int(port)) if host else b"",
            )
            for depth in limits.SHARD_DEPTHS:
                if depth <= agent.depths.get(pointer.index, 0):
                    yield self._item(Kind.POINTER, codec.replace(pointer, depth=depth))

    def _item(self, kind: Kind, body: AgentRecord | Pointer) -> Item:
        return records.item_of(envelope.seal(self._key, self._network, kind, body))

    def _seen_endpoint(self) -> str:
        seen = self._endpoint()
        if seen is None:
            return ""
        host, port = seen
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    # -- putting

    def _run(self, now: Now, job: Job) -> None:
        self._running += 1
        job = self._placed(now, job)
        if job.item is job.agent.record and not (job.agent.looked_up or self._leaving):
            RecordSearch(self._means, job.item.key, partial(self._looked_up, job), thorough=True).start(now)
        else:
            self._search(job).start(now)

    def _placed(self, now: Now, job: Job) -> Job:
        """Signed before any peer told where it sees us: nobody could ask us whether we live. It is signed again."""
        body = job.item.body
        if not isinstance(body, AgentRecord) or body.endpoint or not self._seen_endpoint():
            return job
        self._renew(now, job.agent)
        assert job.agent.record is not None
        return Job(job.agent, job.agent.issue, job.agent.record)

    def _looked_up(self, job: Job, now: Now, search: RecordSearch) -> None:
        """The first look at our own record: go on from the largest seq there is."""
        agent, found = job.agent, search.item
        if search.holders:
            agent.looked_up = True
        if not job.stale and found is not None and found.hash != job.item.hash and found.body.seq >= agent.seq:
            job = self._pass(now, agent, found)
        self._search(job).start(now, search.holders)

    def _search(self, job: Job) -> Search:
        """For those to give it to."""
        return Search(self._means, job.item.key, partial(self._searched, job), hurried=self._leaving)

    def _pass(self, now: Now, agent: Agent, found: Item) -> Job:
        """Somebody has a record of ours with as large a seq: an older life whose disk is lost, or a clone."""
        assert isinstance(found.body, AgentRecord)
        if found.body.seq == agent.seq or found.body.boot > self._boot:
            self._out.append(Emit(CloneAlarm(self._key.node, agent.order.card.name, found.body.seq)))
        agent.seen_seq = found.body.seq
        self._renew(now, agent)
        assert agent.record is not None
        return Job(agent, agent.issue, agent.record)

    def _searched(self, job: Job, now: Now, search: Search) -> None:
        if job.stale or self._clock.doubted:
            self._ended(now)
            return
        put = Put(self._means.calls, job.item.raw, partial(self._put, job), hurried=self._leaving)
        put.store(now, search)

    def _put(self, job: Job, now: Now, put: Put) -> None:
        if not job.stale:
            if job.item is job.agent.record:
                self._put_record(now, job, put)
            else:
                self._put_pointer(now, job, put)
        self._ended(now)

    def _ended(self, now: Now) -> None:
        self._running -= 1
        self.pump(now)

    def _put_record(self, now: Now, job: Job, put: Put) -> None:
        agent = job.agent
        agent.confirmed, agent.holders = put.confirmed, put.holders
        if not put.succeeded:
            reason = "too-few-holders" if put.holders else "no-peers"
            self._out.append(Emit(Queued(agent.order.card.name, reason, put.confirmed, put.holders)))
            self._retry(now, job)
            return
        agent.to_put = len(agent.pointers)
        self._jobs += [Job(agent, agent.issue, item) for item in agent.pointers]
        self._tell(agent)

    def _put_pointer(self, now: Now, job: Job, put: Put) -> None:
        agent = job.agent
        if put.split:
            self._deepen(now, agent, job.item)
        elif not put.succeeded:
            self._retry(now, job)
        if not job.tries:
            agent.to_put -= 1
            agent.placed += _is_deepest(agent, job.item) and (put.succeeded or (put.split and put.confirmed > 0))
            self._tell(agent)

    def _deepen(self, now: Now, agent: Agent, item: Item) -> None:
        """Put it into a smaller shard too, unless it is there already or there is none."""
        assert isinstance(item.body, Pointer)
        if not _is_deepest(agent, item) or item.body.depth == limits.SHARD_BITS_MAX:
            return
        depth = limits.SHARD_DEPTHS[limits.SHARD_DEPTHS.index(item.body.depth) + 1]
        deeper = self._item(Kind.POINTER, codec.replace(item.body, depth=depth))
        agent.depths[item.body.index] = depth
        agent.pointers.append(deeper)
        agent.to_put += 1
        self._means.store.put(now, deeper, self._key.node)
        self._jobs.append(Job(agent, agent.issue, deeper))

    def _tell(self, agent: Agent) -> None:
        """Say so once the record is out and every pointer had its first try."""
        if agent.to_put:
            return
        name = agent.order.card.name
        split = tuple(key for key in agent.keys if ids.index_key(key) in agent.depths)
        waiting = 0 if agent.gone else len(agent.keys) - agent.placed
        told = Published(
            name, agent.seq, agent.confirmed, agent.holders, agent.placed, tuple(agent.cut), split, waiting,
            agent.gone,
        )  # fmt: skip
        self._out.append(Emit(told))
        if agent.gone:
            del self._agents[name]

    def _retry(self, now: Now, job: Job) -> None:
        first_s, most_s = limits.PUBLISH_RETRY_S
        wait_s = min(most_s, first_s * 2**job.tries) * self._rng.uniform(0.8, 1.2)
        again = replace(job, tries=job.tries + 1)
        self._waiting[again] = None
        self._means.agenda.at(now.boot + wait_s, partial(self._again, again))

    def _again(self, job: Job, now: Now) -> None:
        if job in self._waiting:
            del self._waiting[job]
            self._jobs.append(job)
            self.pump(now)


def _frames_of(agent: Agent) -> list[Item]:
    return [] if agent.record is None else [agent.record, *agent.pointers]


def _is_deepest(agent: Agent, item: Item) -> bool:
    """Whether it is the pointer of its key in the smallest shard there is one in."""
    return isinstance(item.body, Pointer) and item.body.depth == agent.depths.get(item.body.index, 0)


def _fit(record: AgentRecord) -> AgentRecord:
    """Drop skill names, then addresses, from the end until the body fits; index and card still have the skills."""
    while len(codec.encode(record)) > limits.RECORD_BODY_BYTES_MAX:
        if record.skills:
            record = codec.replace(record, skills=record.skills[:-1])
        else:
            record = codec.replace(record, addresses=record.addresses[:-1])
    return record
