"""A large mesh that has long settled, in virtual time: real DHT machines whose tables are filled, not joined.

    Crowd(seed, size) ── node(contact), made when first written to ──> DhtMachine | a liar of your own
        ask(contact, command) ──> effects ──> heap of (time, datagram or timer) ──> ... ──> the event that answers

Lighter than `world.World`: no disk, no trace, no crashes. A table holds what a node that has joined long ago knows:
all of the nearest, and of each farther bucket k chosen by chance; it has looked around a few times. Every node has a
public address in a subnet of its own.
"""

import heapq
import itertools
import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ioa_p2p.dht import space
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.effects import Effect, Emit, Machine, Now, Send, SetTimer
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from tests.dht.mesh import Checked, node_key
from tests.wire.samples import NETWORK

WALL_S = 1_800_000_000.0
BOOT_S = 1_000.0
LOOKED_AROUND = 4  # searches for random places that a node has made


def public_host(number: int) -> str:
    """A public address in a /24 of its own, for numbers below 2**16."""
    return f"93.{number >> 8}.{number & 255}.1"


class Places:
    """Contacts in the order of their places: who is nearest to a target, who belongs in a bucket."""

    def __init__(self, contacts: Iterable[Contact]) -> None:
        by_place = sorted((space.position(contact.key), contact) for contact in contacts)
        self._places = [place for place, _ in by_place]
        self._contacts = [contact for _, contact in by_place]

    def within(self, low: int, width_bits: int) -> Sequence[Contact]:
        """All whose places share all but the last `width_bits` bits with `low`."""
        low = low >> width_bits << width_bits
        return self._contacts[bisect_left(self._places, low) : bisect_left(self._places, low + (1 << width_bits))]

    def nearest(self, target: int, count: int) -> list[Contact]:
        """The `count` nearest to `target`, nearest first."""
        bits = next(bits for bits in range(space.ID_BITS + 1) if self._enough(target, bits, count))
        return sorted(self.within(target, bits), key=lambda one: space.position(one.key) ^ target)[:count]

    def _enough(self, target: int, bits: int, count: int) -> bool:
        return bits == space.ID_BITS or len(self.within(target, bits)) >= count


class Crowd:
    """size: nodes at numbers 0.. of `mesh.node_key`. liars(contact): what stands there instead of a machine, or None.
    known: more contacts that are in tables, all of them liars. delay_s: of a datagram, least and most.
    """

    def __init__(
        self,
        seed: int,
        size: int,
        liars: Callable[[Contact], Machine | None] = lambda contact: None,
        known: Iterable[Contact] = (),
        delay_s: tuple[float, float] = (0.005, 0.08),
    ) -> None:
        self.dice = random.Random(seed)
        self.keys = [node_key(number) for number in range(size)]
        self.contacts = [Contact(key.node, public_host(number), 4_001) for number, key in enumerate(self.keys)]
        self._there = {*self.contacts, *known}
        self.places = Places(self._there)
        self.sent = 0
        self.time_s = 0.0
        self._delay_s = delay_s
        self._seed = seed
        self._liars = liars
        self._numbers = {contact: number for number, contact in enumerate(self.contacts)}
        self._nodes: dict[Contact, Machine] = {}
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._requests = itertools.count()
        self._check = Checked()
        self._answers: dict[tuple[Contact, int], Any] = {}
        self._timers: dict[tuple[Contact, str], float | None] = {}

    @property
    def now(self) -> Now:
        return Now(WALL_S + self.time_s, BOOT_S + self.time_s)

    def node(self, contact: Contact) -> Any:
        made = self._nodes.get(contact)
        if made is None:
            made = self._nodes[contact] = self._liars(contact) or self._make(contact)
        return made

    def ask(self, contact: Contact, make: Callable[[int], Any], wait_s: float = 20.0) -> Any:
        """The event that answers `make(request)`, within virtual `wait_s`."""
        request = next(self._requests)
        self.command(contact, make(request))
        self.run_until(lambda: (contact, request) in self._answers, wait_s)
        return self._answers.pop((contact, request))

    def run_until(self, ended: Callable[[], bool], wait_s: float = 20.0) -> None:
        end_s = self.time_s + wait_s
        while not ended():
            assert self.time_s <= end_s, f"not ended within {wait_s} s"
            self._step()

    def command(self, contact: Contact, command: Any) -> None:
        self.carry_out(contact, self.node(contact).handle_command(self.now, command))

    def run(self, seconds: float) -> None:
        end_s = self.time_s + seconds
        while self._heap and self._heap[0][0] <= end_s:
            self._step()
        self.time_s = end_s

    def _step(self) -> None:
        self.time_s, _, do = heapq.heappop(self._heap)
        do()

    def _make(self, contact: Contact) -> DhtMachine:
        """A machine that knows it can be reached, and whom it would know."""
        number = self._numbers[contact]
        dice = random.Random(f"{self._seed}/{number}")
        machine = DhtMachine(self.keys[number], NETWORK, lambda space: (), dice, int(WALL_S * 1_000), self._check)
        machine._calls.client = False
        for known in self._known_by(contact, dice):
            machine._peers.table.enter(known, BOOT_S)
        for _ in range(LOOKED_AROUND):
            place = dice.getrandbits(space.ID_BITS)
            reach = space.position(self.places.nearest(place, limits.DHT_K)[-1].key) ^ place
            machine._means.density.note(place.to_bytes(limits.DHT_ID_BYTES), reach)
        return machine

    def _known_by(self, contact: Contact, dice: random.Random) -> Iterable[Contact]:
        own = space.position(contact.key)
        for bits in range(space.ID_BITS):
            bucket = self.places.within(own ^ (1 << bits), bits)
            if len(bucket) == 0:
                continue
            yield from bucket if len(bucket) <= limits.DHT_K else dice.sample(bucket, limits.DHT_K)

    def carry_out(self, contact: Contact, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self._send(contact, to, message)
                case SetTimer(name, at):
                    self._set_timer(contact, name, at)
                case Emit(event) if hasattr(event, "request"):
                    self._answers[contact, event.request] = event
                case _:
                    pass

    def _send(self, source: Contact, target: Contact, message: Any) -> None:
        self.sent += 1
        self._later(self.dice.uniform(*self._delay_s), lambda: self._deliver(source, target, message))

    def _deliver(self, source: Contact, target: Contact, message: Any) -> None:
        if target not in self._there:
            return
        try:
            effects = self.node(target).handle_message(self.now, source, message)
        except PeerError:
            return
        self.carry_out(target, effects)

    def _set_timer(self, contact: Contact, name: str, at: float | None) -> None:
        self._timers[contact, name] = at
        if at is not None:
            self._later(max(0.0, at - self.now.boot), lambda: self._fire(contact, name, at))

    def _fire(self, contact: Contact, name: str, at: float) -> None:
        if self._timers.get((contact, name)) == at:
            self._timers[contact, name] = None
            self.carry_out(contact, self.node(contact).handle_timer(self.now, name))

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.time_s + seconds, next(self._order), do))
