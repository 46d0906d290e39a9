"""A team's channel in the seeded world: what must hold at every event, and the runs that try to break it.

    run(seed) ──> a team of 3..12, bad weather, cuts, splits, crashes ──> heal ──> all logs equal within 60 s

`run` raises AssertionError when a rule is broken. MUTANTS are planted faults: each must make some run fail.
Long because: rules, runs and planted faults of one machine are read together.
"""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.effects import Effect, Now, Rows, Send, SetTimer
from ioa_p2p.errors import UsageError
from ioa_p2p.gossip.channel import Channel
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Say
from ioa_p2p.gossip.events import Behind, Forked, Said
from ioa_p2p.gossip.log import Chain, Judgement
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.gossip.order import Order
from ioa_p2p.gossip.reach import Reach
from ioa_p2p.wire import limits
from ioa_p2p.wire.frames import Frame
from ioa_p2p.wire.gossip import Entries, Entry, Frontier, Head, Held, Want
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NETWORK, NODES, TEAM, chain, signed
from tests.sim.world import Weather, World

HEAL_S = 60.0
REPAIR_ON_CONNECT_S = 10.0
DEAF_ENTRIES = limits.CHAT_UNANSWERED_MAX + 60


class Team:
    """Members 0..size-1 in a world, with links that go up and down, and checks at every event."""

    def __init__(self, seed: int, size: int, weather: Weather | None = None, liars: int = 0) -> None:
        self.world = World(seed, weather)
        self.nodes = NODES[:size]
        self.honest = self.nodes[: size - liars]
        self.up: set[tuple[bytes, bytes]] = set()
        self.said: dict[bytes, dict[bytes, int]] = {node: {} for node in self.honest}
        self.lines: dict[tuple[bytes, int], Entry] = {}
        self.forks: dict[bytes, dict[bytes, int]] = {node: {} for node in self.honest}
        self.causal = True
        self.world.on_event.append(self._check)
        for node in self.honest:
            self.world.add(node, make)
            self.world.command(node, OpenChannel(TEAM, tuple(self.nodes)))
        for number in range(size - liars, size):
            self.world.add(NODES[number], lambda address, rows, dice, now: Liar(self, address, dice))

    # -- links

    def link(self, a: bytes, b: bytes, up: bool = True) -> None:
        pair = (min(a, b), max(a, b))
        if up == (pair in self.up):
            return
        (self.up.add if up else self.up.discard)(pair)
        for one, other in ((a, b), (b, a)):
            if one in self.honest:
                self.world.command(one, LinkPeer(other, up))

    def link_all(self) -> None:
        for i, a in enumerate(self.nodes):
            for b in self.nodes[i + 1 :]:
                self.link(a, b)

    def crash(self, node: bytes) -> None:
        """The process dies: its links go down at the others."""
        self.world.crash(node)
        for other in self.nodes:
            if other != node:
                self.link(node, other, False)

    def restart(self, node: bytes) -> None:
        self.world.restart(node)
        for other in self.nodes:
            if other != node and self.world.hosts[other].machine is not None:
                self.link(node, other)

    def say(self, node: bytes, body: bytes = b"") -> None:
        if self.world.hosts[node].machine is None:
            return
        try:
            self.world.command(node, Say(TEAM, "text", body or b"at %f" % self.world.time_s))
        except UsageError as fault:
            raise AssertionError(f"an honest member may not speak: {fault.code}") from fault

    # -- what must hold at every event

    def _check(self, world: World, node: Any, event: Any) -> None:
        if isinstance(event, Forked):
            self.forks[node][event.author] = event.seq
        if not isinstance(event, Said):
            return
        said, entry = self.said[node], event.entry
        assert (event.team, event.author, event.seq) == (TEAM, entry.node, entry.seq)
        assert entry.node in self.nodes, "an entry of somebody who is no member"
        assert entry.seq == said.get(entry.node, 0) + 1, f"said {entry.seq} after {said.get(entry.node, 0)}"
        if entry.node in self.honest:
            known = self.lines.setdefault((entry.node, entry.seq), entry)
            assert known == entry, "one number, two lines"
        if self.causal:
            for author, seq in entry.seen:
                ends = self.forks[node].get(author)
                met = said.get(author, 0) >= seq or (ends is not None and seq > ends)
                assert met, "an entry before what its author had seen"
        said[entry.node] = entry.seq

    # -- progress, asserted only after the faults stop

    def equal(self) -> bool:
        """Whether every live member has said the same lines of every honest author."""
        want = {author: max((seq for a, seq in self.lines if a == author), default=0) for author in self.honest}
        live = [node for node in self.honest if self.world.hosts[node].machine is not None]
        return all(self.said[node].get(author, 0) == seq for node in live for author, seq in want.items())

    def heal(self) -> None:
        self.world.weather = Weather()
        self.world.mend()
        for node in self.honest:
            if self.world.hosts[node].machine is None:
                self.restart(node)
        self.link_all()

    def assert_equal_within(self, seconds: float) -> None:
        assert self.world.run(seconds, until=self.equal), f"logs differ after {seconds} s: {self.said}"


def make(address: Any, rows: Rows, dice: random.Random, now: Now) -> GossipMachine:
    return GossipMachine(KEYS[NODES.index(address)], NETWORK, rows, dice)


class Liar:
    """A member that forges, replays, forks, floods and claims what it does not have."""

    def __init__(self, team: Team, address: bytes, dice: random.Random) -> None:
        self._team, self._me, self._dice = team, address, dice
        self._key = KEYS[NODES.index(address)]
        self._heard: list[bytes] = []
        self._histories = [chain(self._key, 12, tag) for tag in (b"one ", b"two ")]

    def start(self, now: Now) -> list[Effect]:
        return [SetTimer("lie", now.boot + 0.5)]

    def handle_message(self, now: Now, peer: Any, message: Any) -> list[Effect]:
        if isinstance(message, Entries):
            self._heard.append(message.raw)
        return []

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        return []

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        lies = [self._forged, self._replayed, self._forked, self._foreign, self._claims, self._floods]
        message = self._dice.choice(lies)()
        return [Send(self._dice.choice(self._team.honest), message), SetTimer("lie", now.boot + 0.3)]

    def _victim(self) -> int:
        return self._dice.randrange(len(self._team.honest))

    def _forged(self) -> Any:
        """The next entry of an honest author, signed by the liar's key or by nobody."""
        victim = KEYS[self._victim()]
        seq = max((s for a, s in self._team.lines if a == victim.node), default=0) + 1
        raw = bytearray(signed(victim, seq, body=b"forged"))
        raw[-1] ^= 1
        return Entries(bytes(raw))

    def _replayed(self) -> Any:
        return Entries(self._dice.choice(self._heard)) if self._heard else self._claims()

    def _forked(self) -> Any:
        history = self._dice.choice(self._histories)
        return Entries(b"".join(history[: self._dice.randint(1, len(history))]))

    def _foreign(self) -> Any:
        return Entries(signed(KEYS[15], 1, body=b"no member"))

    def _claims(self) -> Any:
        """Far more of everybody than there is, with hashes of nothing."""
        many = 10**12
        if self._dice.random() < 0.5:
            return Held(TEAM, tuple((member, author, many) for member in NODES[:3] for author in NODES[:3]))
        heads = tuple(Head(node, self._dice.choice((1, 2, many)), bytes(8), True) for node in self._team.nodes)
        return Frontier(TEAM, heads)

    def _floods(self) -> Any:
        return Want(TEAM, NODES[self._victim()], 1, 10**12)


# -- random runs


def run(seed: int, seconds: float = 40.0) -> Team:
    """One seeded life of a team, checked all the way. Raises AssertionError."""
    dice = random.Random(f"gossip/{seed}")
    liars = dice.choice((0, 0, 1))
    size = dice.choice((3, 3, 4, 5, 6, 8, 12)) + liars
    weather = Weather(dice.choice((0, 0.05, 0.2)), dice.choice((0, 0.1)), (0.001, dice.choice((0.02, 0.3))))
    team = Team(seed, size, weather, liars)
    team.link_all()
    happenings = _happenings(team, dice)
    for _ in range(int(seconds * 1.5)):
        team.world.at(dice.uniform(0, seconds), dice.choice(happenings))
    team.world.run(seconds)
    team.heal()
    team.assert_equal_within(HEAL_S)
    if liars:
        _assert_forks_agree(team)
    return team


def _assert_forks_agree(team: Team) -> None:
    """Whoever knows of a fork, all do, and all count the same entries."""
    known = [forks for forks in team.forks.values() if forks]
    if known:
        assert team.world.run(HEAL_S, until=lambda: len({tuple(f.items()) for f in team.forks.values()}) == 1), (
            f"members disagree on a fork: {team.forks}"
        )


def _happenings(team: Team, dice: random.Random) -> list[Callable[[], None]]:
    world = team.world

    def anybody() -> bytes:
        return dice.choice(team.honest)

    def say() -> None:
        team.say(anybody())

    def crash() -> None:
        node = anybody()
        if world.hosts[node].machine is not None:
            team.crash(node)
            world.after(dice.uniform(0.5, 15.0), lambda: team.restart(node))

    def cut() -> None:
        a, b = anybody(), anybody()
        world.cut(a, b)
        world.after(dice.uniform(1.0, 20.0), lambda: world.mend(a, b))

    def unlink() -> None:
        a, b = dice.sample(team.honest, 2)
        team.link(a, b, False)
        world.after(dice.uniform(1.0, 20.0), lambda: _relink(team, a, b))

    def split() -> None:
        nodes = dice.sample(team.nodes, len(team.nodes))
        half = dice.randrange(1, len(nodes))
        world.split(nodes[:half], nodes[half:])
        world.after(dice.uniform(3.0, 15.0), world.mend)

    return [*[say] * 14, crash, cut, unlink, unlink, split]


def _relink(team: Team, a: bytes, b: bytes) -> None:
    if team.world.hosts[a].machine is not None and team.world.hosts[b].machine is not None:
        team.link(a, b)


# -- directed runs: each is a schedule that random dice seldom throw


def run_away_and_back(seed: int, entries: int = 400) -> Team:
    """A member is away for hundreds of entries; on connect it has them all soon, without the 30 s timer."""
    team = Team(seed, 4)
    team.link_all()
    away = team.nodes[3]
    team.crash(away)
    for number in range(entries):
        team.world.after(number * 0.02, lambda: team.say(team.nodes[team.world.rng.randrange(3)]))
    team.world.run(entries * 0.02 + 5.0)
    team.restart(away)
    team.assert_equal_within(REPAIR_ON_CONNECT_S)
    return team


def run_restarts_and_replays(seed: int) -> Team:
    """Everything ever sent is injected again, ten minutes later and after a restart; nothing is said twice."""
    team = Team(seed, 3)
    team.link_all()
    for number in range(12):
        team.world.after(number * 0.1, lambda: team.say(team.world.rng.choice(team.nodes)))
    team.world.run(10.0)
    frames_of = {node: _saved_frames(team, node) for node in team.nodes}
    for wait_s, restarted in ((600.0, False), (1.0, True)):
        team.world.run(wait_s)
        for node in team.nodes:
            if restarted:
                team.crash(node)
                team.restart(node)
            for source in team.nodes:
                for raw in frames_of[source]:
                    _hear(team, node, source, Entries(raw))
    team.say(team.nodes[0])
    team.assert_equal_within(HEAL_S)
    return team


def run_forked_history(seed: int) -> Team:
    """An author tells two halves of the team two histories; all freeze it at the last common entry."""
    team = Team(seed, 4, liars=1)
    team.world.hosts[team.nodes[3]].machine = None
    team.link_all()
    histories = _two_histories(KEYS[3], common=3, length=6)
    for node, history in zip(team.honest, (histories[0], histories[1], histories[0][:4]), strict=True):
        for raw in history:
            _hear(team, node, team.nodes[3], Entries(raw))
    team.world.run(HEAL_S)
    assert team.forks == {node: {team.nodes[3]: 3} for node in team.honest}, team.forks
    before = dict(team.said[team.nodes[0]])
    _hear(team, team.nodes[0], team.nodes[3], Entries(b"".join(histories[0])))
    assert team.said[team.nodes[0]] == before, "a frozen author was heard"
    for node in team.honest:
        team.say(node)
    team.assert_equal_within(HEAL_S)
    return team


def run_fork_seen_by_one(seed: int) -> Team:
    """Only one member ever hears the second history: it gives the others the proof."""
    team = Team(seed, 4, liars=1)
    team.world.hosts[team.nodes[3]].machine = None
    one, two = _two_histories(KEYS[3], common=3, length=6)
    for node in team.honest:
        _hear(team, node, team.nodes[3], Entries(b"".join(one)))
    _hear(team, team.nodes[0], team.nodes[3], Entries(two[3]))
    team.link_all()
    team.world.run(HEAL_S)
    assert team.forks == {node: {team.nodes[3]: 3} for node in team.honest}, team.forks
    return team


def run_wrong_link(seed: int) -> Team:
    """An entry whose number fits but whose hash link does not is never said."""
    team = Team(seed, 3, liars=1)
    liar = KEYS[2]
    good = chain(liar, 2)
    for node in team.honest:
        _hear(team, node, liar.node, Entries(good[0]))
        _hear(team, node, liar.node, Entries(signed(liar, 2, bytes(32), b"unlinked")))
        assert team.said[node] == {liar.node: 1}, "an entry without its link was said"
    return team


def run_one_waits_for_another(seed: int) -> Team:
    """A reads B's line and answers; C hears the answer first and must wait for the line."""
    team = Team(seed, 3)
    a, b, c = team.nodes
    team.link_all()
    team.world.run(1.0)
    team.world.cut(b, c)
    for _ in range(10):
        team.say(b)
        team.world.run(0.5)
        team.say(a)
        team.world.run(0.5)
    team.world.mend()
    team.assert_equal_within(HEAL_S)
    return team


def run_one_never_reads(seed: int) -> Team:
    """One member takes nothing off its links: the others are not slowed; it catches up later."""
    team = Team(seed, 4)
    team.link_all()
    deaf = team.nodes[3]
    for other in team.nodes[:3]:
        team.world.cut(other, deaf)
    for number in range(DEAF_ENTRIES):
        team.world.after(number * 0.01, lambda: team.say(team.nodes[0]))
    team.world.run(DEAF_ENTRIES * 0.01 + 1.0)
    said = team.said[team.nodes[1]]
    assert said[team.nodes[0]] == team.said[team.nodes[0]][team.nodes[0]], "a deaf member slowed the others"
    behind = [event for _, _, event in team.world.events if isinstance(event, Behind)]
    assert behind == [Behind(TEAM, deaf, True)], "nobody was told that a member is behind"
    team.world.mend()
    team.assert_equal_within(HEAL_S)
    return team


def run_silent_cut(seed: int) -> Team:
    """Messages one way are lost while the link stands: the next frontier by the clock repairs it."""
    team = Team(seed, 3)
    team.link_all()
    team.world.run(5.0)
    team.world.split(team.nodes[:1], team.nodes[1:])
    for _ in range(5):
        team.say(team.nodes[0])
        team.say(team.nodes[1])
        team.world.run(1.0)
    team.world.mend()
    team.assert_equal_within(HEAL_S)
    return team


def run_in_a_line(seed: int) -> Team:
    """Members linked only to their neighbours in a line: a line reaches the far end in a moment."""
    team = Team(seed, 5)
    for one, other in itertools.pairwise(team.nodes):
        team.link(one, other)
    team.world.run(5.0)
    for node in team.nodes:
        team.say(node)
        team.assert_equal_within(1.0)
    return team


def _saved_frames(team: Team, node: bytes) -> list[bytes]:
    disk = team.world.hosts[node].disk
    prefix = f"chat/{TEAM.hex()}/{node.hex()}/"
    return [raw for space in disk.spaces(prefix) for _, raw in disk.scan(space)]


def _two_histories(key: Any, common: int, length: int) -> tuple[list[bytes], list[bytes]]:
    one = chain(key, length)
    two = one[:common]
    for seq in range(common + 1, length + 1):
        two = [*two, signed(key, seq, blake(two[-1]), b"another %d" % seq)]
    return one, two


def _hear(team: Team, node: bytes, source: bytes, message: Any) -> None:
    team.world._deliver(source, node, message)


RUNS: dict[str, Callable[[int], Team]] = {
    "random": run,
    "away": run_away_and_back,
    "replays": run_restarts_and_replays,
    "fork": run_forked_history,
    "secret": run_fork_seen_by_one,
    "link": run_wrong_link,
    "causal": run_one_waits_for_another,
    "deaf": run_one_never_reads,
    "silent cut": run_silent_cut,
    "line": run_in_a_line,
}


# -- planted faults: name -> (what is broken, how)

Plant = Callable[[pytest.MonkeyPatch], None]


def _no_signature_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(envelope, "check", lambda frame, network: None)


def _no_hash_link(patch: pytest.MonkeyPatch) -> None:
    judge = Chain.judge

    def blind(chain: Chain, entry: Entry, digest: bytes) -> Judgement:
        return Judgement.NEXT if entry.seq == chain.head + 1 else judge(chain, entry, digest)

    patch.setattr(Chain, "judge", blind)


def _no_fork_freeze(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Channel, "_freeze", lambda *_: [])


def _fork_kept_secret(patch: pytest.MonkeyPatch) -> None:
    """The one that sees two histories freezes, and gives nobody the proof."""
    freeze, answer = Channel._freeze, Channel.frontier

    def silent(effects: list[Effect]) -> list[Effect]:
        return [effect for effect in effects if not (isinstance(effect, Send) and isinstance(effect.message, Entries))]

    patch.setattr(Channel, "_freeze", lambda *args: silent(freeze(*args)))
    patch.setattr(Channel, "frontier", lambda *args: silent(answer(*args)))


def _chains_only_in_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Chain, "load", lambda chain: iter(()))


def _copies_not_known(patch: pytest.MonkeyPatch) -> None:
    """A copy of what is held is taken for the next entry."""
    judge = Chain.judge

    def forgetful(chain: Chain, entry: Entry, digest: bytes) -> Judgement:
        found = judge(chain, entry, digest)
        return Judgement.NEXT if found is Judgement.KNOWN else found

    patch.setattr(Chain, "judge", forgetful)


def _no_frontier_on_connect(patch: pytest.MonkeyPatch) -> None:
    relink = Channel.relink
    patch.setattr(Channel, "relink", lambda *args: relink(*args) and [])


def _no_frontier_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Channel, "_tell_later", lambda channel, now: [])


def _no_causal_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Order, "_has", lambda order, author, seq: True)


def _no_relay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reach, "relays", lambda reach, author, seq, source: [])


def _wants_never_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "CHAT_ANSWER_S", 10_000.0)


def _strangers_heard(patch: pytest.MonkeyPatch) -> None:
    """An author without a chain gets one."""
    accept = Channel.accept

    def open_door(channel: Channel, now: Now, peer: bytes, frame: Frame, entry: Entry) -> list[Effect]:
        channel._chains.setdefault(entry.node, Chain(TEAM, entry.node, channel._rows))
        return accept(channel, now, peer, frame, entry)

    patch.setattr(Channel, "accept", open_door)


def _deaf_pushed_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "CHAT_UNANSWERED_MAX", 10**9)


MUTANTS: dict[str, tuple[str, Plant]] = {
    "no signature check": ("random", _no_signature_check),
    "no hash link": ("link", _no_hash_link),
    "no fork freeze": ("fork", _no_fork_freeze),
    "fork kept secret": ("secret", _fork_kept_secret),
    "chains only in memory": ("replays", _chains_only_in_memory),
    "copies not known": ("random", _copies_not_known),
    "no frontier on connect": ("away", _no_frontier_on_connect),
    "no frontier by the clock": ("silent cut", _no_frontier_by_the_clock),
    "no causal order": ("causal", _no_causal_order),
    "no relay": ("line", _no_relay),
    "wants never repeated": ("random", _wants_never_repeated),
    "strangers heard": ("random", _strangers_heard),
    "deaf pushed for ever": ("deaf", _deaf_pushed_for_ever),
}


def caught(name: str, seeds: range) -> int | None:
    """The first seed whose run the planted fault breaks, or None if the checks miss it."""
    run_name, plant = MUTANTS[name]
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            try:
                RUNS[run_name](seed)
            except AssertionError:
                return seed
    return None
