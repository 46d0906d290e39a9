"""Whatever peers answer, everything that was asked comes to its end, and nothing is left over.

machine ── any request ──> Liars ── any well-formed answer, early, late or never ──> machine ... then silence
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.effects import Effect, Emit, Now, Send, SetTimer
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import (
    Contact,
    FindNode,
    FindPointers,
    FindRecord,
    Found,
    Had,
    Have,
    Ping,
    Pong,
    Store,
    Stored,
    pack_contact,
    pack_endpoint,
)
from tests.dht.frames import NOW, sealed
from tests.dht.mesh import card
from tests.wire.samples import ALICE, NETWORK, pointer, record

HOSTS = ("127.0.0.1", "10.0.0.5", "93.184.216.34", "198.51.100.7", "2001:db8::7")
KEYS = [NodeKey(bytes([number]) * 32) for number in range(100, 130)]
LIARS = [Contact(key.node, HOSTS[number % len(HOSTS)], 4_000 + number) for number, key in enumerate(KEYS)]
STEP_S = 0.05


class Liars:
    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        frames = [sealed(record(key, agent="a", seq=number), key) for number, key in enumerate(KEYS[:10])]
        frames += [sealed(pointer(key, index=ids.index_key("skill:a.b"), agent="a"), key) for key in KEYS[:10]]
        self._frames = [*frames, frames[0][:-1] + b"x", b"", self._dice.randbytes(200)]

    def answer(self, request: Any) -> Any:
        """None: silence."""
        dice, head = self._dice, (request.id, self._dice.random() < 0.3)
        match request:
            case Ping():
                seen = dice.choice([bytes(6), bytes(7), bytes(18), b"\xe0\0\0\1\1\1", pack_endpoint(HOSTS[2], 4_001)])
                return Pong(*head, bytes(8), seen, dice.choice([0, 1, int(NOW.wall), 1 << 39]))
            case FindNode() | FindRecord() | FindPointers():
                frames = tuple(dice.choices(self._frames, k=dice.choice([0, 1, 4, 16])))
                contacts = tuple(self._contact() for _ in range(dice.choice([0, 5, limits.DHT_CONTACTS_MAX])))
                cursor = dice.randbytes(dice.choice([0, 5, limits.POINTERS_CURSOR_BYTES]))
                return Found(*head, bytes(8), frames, contacts, cursor, dice.random() < 0.5, dice.randbytes(9))
            case Store():
                return Stored(*head, dice.choice([0, 1, 2, 3, 4, 5, 6, 255]), dice.random() < 0.5)
            case Have():
                return Had(*head, bytes(8), dice.randbytes(dice.randrange(limits.HAVE_MAX)))
            case _:
                return None

    def _contact(self) -> bytes:
        false = [pack_contact(Contact(ALICE.node, HOSTS[0], 7)), self._dice.randbytes(38), self._dice.randbytes(50)]
        return self._dice.choice([*false, *(pack_contact(liar) for liar in self._dice.sample(LIARS, 6))])


class Besieged:
    """A machine among liars. told: its events."""

    def __init__(self, seed: int) -> None:
        self.machine = DhtMachine(ALICE, NETWORK, lambda space: [], random.Random(seed), 1)
        self.told: list[Any] = []
        self._liars, self._dice = Liars(seed), random.Random(seed)
        self.now, self._wake = NOW, float("inf")
        self._coming: list[tuple[float, Contact, Any]] = []

    def do(self, work: Callable[..., list[Effect]], *args: Any) -> None:
        try:
            effects = work(self.now, *args)
        except PeerError:
            return
        for effect in effects:
            match effect:
                case SetTimer(_, at):
                    self._wake = float("inf") if at is None else at
                case Emit(event):
                    self.told.append(event)
                case Send(Contact() as to, message) if self._dice.random() < 0.8:
                    after_s = self._dice.choice([0.01, 0.15, 1.0, 3.0])
                    self._coming.append((self.now.boot + after_s, to, self._liars.answer(message)))
                case _:
                    pass

    def run(self, seconds: float, *, silent: bool = False) -> None:
        for _ in range(int(seconds / STEP_S)):
            self.now = Now(self.now.wall + STEP_S, self.now.boot + STEP_S)
            due = [one for one in self._coming if one[0] <= self.now.boot]
            self._coming = [one for one in self._coming if one[0] > self.now.boot and not silent]
            for _, to, answer in due:
                if answer is not None and not silent:
                    self.do(self.machine.handle_message, to, answer)
            if self._wake <= self.now.boot:
                self._wake = float("inf")
                self.do(self.machine.handle_timer, "dht")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_peers_answer_all_that_was_asked_ends_and_nothing_is_left_over(seed: int):
    besieged = Besieged(seed)
    machine = besieged.machine
    besieged.do(machine.start)
    besieged.do(machine.handle_command, commands.Join((), tuple(LIARS[:8])))
    besieged.do(machine.handle_command, commands.Publish(card("own", "a.b", description="some words")))
    endpoint = pack_endpoint(LIARS[3].host, LIARS[3].port)
    for number in range(0, 60, 4):
        besieged.do(machine.handle_command, commands.SearchRecord(number, KEYS[3].node, "a"))
        besieged.do(machine.handle_command, commands.SearchPointers(number + 1, "skill:a.b", sketch=bytes(64)))
        besieged.do(machine.handle_command, commands.FetchRecord(number + 2, KEYS[3].node, "a", endpoint))
        besieged.do(machine.handle_command, commands.Probe(number + 3, LIARS[3]))
        besieged.run(1)
    besieged.do(machine.handle_command, commands.Withdraw("own"))
    besieged.run(limits.DHT_LOOKUP_S + limits.DHT_CALL_S * limits.DHT_STORE_TRIES, silent=True)
    answered = [event.request for event in besieged.told if hasattr(event, "request")]
    assert sorted(answered) == list(range(60)), "each of our own questions is answered once"
    assert (machine._queries._under_way, len(machine._peers._pinged)) == (0, 0)
    waited_s = [besieged.now.boot - call.sent_s for call in machine._calls._calls.values()]
    assert max(waited_s, default=0) <= limits.DHT_CALL_S + STEP_S, "what is retried for ever waits no longer than that"
