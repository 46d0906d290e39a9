"""The DHT machine: a node's part in the mesh's directory. Pure; composed of one noun a file.

    Contact + datagram ──> Holder answers | Calls match ──> Search, Put, Joining, Publisher ──> Send, Save
    node key + directory message ──> Neighbours, Cards                                      ──> Send
    command ──> Joining, Publisher, searches ──> events (events.py)        one timer ──> Agenda ──> all deadlines

`handle_message(now, peer, message)`: peer is a Contact for a `wire.dht.Datagram` (key proven by the box, endpoint as
the datagram came), a node key (32 B) for a `wire.dht.Directory` message. Sends are addressed likewise.
"""

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands, events, space
from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.budget import Requests
from ioa_p2p.dht.calls import Calls
from ioa_p2p.dht.cards import Cards
from ioa_p2p.dht.clock import Clock
from ioa_p2p.dht.clones import Clones
from ioa_p2p.dht.direct import DirectRecord
from ioa_p2p.dht.holder import Holder
from ioa_p2p.dht.index import is_cell_key
from ioa_p2p.dht.join import Joining
from ioa_p2p.dht.keeper import Keeper
from ioa_p2p.dht.neighbours import Neighbours
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.probe import Probes
from ioa_p2p.dht.publisher import Publisher
from ioa_p2p.dht.put import Put
from ioa_p2p.dht.reach import Reach
from ioa_p2p.dht.readiness import Readiness
from ioa_p2p.dht.reading import Reading
from ioa_p2p.dht.records import Gate, is_past, item_of, place_of
from ioa_p2p.dht.region import Density
from ioa_p2p.dht.search import Means, RecordSearch, Search
from ioa_p2p.dht.store import Held, Item, Store
from ioa_p2p.dht.tokens import Tokens
from ioa_p2p.effects import Effect, Emit, Now, Rows, Send
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.wire import dht as wire
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.frames import Frame
from ioa_p2p.wire.records import AgentRecord, Card

TIMER = "dht"


class DhtMachine:
    """key: the node's. network: 16 B. rows: saved state. boot: this start's id (unix ms). check: verifies frames."""

    def __init__(
        self,
        key: NodeKey,
        network: bytes,
        rows: Rows,
        rng: random.Random,
        boot: int,
        check: Callable[[Frame, bytes], None] = envelope.check,
    ) -> None:
        self.faults: Counter[str] = Counter()
        self._rng = rng
        self._out: list[Effect] = []
        self._agenda = Agenda(TIMER)
        self._calls = Calls(rng, self._out, self._agenda, self._missed)
        self._peers = Peers(key.node, rows, self._calls, self._out, self._entered)
        self._store = Store(self._clone, rng)
        self._gate = Gate(network, self._store, check, self._kept, partial(self._proven, key.node))
        self._clones = Clones(key.node, boot, self._alarm)
        self._requests = Requests()
        self._probes = Probes(self._calls, self._out)
        density = Density(self._peers.table)
        self._means = Means(self._calls, self._peers, self._store, self._gate, self._agenda, self.faults, density)
        self._holder = Holder(self._peers, self._store, self._gate, Tokens(rng))
        self._reach = Reach(rng, self._calls, self._peers, self._out, self._reachable, self._moved)
        self._clock = Clock(self._agenda, self._out, lambda now: self._peers.ask_some(now, rng), self._clock_right)
        self._joining = Joining(self._means, rng, self._filled)
        self._readiness = Readiness(self._agenda, self._out, self._status)
        self._neighbours = Neighbours(self._store, self._gate, self._agenda, self._out, self.faults, self._compared)
        self._cards = Cards(self._agenda, self._out)
        self._publisher = Publisher(
            key,
            network,
            rows,
            rng,
            boot,
            self._means,
            self._cards,
            self._out,
            lambda: self._reach.seen,
            self._clock,
        )
        self._keeper = Keeper(self._means, rng, lambda: self._publisher.own)
        self._searches = 0
        self._waiting: deque[Callable[[Now], None]] = deque()
        self._told_good = 0

    # -- the machine's four inputs

    def start(self, now: Now) -> list[Effect]:
        self._agenda.at(now.boot + limits.DHT_SAVE_PEERS_S, self._look_after)
        self._agenda.at(now.boot + self._spread(limits.DHT_REFRESH_S), self._look_around)
        self._clock.watch(now)
        return self._effects()

    def handle_message(self, now: Now, peer: Any, message: Any) -> list[Effect]:
        if isinstance(peer, wire.Contact):
            if isinstance(message, wire.Pong | wire.Found | wire.Stored | wire.Had):
                self._answered(now, peer, message)
            else:
                self._asked(now, peer, message)
        else:
            self._compare(now, peer, message)
        return self._effects()

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        if self._agenda.late_s(now.boot) > limits.DHT_JUMP_S:
            self._refresh(now)
        self._agenda.run(now)
        return self._effects()

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        match command:
            case commands.Join(seeds, peers):
                self._joining.join(now, seeds, peers)
            case commands.Publish():
                self._publisher.publish(now, command)
                self._tell_own(now)
            case commands.Withdraw(agent):
                self._publisher.withdraw(now, agent)
                self._tell_own(now)
            case commands.Moved(addresses, endpoint):
                self._publisher.move(addresses, endpoint)
                self._refresh(now)
            case commands.Probe(request, contact):
                self._probes.probe(now, request, contact)
            case commands.SearchRecord(request, node, agent, thorough):
                self._search(now, partial(self._search_record, request, ids.record_key(node, agent), thorough))
            case commands.FetchRecord(request, node, agent, endpoint):
                self._search(now, partial(self._fetch_record, request, node, ids.record_key(node, agent), endpoint))
            case commands.SearchPointers():
                self._search(now, partial(self._search_pointers, command))
            case commands.PutFrame(request, frame):
                self._search(now, partial(self._put_frame, request, _own_item(frame)))
            case commands.FetchCard(request, node, hash_):
                self._cards.fetch(now, request, node, hash_)
            case commands.NeighbourUp(node, boot):
                self._clones.linked(node, boot)
                self._neighbours.up(now, node)
            case commands.NeighbourDown(node):
                self._neighbours.down(node)
            case commands.Refresh():
                self._refresh(now)
            case _:
                raise UsageError("unknown-command", f"the DHT knows no {type(command).__name__}")
        return self._effects()

    def _effects(self) -> list[Effect]:
        wake = self._agenda.wake()
        if wake is not None:
            self._out.append(wake)
        effects = self._out[:]
        self._out.clear()
        return effects

    # -- what the node shows people

    @property
    def contacts(self) -> list[wire.Contact]:
        """The good peers in the table."""
        return [entry.contact for entry in self._peers.table if not entry.misses]

    @property
    def seeds_heard(self) -> frozenset[bytes]:
        """Keys of the seeds that answered when last asked."""
        return self._joining.heard

    @property
    def held(self) -> list[Item]:
        """All records and pointers held here, own ones included. Some may be past their time: see `alive`."""
        return [held.item for held in self._store]

    def kept_card(self, hash_: bytes) -> Card | None:
        """The card with this hash, if it can be had without asking."""
        return self._cards.kept(hash_)

    def alive(self, now: Now) -> list[Item]:
        """All records and pointers held here whose time is not over, own ones included."""
        return [held.item for held in self._store if held.until_s > now.boot]

    @property
    def is_client(self) -> bool:
        """A peer saw us at a public endpoint, and that strangers reach us there is not proven."""
        return self._reach.seen is not None and not self._reach.proven

    @property
    def seen_endpoint(self) -> tuple[str, int] | None:
        """Our DHT endpoint as most peers see it."""
        return self._reach.seen

    @property
    def clock_offset_s(self) -> float | None:
        """What to add to our wall clock to have the peers' time, if ours cannot be trusted."""
        return self._clock.offset_s

    # -- messages

    def _asked(self, now: Now, peer: wire.Contact, message: wire.Request) -> None:
        self._requests.spend(now, peer)
        self._reach.request(now, peer)
        client = self._calls.client
        match message:
            case wire.Ping():
                answer = self._holder.pong(now, peer, message, client)
            case wire.FindNode() | wire.FindRecord() | wire.FindPointers():
                answer = self._holder.found(now, peer, message, client)
            case wire.Store():
                answer = self._holder.stored(now, peer, message, client)
            case wire.Have():
                answer = self._holder.had(now, peer, message, client)
            case wire.DialBack():
                self._reach.dial_back(now, peer)
                return
            case wire.Introduce():
                self._reach.introduce(now, peer, message)
                return
        self._out.append(Send(peer, answer))
        if not message.client:
            self._peers.asked_by(now, peer)

    def _answered(self, now: Now, peer: wire.Contact, answer: wire.Answer) -> None:
        call = self._calls.match(peer, answer)
        self._calls.heard(now, call)
        if isinstance(answer, wire.Pong):
            self._clock.heard(now, peer, answer.wall)
            self._reach.pong(now, peer, answer)
        self._peers.proven(now, peer, answer.client)
        call.asker.answered(now, call, answer)

    def _compare(self, now: Now, node: bytes, message: wire.Directory) -> None:
        match message:
            case wire.Digest():
                self._neighbours.digest(now, node, message)
            case wire.Want():
                self._neighbours.want(now, node, message)
            case wire.Records():
                self._neighbours.records(now, node, message)
            case wire.CardWanted():
                self._cards.wanted(node, message)
            case wire.CardGiven():
                self._cards.given(node, message)

    # -- searches on command

    def _search(self, now: Now, start: Callable[[Now], None]) -> None:
        if self._searches < limits.DHT_SEARCHES_MAX:
            self._searches += 1
            start(now)
        elif len(self._waiting) < limits.DHT_QUEUE_MAX:
            self._waiting.append(start)
        else:
            raise UsageError("busy", "too many searches wait already", "ask again in a while")

    def _search_ended(self, now: Now) -> None:
        self._searches -= 1
        if self._waiting:
            self._searches += 1
            self._waiting.popleft()(now)

    def _search_record(self, request: int, key: bytes, thorough: bool, now: Now, tried: int = 0) -> None:
        RecordSearch(self._means, key, partial(self._record_found, request, tried), thorough=thorough).start(now)

    def _fetch_record(self, request: int, node: bytes, key: bytes, endpoint: bytes, now: Now) -> None:
        """endpoint: of a proven pointer, so bytes can be sent to it; but no stranger sends us into our own network."""
        contact = wire.Contact(node, *wire.unpack_endpoint(endpoint)) if endpoint else None
        if contact is None or node == self._peers.own or not self._is_outside(contact):
            self._search_record(request, key, False, now)
        else:
            DirectRecord(self._means, key, partial(self._record_fetched, request, key)).start(now, contact)

    def _is_outside(self, contact: wire.Contact) -> bool:
        """Whether the endpoint lies no deeper in private networks than we do, as far as we know."""
        return self._reach.seen is None or space.scope(contact.host) >= space.scope(self._reach.seen[0])

    def _record_fetched(self, request: int, key: bytes, now: Now, item: Item | None) -> None:
        if item is None:
            self._search_record(request, key, False, now, tried=1)
        else:
            self._tell_record(now, item, events.RecordFound(request, None, 1, 1, direct=True, copies=1))

    def _record_found(self, request: int, tried: int, now: Now, search: RecordSearch) -> None:
        asked = tried + search.lookup.calls
        told = events.RecordFound(request, None, asked, len(search.tokens), copies=search.copies)
        self._tell_record(now, search.item, told)

    def _tell_record(self, now: Now, item: Item | None, told: events.RecordFound) -> None:
        if item is not None and not is_past(now, item.body):
            assert isinstance(item.body, AgentRecord)
            age_s = max(0.0, now.wall - item.body.issued)
            told = replace(told, record=item.body, age_s=age_s)
        self._emit_found(now, told)

    def _search_pointers(self, command: commands.SearchPointers, now: Now) -> None:
        Reading(
            self._means,
            self._rng,
            ids.index_key(command.key),
            partial(self._pointers_found, command.request),
            sketch=command.sketch if is_cell_key(command.key) else b"",
            wanted=command.wanted,
            thorough=command.thorough,
        ).start(now)

    def _pointers_found(self, request: int, now: Now, reading: Reading) -> None:
        picked = [one for one in reading.harvest.pick(reading.wanted) if not is_past(now, one[0])]
        pointers, holders = tuple(pointer for pointer, _ in picked), tuple(count for _, count in picked)
        cost = (reading.rpcs, reading.size_bytes)
        found = events.PointersFound(request, pointers, reading.asked, reading.answered, holders, *cost)
        self._emit_found(now, found)

    def _put_frame(self, request: int, item: Item, now: Now) -> None:
        put = Put(self._calls, item.raw, partial(self._frame_put, request))
        Search(self._means, item.key, lambda now, search: put.store(now, search)).start(now)

    def _frame_put(self, request: int, now: Now, put: Put) -> None:
        self._out.append(Emit(events.FramePut(request, put.succeeded, put.confirmed, put.holders)))
        self._search_ended(now)

    def _emit_found(self, now: Now, event: Any) -> None:
        self._out.append(Emit(event))
        self._search_ended(now)

    # -- what the parts tell each other

    def _entered(self, now: Now, contact: wire.Contact) -> None:
        self._keeper.entered(now, contact)

    def _missed(self, contact: wire.Contact) -> None:
        self._peers.missed(contact)

    def _proven(self, own: bytes, item: Item) -> None:
        if isinstance(item.body, AgentRecord) and item.body.node != own:
            self._out.append(Emit(events.Heard(item.body, item.raw)))

    def _clone(self, item: Item) -> None:
        self._alarm(item.body.node, item.body.agent, item.body.seq)

    def _alarm(self, node: bytes, agent: str, number: int) -> None:
        self._out.append(Emit(events.CloneAlarm(node, agent, number)))

    def _kept(self, now: Now, old: Held | None, new: Item) -> None:
        """A frame of somebody else was newly kept."""
        self._clones.kept(old.item if old is not None else None, new)
        if old is not None and place_of(old.item.body) != place_of(new.body):
            self._neighbours.changed(now, new.slot)

    def _reachable(self, now: Now) -> None:
        self._readiness.check(now)
        if len(self._peers.table):
            self._peers.announce(now)
            self._joining.search(now)

    def _moved(self, now: Now) -> None:
        """Peers see us elsewhere: whoever has our old place gets the new one."""
        self._joining.refresh(now)
        self._issue_all(now)

    def _clock_right(self, now: Now) -> None:
        self._issue_all(now)

    def _filled(self, now: Now) -> None:
        self._readiness.filled(now)
        self._publisher.pump(now)

    def _compared(self, now: Now) -> None:
        self._readiness.check(now)

    def _status(self) -> tuple[int, bool, bool]:
        return self._peers.table.good, self._reach.proven, self._neighbours.compared

    # -- now and then

    def _look_after(self, now: Now) -> None:
        """Twice a minute: forget what expired, ask one peer, write the good ones down."""
        self._agenda.at(now.boot + limits.DHT_SAVE_PEERS_S, self._look_after)
        self._store.expire(now)
        self._peers.refresh_one(now)
        self._peers.save()
        self._publisher.pump(now)
        good = self._peers.table.good
        if good != self._told_good:
            self._told_good = good
            self._out.append(Emit(events.PeersChanged(good)))

    def _look_around(self, now: Now) -> None:
        self._agenda.at(now.boot + self._spread(limits.DHT_REFRESH_S), self._look_around)
        self._joining.look_around(now)
        self._neighbours.compare_all(now)
        self._keeper.check(now)

    def _refresh(self, now: Now) -> None:
        self._calls.abandon(now)
        self._joining.refresh(now)
        self._issue_all(now)

    def _issue_all(self, now: Now) -> None:
        self._publisher.issue_all(now)
        self._tell_own(now)

    def _tell_own(self, now: Now) -> None:
        for item in self._publisher.own:
            self._neighbours.changed(now, item.slot)

    def _spread(self, seconds: float) -> float:
        return seconds * self._rng.uniform(0.8, 1.2)


def _own_item(frame: bytes) -> Item:
    """A frame our own side wants put. Raises UsageError('bad-frame')."""
    try:
        return item_of(frame)
    except PeerError as fault:
        raise UsageError("bad-frame", f"no record or pointer: {fault.code}", "seal it first") from None
