"""A seeded world of pure machines in virtual time: loss, delay, duplicates, reorder, one-way cuts, crashes.

    heap of (time, order, happening) ──> machine ──> effects ──> disk | wire | timers | events
                          ^                                        │
                          └────────────────────────────────────────┘

One seed gives one run, to the byte: `trace` is a hash over everything that happened. After every happening
each `watch` function is called with the world, whose `touched` names the hosts that did something since the last
time; a checker raises AssertionError. `made_s` is when the effects that are carried out now were made.
"""

import hashlib
import heapq
import itertools
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from ioa_p2p.effects import Effect, Emit, Machine, Now, Rows, Save, Send, SetTimer
from ioa_p2p.errors import PeerError
from ioa_p2p.node.runtime import RETRY_S
from ioa_p2p.storage.memory import MemoryStorage

Address = Hashable
Make = Callable[[Address, Rows, random.Random, Now], Machine]


@dataclass
class Weather:
    """What the network does to a message, and the power to a host. Probabilities 0..1, delays in seconds.

    power_loss: that a host dies while it carries out a list with saves: before them (all unwritten) or between
    them and the first send. sync_s: how long the disk takes to make saves durable; meanwhile the machine goes on,
    its later lists wait behind, and a crash drops what is not yet written.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    delay_s: tuple[float, float] = (0.001, 0.02)
    power_loss: float = 0.0
    sync_s: tuple[float, float] = (0.0, 0.0)


@dataclass
class Host:
    """One machine, its disk, its clocks. `machine` is None while crashed, `held` waits for the end of a freeze.

    boot_rate: seconds of its boot clock to one of ours (drift). boot_offset_s: change it only while crashed.
    full: its disk takes nothing; it tries again until there is room. disks: how many it lost. unsynced: lists of
    effects that wait for the disk, and when they were made. deaf: a freeze also loses its mail.
    """

    address: Address
    make: Make
    disk: MemoryStorage = field(default_factory=MemoryStorage)
    machine: Machine | None = None
    life: int = 0
    timers: dict[str, int] = field(default_factory=dict)
    wall_offset_s: float = 0.0
    boot_offset_s: float = 1_000.0
    boot_rate: float = 1.0
    disks: int = 0
    unsynced: list[tuple[float, list[Effect]]] = field(default_factory=list)
    frozen: bool = False
    deaf: bool = False
    full: bool = False
    held: list[Callable[[], None]] = field(default_factory=list)


class World:
    """Build it, `add` hosts, set `weather`, `cut` and `crash` at will, `run` for virtual seconds."""

    def __init__(self, seed: int, weather: Weather | None = None, wall_s: float = 1_800_000_000.0) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.weather = weather or Weather()
        self.time_s = 0.0
        self.made_s = 0.0
        self.hosts: dict[Address, Host] = {}
        self.events: list[tuple[float, Address, Any]] = []
        self.faults: dict[str, int] = {}
        self.touched: dict[Address, None] = {}
        self.watch: list[Callable[[World], None]] = []
        self.on_event: list[Callable[[World, Address, Any], None]] = []
        self.on_send: list[Callable[[World, Address, Address, Any], None]] = []
        self.on_deliver: list[Callable[[World, Address, Address, Any], None]] = []
        self.on_power_loss: list[Callable[[World, Address], None]] = []
        self.route: Callable[[Any], Address] = lambda to: to
        self.sent = 0
        self._wall_s = wall_s
        self._cuts: set[tuple[Address, Address]] = set()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._hash = hashlib.blake2b(digest_size=16)

    # -- building and steering

    def add(self, address: Address, make: Make, *, start: bool = True) -> Host:
        host = self.hosts[address] = Host(address, make)
        if start:
            self.restart(address)
        return host

    def crash(self, address: Address, *, lose_disk: bool = False) -> None:
        """Stop at once; what was saved durably stays unless `lose_disk`."""
        host = self.hosts[address]
        host.machine, host.life, host.timers, host.held, host.unsynced = None, host.life + 1, {}, [], []
        if lose_disk:
            host.disk, host.disks = MemoryStorage(), host.disks + 1
        self._note("crash", address, lose_disk)

    def restart(self, address: Address) -> None:
        host = self.hosts[address]
        if host.machine is not None:
            self.crash(address)
        host.life += 1
        disk = host.disk
        dice = random.Random(f"{self.seed}/{address}/{host.life}")
        self._note("start", address)
        host.machine = host.make(address, lambda space: list(disk.scan(space)), dice, self.now(host))
        self._carry_out(host, host.machine.start(self.now(host)))

    def move(self, address: Address, to: Address) -> None:
        """The running machine is at another address from now on; what is under way to the old one is lost."""
        host = self.hosts[to] = self.hosts.pop(address)
        host.address = to
        self._note("move", address, to)

    def freeze(self, address: Address, *, deaf: bool = False) -> None:
        """Stop its process, not its clocks, until `thaw`. Its mail waits (SIGSTOP), or is lost too (suspend)."""
        self.hosts[address].frozen, self.hosts[address].deaf = True, deaf
        self._note("freeze", address, deaf)

    def thaw(self, address: Address) -> None:
        """What came in the meantime happens now, in its order."""
        host = self.hosts[address]
        host.frozen, held, host.held = False, host.held, []
        self._note("thaw", address)
        for happen in held:
            self.after(0.0, happen)

    def cut(self, source: Address, target: Address) -> None:
        """Lose everything from `source` to `target` (one way) until `mend`."""
        self._cuts.add((source, target))

    def mend(self, source: Address | None = None, target: Address | None = None) -> None:
        """Undo one cut, or all cuts."""
        if source is None:
            self._cuts.clear()
        else:
            self._cuts.discard((source, target))

    def split(self, *sides: list[Address]) -> None:
        """Cut every pair that is not on one side together. Who is on no side hears all: a bridge."""
        for a, b in itertools.permutations(range(len(sides)), 2):
            for source, target in itertools.product(sides[a], sides[b]):
                self.cut(source, target)

    def command(self, address: Address, command: Any) -> None:
        host = self.hosts[address]
        if host.machine is not None:
            self._carry_out(host, host.machine.handle_command(self.now(host), command))

    def at(self, time_s: float, do: Callable[[], None]) -> None:
        """Call `do` at virtual time `time_s`."""
        heapq.heappush(self._heap, (max(time_s, self.time_s), next(self._order), do))

    def after(self, delay_s: float, do: Callable[[], None]) -> None:
        self.at(self.time_s + delay_s, do)

    # -- running

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Run for virtual `seconds`, or until `until()` holds; True if it held (or none was given)."""
        end = self.time_s + seconds
        while self._heap and self._heap[0][0] <= end:
            self.time_s, _, do = heapq.heappop(self._heap)
            do()
            for check in self.watch:
                check(self)
            self.touched.clear()
            if until is not None and until():
                return True
        self.time_s = end
        return until is None or until()

    def now(self, host: Host) -> Now:
        boot_s = host.boot_offset_s + self.time_s * host.boot_rate
        return Now(self._wall_s + self.time_s + host.wall_offset_s, boot_s)

    def now_at(self, address: Address) -> Now:
        return self.now(self.hosts[address])

    @property
    def trace(self) -> str:
        """The hash of all that happened so far."""
        return self._hash.copy().hexdigest()

    # -- effects

    def _carry_out(self, host: Host, effects: list[Effect]) -> None:
        """Saves first, then sends, timers, events; nothing overtakes a list that waits for the disk."""
        self.touched[host.address] = None
        saves = [effect for effect in effects if isinstance(effect, Save)]
        if saves and self.weather.power_loss and self._power_fails(host, saves):
            return
        if host.unsynced or (saves and (host.full or self.weather.sync_s[1])):
            host.unsynced.append((self.time_s, effects))
            if len(host.unsynced) == 1:
                self._sync_later(host)
            return
        host.disk.commit(saves)
        self._act(host, self.time_s, effects)

    def _sync_later(self, host: Host) -> None:
        life, wait_s = host.life, RETRY_S if host.full else self.rng.uniform(*self.weather.sync_s)
        self.after(wait_s, lambda: self._sync(host, life))

    def _sync(self, host: Host, life: int) -> None:
        """All that waits becomes durable as one group, then takes effect; what comes meanwhile waits behind it."""
        if host.life == life and host.frozen:
            host.held.append(lambda: self._sync(host, life))
            return
        if host.life == life and host.full:
            self._sync_later(host)
            return
        group = list(host.unsynced) if host.life == life else []
        host.disk.commit(_saves(group))
        for made_s, effects in group:
            if host.life == life:
                self.touched[host.address] = None
                self._act(host, made_s, effects)
                del host.unsynced[:1]
        if host.life == life and host.unsynced:
            self._sync_later(host)

    def _act(self, host: Host, made_s: float, effects: list[Effect]) -> None:
        self.made_s = made_s
        for effect in effects:
            if isinstance(effect, Send):
                self._send(host, effect)
            elif isinstance(effect, SetTimer):
                self._set_timer(host, effect)
        for effect in effects:
            if isinstance(effect, Emit):
                self._note("event", host.address, effect.event)
                self.events.append((self.time_s, host.address, effect.event))
                for listen in self.on_event:
                    listen(self, host.address, effect.event)

    def _power_fails(self, host: Host, saves: list[Save]) -> bool:
        if self.rng.random() >= self.weather.power_loss:
            return False
        if self.rng.random() < 0.5:
            host.disk.commit([*_saves(host.unsynced), *saves])
        self.crash(host.address)
        for listen in self.on_power_loss:
            listen(self, host.address)
        return True

    def _send(self, host: Host, effect: Send) -> None:
        target, self.sent = self.route(effect.to), self.sent + 1
        for listen in self.on_send:
            listen(self, host.address, target, effect.message)
        copies = 0 if self.rng.random() < self.weather.loss else 1
        copies += self.rng.random() < self.weather.duplicate
        if (host.address, target) in self._cuts or target not in self.hosts:
            copies = 0
        for _ in range(copies):
            delay = self.rng.uniform(*self.weather.delay_s)
            self.after(delay, lambda: self.deliver(host.address, target, effect.message))

    def deliver(self, source: Address, target: Address, message: Any) -> None:
        """Hand `message` to `target` now; also the door for forged mail."""
        host = self.hosts.get(target)
        if host is None or host.machine is None or (source, target) in self._cuts:
            return
        if host.frozen:
            if not host.deaf:
                host.held.append(lambda: self.deliver(source, target, message))
            return
        self._note("message", source, target, message)
        try:
            effects = host.machine.handle_message(self.now(host), source, message)
        except PeerError as fault:
            self.faults[fault.code] = self.faults.get(fault.code, 0) + 1
            return
        for listen in self.on_deliver:
            listen(self, source, target, message)
        self._carry_out(host, effects)

    def _set_timer(self, host: Host, effect: SetTimer) -> None:
        version = host.timers[effect.name] = host.timers.get(effect.name, 0) + 1
        if effect.at is not None:
            life, wait_s = host.life, (effect.at - self.now(host).boot) / host.boot_rate
            self.after(max(wait_s, 0.0), lambda: self._fire(host, life, effect.name, version))

    def _fire(self, host: Host, life: int, name: str, version: int) -> None:
        if host.life != life or host.timers.get(name) != version or host.machine is None:
            return
        if host.frozen:
            host.held.append(lambda: self._fire(host, life, name, version))
            return
        self._note("timer", host.address, name)
        self._carry_out(host, host.machine.handle_timer(self.now(host), name))

    def _note(self, *what: Any) -> None:
        self._hash.update(repr((round(self.time_s, 6), what)).encode())


def _saves(waiting: list[tuple[float, list[Effect]]]) -> list[Save]:
    return [effect for _, effects in waiting for effect in effects if isinstance(effect, Save)]
