"""One node: opens everything, wires it, closes it in order.

async with Node(config) as node: await node.run_until_stopped()

UDP ──┐                      ┌── dht machine ──── Directory ── Finder, publishing
      ├── Switch ── Driver ──┼── gossip machine ─ Blobs, channels
links ┘                      └── teams machine ── Teamwork ── Jobs ── agents
                                                    └── Goals <── control socket <── command line
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

from ioa_p2p.adapters import registry
from ioa_p2p.crypto.box import Boxes
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import events as dht_events
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.effects import Rows, Save
from ioa_p2p.errors import NetError, PeerError, StorageError, UsageError
from ioa_p2p.gossip import events as gossip_events
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.llm.port import Model
from ioa_p2p.mind.meaning import Meaning, load
from ioa_p2p.net.ports import Datagrams, LinkDown, Links, LinkUp, RelayDown, RelayTerms, RelayUp
from ioa_p2p.net.udp import UdpDatagrams
from ioa_p2p.node import clock, life, planning, relays, telling
from ioa_p2p.node.access import Access
from ioa_p2p.node.alarms import Alarms
from ioa_p2p.node.answer import Answer, answer_of, is_match
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.node.config import Config, reloaded
from ioa_p2p.node.describing import Describing
from ioa_p2p.node.dialable import dialable
from ioa_p2p.node.directory import Directory
from ioa_p2p.node.experience import Experience
from ioa_p2p.node.finder import Means, Search
from ioa_p2p.node.goals import Goals
from ioa_p2p.node.handing_over import hand_over
from ioa_p2p.node.hits import Hit
from ioa_p2p.node.jobs import Jobs
from ioa_p2p.node.keeping import Keeping, encoded
from ioa_p2p.node.letters import Letters
from ioa_p2p.node.local import LocalDirectory
from ioa_p2p.node.memory import Memory, count_start, open_memory
from ioa_p2p.node.neighbourhood import Neighbourhood
from ioa_p2p.node.nests import Nests
from ioa_p2p.node.publishing import FEATURES, Publishing
from ioa_p2p.node.query import Query
from ioa_p2p.node.relays import Relays
from ioa_p2p.node.roster import Offers
from ioa_p2p.node.runtime import Committer, Driver
from ioa_p2p.node.sense import Sense
from ioa_p2p.node.silence import Silence
from ioa_p2p.node.story import Stories, Story
from ioa_p2p.node.switch import Switch
from ioa_p2p.node.teamwork import Teamwork
from ioa_p2p.node.trust import Acquaintances, Past
from ioa_p2p.storage.base import Storage
from ioa_p2p.team import events, tasks, timing
from ioa_p2p.team.commands import CancelTeam
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.queue import Queue
from ioa_p2p.version import SOFTWARE
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact
from ioa_p2p.wire.link import VERSION, Hello
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance

PORT_TRIES = 8  # a free UDP port whose TCP twin is taken is given back, and another tried
JOIN_WAIT_S = 10.0  # a goal or a search that comes before the node has joined waits so long
RANK_S = 1.0  # for ranking what was found, with a model; kept back from a search's time
OVERTIME_S = 30.0  # a team ends by its deadline; one that cannot (the disk filled up) is not waited for much longer
LAST_PORT = ("node", b"port")  # the row that keeps it
PROFILES = {"lan": tasks.LAN, "wan": tasks.WAN, "battery": tasks.WAN}

log = logging.getLogger(__name__)


class Node:
    """config: what it is told. storage, datagrams, links: ready parts instead of the usual ones (tests).
    meaning: loads the index model, or gives None; called on a thread of its own. model: who plans, if not as told."""

    def __init__(
        self,
        config: Config,
        *,
        storage: Storage | None = None,
        datagrams: Datagrams | None = None,
        links: Links | None = None,
        meaning: Callable[[], Meaning | None] = load,
        model: Model | None = None,
    ) -> None:
        self.config = config
        self.started = time.time()
        self.ready = asyncio.Event()
        self.health: StorageError | None = None
        self.alarms = Alarms()
        self.stories = Stories()
        self.stopping = asyncio.Event()
        self.model = model or planning.model_of(config, os.environ)
        self.sense = Sense(meaning if config.meaning else lambda: None)  # None: by the owner's wish
        self._parts = (storage, datagrams, links)
        self._stack = AsyncExitStack()
        self._pursuits: set[asyncio.Task[None]] = set()

    # -- life

    async def __aenter__(self) -> "Node":
        """Raises UsageError, StorageError or NetError with a hint; whatever was opened is closed again."""
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run_until_stopped(self) -> None:
        await self.stopping.wait()

    async def _open(self) -> None:
        config = self.config
        self._stack.enter_context(config.home.lock())
        self.key = NodeKey(config.home.read_key())
        self.network = ids.network_id(config.mesh)
        given = self._parts[0]
        self.memory = Memory(given) if given else open_memory(config.home.database, self.key.node)
        self.storage = self.memory.storage
        self._stack.callback(self.storage.close)
        for loss in self.memory.losses:
            self.alarms.ours(loss.text, loss.hint)
        self.life = life.begin(self.storage)
        self._stack.callback(lambda: life.end(self.storage, self.life))
        self.committer = Committer(self.storage, self._on_health)
        self._stack.push_async_callback(self.committer.aclose)
        self.boot = count_start(self.storage, int(self.started * 1_000))
        await self._start_agents()
        await self._stack.enter_async_context(planning.opened(self.model))
        try:
            await self._open_net()
            self._start_machines()
        except PeerError as fault:  # nobody else has spoken yet: it is a row of ours
            hint = "move the file away: the node then asks its peers for its teams, and votes in none of them"
            raise StorageError("damaged", f"{config.home.database}: {fault}", hint) from None
        self._join()

    async def _start_agents(self) -> None:
        tables = {name: {"adapter": one.adapter, **one.options} for name, one in self.config.agents.items()}
        self.agents = await registry.start_all(tables)
        for name, fault in self.agents.failures.items():
            log.error("agent %s did not come up: %s (%s)", name, fault, fault.hint)
        for adapter in self.agents.adapters.values():
            self._stack.push_async_callback(adapter.aclose)

    # -- the net

    async def _open_net(self) -> None:
        """UDP and TCP on one port number, unless told otherwise. Machines are made first: bytes come at once.

        Without a port in the config it is the last one again if that is free, so that others still find us.
        """
        last = int.from_bytes(self.storage.get(*LAST_PORT) or b"")
        for attempt in range(PORT_TRIES):
            port = self.config.dht_port or (0 if attempt else last)
            datagrams = self._parts[1] or UdpDatagrams(self.config.dht_host, port)
            try:
                await datagrams.open(lambda batch: self.switch.on_datagrams(batch))
                links = self._parts[2] or self._links(datagrams.endpoint.port)
                self._build(datagrams, links)
                await links.open(self.switch.on_events)
            except NetError:
                await datagrams.aclose()
                if self.config.dht_port or self.config.link_port or attempt + 1 == PORT_TRIES:
                    raise
                continue
            self._stack.push_async_callback(datagrams.aclose)
            self._stack.push_async_callback(links.aclose)
            with suppress(StorageError):  # a full disk keeps nobody from starting
                self.storage.commit([Save(*LAST_PORT, datagrams.endpoint.port.to_bytes(2))])
            return

    def _links(self, port: int) -> Links:
        from ioa_p2p.net.libp2p import Libp2pLinks  # only here: tests over memory need no libp2p

        config = self.config
        terms = RelayTerms(config.relay_reservations_max, config.relay_bytes_max, config.relay_s_max)
        features = (*FEATURES, relays.FEATURE) if config.relay else FEATURES
        hello = Hello(VERSION, self.network, self.boot, SOFTWARE, features)
        link_port = config.link_port or port
        relay = terms if config.relay else None
        return Libp2pLinks(self.key.seed, hello, random.Random(), config.link_host, link_port, relay)

    def _build(self, datagrams: Datagrams, links: Links) -> None:
        """Machines, their drivers, and everything that listens to them."""
        self.datagrams, self.links = datagrams, links
        self.switch = Switch(Boxes(self.key, self.network), datagrams, links)
        self.dht = DhtMachine(self.key, self.network, self.rows, random.Random(), self.boot)
        self.gossip = GossipMachine(self.key, self.network, self.rows, random.Random())
        profile = self.config.profile
        self.queue = Queue(self.config.tasks_max, self.config.tasks_per_requester_max, self.key.node)
        self.teams = Teams(
            self.key,
            self.network,
            self.rows,
            random.Random(),
            lambda: frozenset({self.key.node, *self.config.allow}),
            PROFILES[profile],
            timing.PROFILES[profile],
            self.queue,
            self.life,
        )
        driver = partial(Driver, committer=self.committer, clock=clock.now)
        self.dht_driver = driver(self.dht, send=self.switch.send_dht, emit=self._on_dht)
        self.gossip_driver = driver(self.gossip, send=self.switch.send_gossip, emit=self._on_gossip)
        self.teams_driver = driver(self.teams, send=self.switch.send_teams, emit=self._on_teams)
        self.switch.plug(self.dht_driver, self.gossip_driver, self.teams_driver)
        self.switch.on_link.append(self._on_link)
        self.switch.on_relay.append(self._on_relay)
        self._build_services()

    def _build_services(self) -> None:
        self.directory = Directory(self.dht, self.dht_driver)
        self.keeping = Keeping(self.config.home.directory, self._standing, self.alarms.ours)
        self.publishing = Publishing(
            self.key.node, self.agents.cards, self.config.ttl_s, self.dht_driver, self.directory, self.keeping,
            self.sense, lambda: self.addresses,
        )  # fmt: skip
        self.silence = Silence()
        self.switch.on_heard = self.silence.heard
        self.neighbourhood = Neighbourhood(self.links, lambda: self.dht.contacts, self.silence)
        link_port = self.config.link_port or self.datagrams.endpoint.port
        self.access = Access(
            self.config, self.key.node, self.storage, self.dht_driver, self.datagrams, link_port, self.neighbourhood,
            lambda: self.addresses, self._offer,
        )  # fmt: skip
        self.relays = Relays(
            self.links, self.neighbourhood.up, lambda: self.ready.is_set() and self.dht.is_client,
            lambda node: any(contact.key == node for contact in self.dht.contacts), self._on_address_change,
        )  # fmt: skip
        self.blobs = Blobs(self.gossip_driver, self.rows)
        past = Past(self.rows)
        self.trust = Acquaintances(self.key.node, self.config.allow, past)
        self.experience = Experience(
            self.key.node, past, self.teams.teams, lambda saves: self.committer.submit(saves, lambda: None)
        )
        self.letters = Letters(
            self.key.node, self.rows, self.teams.teams, lambda saves: self.committer.submit(saves, lambda: None)
        )
        self.describing = Describing(lambda: self.links.peers, self.keeping.undescribed, self.directory.card)
        self.keeping.on_written = self.describing.look
        self.local = LocalDirectory(self.publishing.records, self.keeping.find, self.directory.kept_card)
        self.offers = Offers(self.key.node, self.agents, self.config)
        planner = planning.planner_of(self.model)
        self.teamwork = Teamwork(
            self.key.node, self.teams, self.teams_driver, self.gossip_driver, self.neighbourhood, planner, self.blobs,
            self.stories, self.agents.cards, self.config.home.reports,
        )  # fmt: skip
        self.jobs = Jobs(self.teams_driver, self.blobs, self.agents.adapters, self.agents.concurrency, self._offer)
        self.teamwork.jobs = self.jobs
        self.goals = self.teamwork.goals = Goals(
            self.teams_driver, planner, self.stories, partial(self.new_search, thorough=True),
            lambda: self.offers.me(self.addresses), lambda: frozenset(self.config.allow),
            lambda: self.neighbourhood.witnesses(self.config.witness),
        )  # fmt: skip
        self.nests = Nests(self.teams_driver, self.goals, self.blobs, self.stories, self.config.agents, self.joined)

    def _start_machines(self) -> None:
        self.keeping.start(self.key.node, self.agents.cards)
        self._stack.push_async_callback(self.keeping.aclose)
        self._stack.callback(self.describing.close)
        for driver in (self.dht_driver, self.gossip_driver, self.teams_driver):
            self._stack.callback(driver.close)
        self._stack.push_async_callback(self.teamwork.aclose)
        self._stack.push_async_callback(self.nests.aclose)
        self._offer()
        for driver in (self.dht_driver, self.gossip_driver, self.teams_driver):
            driver.start()
        self.sense.start(self._on_model)
        self._stack.push_async_callback(self.sense.aclose)
        self._stack.push_async_callback(self.publishing.aclose)
        self.neighbourhood.start()
        self._stack.callback(self.neighbourhood.close)
        self.relays.start()
        self._stack.callback(self.relays.close)

    def _join(self) -> None:
        self.publishing.publish_all()
        self._stack.push_async_callback(self.access.aclose)
        self.access.open()
        self._stack.push_async_callback(self.publishing.leave)
        self._stack.push_async_callback(hand_over, self.teams, self.teams_driver)

    def reload(self, read: Config) -> None:
        """Take over what may change while we run; what may not is told, and counts from the next start."""
        self.config, waiting = reloaded(self.config, read)
        self.queue.resize(self.config.tasks_max, self.config.tasks_per_requester_max)
        self.trust.granted = frozenset(self.config.allow)
        self.access.follow(self.config)
        log.info("read the configuration again")
        if waiting:
            log.warning("changed in the configuration, but counts only from the next start: %s", ", ".join(waiting))

    # -- what others may ask of the node

    @property
    def reachable(self) -> bool:
        """Whether strangers reach us, as far as it is known by now."""
        return self.dht.is_reachable

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where our links are dialled: our own addresses, then those through relays; as many as a record holds."""
        relayed = self.relays.addresses
        return (*self.links.addresses[: limits.RECORD_ADDRESSES_MAX - len(relayed)], *relayed)

    @property
    def rows(self) -> Rows:
        return lambda space: list(self.storage.scan(space))

    @property
    def seed(self) -> Contact:
        """The line others join by."""
        endpoint = self.datagrams.endpoint
        return Contact(self.key.node, dialable(endpoint.host, self.links.addresses), endpoint.port)

    async def new_search(
        self, query: Query, on_hit: Callable[[Hit], None] = lambda _: None, *, thorough: bool = False
    ) -> Search:
        """A search that is not begun. thorough: it leads to an assignment."""
        aspect = await self.sense.aspect(query.text, limits.FIND_CELLS_MAX)
        means = Means(
            self.directory, self.neighbourhood, self.local, self.trust, self.experience.load, self.silence
        )  # fmt: skip
        return Search(means, query, aspect, on_hit, thorough=thorough)

    async def rank(self, search: Search, wait_s: float = RANK_S) -> Answer:
        """What it found, in order; by words alone if the model takes longer than `wait_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                return await self.sense.call(answer_of, search, self.sense.model)
        return answer_of(search, None)

    async def is_match(self, search: Search, hit: Hit) -> bool:
        """Whether a hit of this search has to do with what it looks for."""
        return await self.sense.call(is_match, search, self.sense.model, hit)

    def ask(
        self, goal: str, goal_s: float, budget: Allowance | None = None, key: str = "", witnesses: Sequence[bytes] = ()
    ) -> Story:
        """Begin a goal, under its client's key, with one of `witnesses`. Raises UsageError('busy'), StorageError."""
        if self.health is not None:
            raise self.health
        if len(self._pursuits) >= limits.LAUNCHES_MAX:
            raise UsageError("busy", f"{len(self._pursuits)} goals look for their team", "try again later")
        story = self.goals.begin(goal, key, self.neighbourhood.witnesses(witnesses))
        asyncio.get_running_loop().call_later(goal_s + OVERTIME_S, self._end_overtime, story)
        pursuit = asyncio.create_task(self._pursue(story, goal_s, budget or Caps().budget))
        self._pursuits.add(pursuit)
        pursuit.add_done_callback(self._pursuits.discard)
        return story

    async def joined(self) -> None:
        """Until the node is ready, or tried for long: a search in the first moment after the start finds nobody."""
        with suppress(TimeoutError):
            async with asyncio.timeout(JOIN_WAIT_S):
                await self.ready.wait()

    def give_up(self, story: Story, outcome: str, answer: str = "") -> None:
        """End a goal that has no team yet, or whose team cannot end it. The first end stands."""
        story.end({"team": story.team.hex(), "outcome": outcome, "answer": answer, "files": [], "credits": []})
        with suppress(UsageError):
            self.teams_driver.command(CancelTeam(story.current))

    def _end_overtime(self, story: Story) -> None:
        if story.result is None:
            self.give_up(story, "expired")

    def _end_unsaved(self, fault: StorageError) -> None:
        """A launch that cannot be written down ends now, not by its deadline: nobody was asked yet."""
        for story in self.stories.all():
            if not story.is_founded:
                self.give_up(story, "failed", f"The goal was not begun: {fault} ({fault.hint}).")

    async def _pursue(self, story: Story, goal_s: float, budget: Allowance) -> None:
        await self.joined()
        await self.goals.pursue(story, goal_s, budget)

    def _on_model(self) -> None:
        """There is a model now."""
        model = self.sense.model
        assert model is not None
        self.publishing.read()
        self.keeping.mean_by(model.model, partial(self.sense.call, encoded, model))

    def _standing(self, node: bytes, agent: str) -> int:
        """How late an agent makes room for others in the directory."""
        return (node == self.key.node) + (node in self.config.allow)

    def _offer(self) -> None:
        """Tell the team machine which of our agents may be called, and how busy they are."""
        self.teams_driver.command(self.offers.offer(self.addresses, self.jobs.load))

    # -- events

    def _on_link(self, event: LinkUp | LinkDown) -> None:
        self.neighbourhood.on_link(event)
        self.relays.choose()
        if isinstance(event, LinkUp):
            self.describing.up(event.peer)
        word = f"up ({event.address})" if isinstance(event, LinkUp) else f"down ({event.reason})"
        log.debug("link to %s is %s", ids.node_short(event.peer), word)

    def _on_relay(self, event: RelayUp | RelayDown) -> None:
        word = "passes links on to us" if isinstance(event, RelayUp) else f"does not relay for us ({event.reason})"
        log.info("%s %s", ids.node_short(event.peer), word)
        self.relays.on_event(event)

    def _on_address_change(self) -> None:
        """Whoever looks us up, or calls us into a team, must get the new addresses."""
        self.publishing.publish_all()
        self._offer()

    def _on_dht(self, event: Any) -> None:
        if self.directory.on_event(event):
            return
        match event:
            case dht_events.Filled():
                self.neighbourhood.choose()
            case dht_events.Ready(peers, reachable, _):
                self.ready.set()
                self.relays.choose()
                log.info("ready: %d peers, %s", peers, "reachable" if reachable else "not reachable by strangers")
            case dht_events.Heard(record, frame):
                self.neighbourhood.news(record)
                self.keeping.heard(record, frame)
            case dht_events.CardHeard(card_hash, card):
                self.keeping.card(card_hash, card)
            case dht_events.Published() | dht_events.Queued():
                self.publishing.on_event(event)
            case dht_events.CloneAlarm(node, agent, seq):
                what = f"records of its agent {agent} up to number {seq}" if agent else f"a link of its start {seq}"
                self._on_clone(node, f"two nodes use the key of {ids.node_short(node)}, a copy? seen by {what}")
            case dht_events.ClockDoubted(offset_s):
                told = f"our clock is {offset_s:+.0f} s from our peers: nothing is published until it is set"
                self.alarms.ours(told, "set the clock of this machine")
            case dht_events.ClockTrusted():
                log.info("our clock agrees with our peers' again; publishing anew")
            case _:
                pass

    def _on_gossip(self, event: Any) -> None:
        if self.blobs.on_event(event):
            return
        match event:
            case gossip_events.Refused(_, code):
                self.gossip_driver.faults[code] += 1
            case gossip_events.Forked(_, author, seq):
                told = f"{ids.node_short(author)} signed two histories of its talk; it counts up to line {seq}"
                way_out = "form the team anew; if another node runs with this key, stop one of them"
                self.alarms.ours(told, way_out) if author == self.key.node else self.alarms.of(author, told)
            case gossip_events.Gap(team):
                self.stories.of(team).tell(telling.gap(event))
            case gossip_events.Said(team, late=True):
                self.stories.of(team).tell(telling.filled(event))
            case gossip_events.Behind(_, node, True):
                log.info("%s does not keep up with the talk; it will be repaired", ids.node_short(node))
            case _:
                pass

    def _on_teams(self, event: Any) -> None:
        if isinstance(event, events.MemoryLost):
            told = f"this node forgot a part of team {event.team.hex()[:8]} ({event.what}); it does not vote there"
            self.alarms.ours(told, "nothing: it learns from the others. Was the data folder put back from a backup?")
        for listener in (self.experience, self.letters, self.nests, self.teamwork):
            listener.on_event(event)

    def _on_health(self, fault: StorageError | None) -> None:
        if (self.health is None) != (fault is None):
            told = f"the disk refuses: {fault}; nothing is sent until it works" if fault else "disk works"
            log.log(logging.ERROR if fault else logging.INFO, told)
        self.health = fault
        if fault is not None:
            self._end_unsaved(fault)

    def _on_clone(self, node: bytes, text: str) -> None:
        if node == self.key.node:
            self.alarms.ours(text, "a key lives on one device: stop the other node, or make it a new key")
        else:
            self.alarms.of(node, text)
