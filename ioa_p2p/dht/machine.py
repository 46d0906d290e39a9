"""The DHT machine: a node's part in the mesh's directory. Pure; composed of one noun a file.

    Contact + datagram ──> Holder answers | Calls match ──> Search, Put, Joining, Publisher ──> Send, Save
    node key + directory message ──> Neighbours, Cards                                      ──> Send
    command ──> Joining, Publisher, searches ──> events (events.py)        one timer ──> Agenda ──> all deadlines

`handle_message(now, peer, message)`: peer is a Contact for a `wire.dht.Datagram` (key proven by the box, endpoint as
the datagram came), a node key (32 B) for a `wire.dht.Directory` message. Sends are addressed likewise.
"""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands, events
from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.budget import Requests
from ioa_p2p.dht.calls import Calls
from ioa_p2p.dht.cards import Cards
from ioa_p2p.dht.clock import Clock
from ioa_p2p.dht.clones import Clones
from ioa_p2p.dht.holder import Holder
from ioa_p2p.dht.join import Joining
from ioa_p2p.dht.keeper import Keeper
from ioa_p2p.dht.neighbours import Neighbours
from ioa_p2p.dht.peers import Peers
from ioa_p2p.dht.probe import Probes
from ioa_p2p.dht.publisher import Publisher
from ioa_p2p.dht.queries import Queries
from ioa_p2p.dht.reach import Reach
from ioa_p2p.dht.readiness import Readiness
from ioa_p2p.dht.records import Gate, place_of
from ioa_p2p.dht.region import Density
from ioa_p2p.dht.search import Means
from ioa_p2p.dht.store import Held, Item, Store
from ioa_p2p.dht.tokens import Tokens
from ioa_p2p.effects import Effect, Emit, Now, Rows, Send
from ioa_p2p.errors import UsageError
from ioa_p2p.wire import dht as wire
from ioa_p2p.wire import limits
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
        self._cards = Cards(self._agenda, self._out)
        self._means = Means(
            self._calls, self._peers, self._store, self._gate, self._agenda, self.faults, density, self._cards
        )
        self._holder = Holder(self._peers, self._store, self._gate, Tokens(rng), self._cards, self.faults)
        self._reach = Reach(rng, self._calls, self._peers, self._out, self._reachable, self._moved)
        self._clock = Clock(self._agenda, self._out, lambda now: self._peers.ask_some(now, rng), self._issue_all)
        self._joining = Joining(self._means, rng, self._filled)
        self._readiness = Readiness(self._agenda, self._out, self._status)
        self._neighbours = Neighbours(self._store, self._gate, self._agenda, self._out, self.faults, self._compared)
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
        self._queries = Queries(self._means, rng, self._out, lambda: self._reach.seen)
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
        self._clock.check(now)
        if self._agenda.late_s(now.boot) > limits.DHT_JUMP_S:
            self._refresh(now)
        self._agenda.run(now)
        return self._effects()

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        self._clock.check(now)
        match command:
            case commands.Join(seeds, peers):
                self._joining.join(now, seeds, peers)
            case commands.Publish():
                self._publisher.publish(now, command)
                self._tell_own(now)
            case commands.Withdraw(agent):
                self._publisher.withdraw(now, agent)
                self._tell_own(now)
            case commands.Leave():
                self._publisher.leave(now)
                self._tell_own(now)
                self._neighbours.tell_news(now)
            case commands.Moved(addresses, endpoint):
                self._publisher.move(addresses, endpoint)
                self._refresh(now)
            case commands.Probe(request, contact):
                self._probes.probe(now, request, contact)
            case commands.SearchRecord() | commands.FetchRecord() | commands.SearchPointers() | commands.PutFrame():
                self._queries.ask(now, command)
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
    def is_reachable(self) -> bool:
        """It is proven that strangers reach us."""
        return self._reach.proven

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
        """A bad answer is none: all of it is read before its call is taken out, or the asker would wait for ever."""
        seen = wire.unpack_endpoint(answer.seen) if isinstance(answer, wire.Pong) else None
        call = self._calls.match(peer, answer)
        self._calls.heard(now, call)
        if isinstance(answer, wire.Pong) and seen is not None:
            self._clock.heard(now, peer, answer.wall)
            self._reach.pong(now, peer, seen)
        alone = not self._peers.table.good
        self._peers.proven(now, peer, answer.client)
        if alone and self._peers.table.good:
            self._publisher.hurry()
            self._joining.met(now, peer)
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

    # -- what the parts tell each other

    def _entered(self, now: Now, contact: wire.Contact) -> None:
        self._keeper.entered(now, contact)

    def _missed(self, contact: wire.Contact, blamed: bool) -> None:
        self._peers.missed(contact, blamed)

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

    def _filled(self, now: Now) -> None:
        if self._peers.table.good:
            self._out.append(Emit(events.Filled()))
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
