"""Requests under way: ids, patience, misses. What every part that asks a peer goes through.

    asker ── ask(contact, request) ──> Send ... answer(id, peer) ──> asker.answered
                                        ├─ no answer after ~200 ms ──> asker.slow   (the peer is a suspect)
                                        └─ none after 2 s ──────────> asker.lost    (the peer missed)

Patience follows the round trips seen, as TCP's retransmission timer does (RFC 6298): mean + 4 x deviation. The silent
are left alone for twice as long each time; nobody is blamed for silence while nobody at all answers.
"""

import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from ioa_p2p.dht.agenda import Agenda, Deadline
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Answer, Contact, Rpc


class Asker(Protocol):
    """What becomes of a request. Exactly one of `answered` and `lost` is called, `slow` perhaps before."""

    def answered(self, now: Now, call: "Call", answer: Any) -> None: ...

    def slow(self, now: Now, call: "Call") -> None: ...

    def lost(self, now: Now, call: "Call") -> None: ...


@dataclass(slots=True, eq=False)
class Call:
    """subject: whatever the asker wants to find again. due: the end of our patience, then of all hope."""

    id: int
    to: Contact
    asker: Asker
    answer: type[Answer]
    sent_s: float
    subject: Any
    slow: bool = False
    due: Deadline = field(init=False)


class Suspects:
    """Peers that were slow of late, whether or not they are in the table; bounded, oldest forgotten first. Each time
    that one is slow again when its time is over, the next lasts twice as long, until it answers.

    A peer is suspect at one endpoint: else a liar who names it where nobody is would hide it where it is.
    """

    def __init__(self) -> None:
        self._until_s: OrderedDict[Contact, float] = OrderedDict()
        self._last_s: dict[Contact, float] = {}

    def add(self, contact: Contact, boot_s: float, *, blamed: bool = True) -> None:
        """blamed: others answered meanwhile, so it is not our own network that is out."""
        if self.has(contact, boot_s):
            return
        least, most = limits.DHT_SUSPECT_S
        last_s = self._last_s.get(contact, 0.0)
        self._last_s[contact] = min(most, max(least, 2 * last_s if blamed else last_s))
        self._until_s.pop(contact, None)
        self._until_s[contact] = boot_s + self._last_s[contact]
        if len(self._until_s) > limits.DHT_SUSPECTS_MAX:
            self.clear(next(iter(self._until_s)))

    def clear(self, contact: Contact) -> None:
        self._until_s.pop(contact, None)
        self._last_s.pop(contact, None)

    def clear_all(self) -> None:
        self._until_s.clear()
        self._last_s.clear()

    def has(self, contact: Contact, boot_s: float) -> bool:
        return self._until_s.get(contact, 0.0) > boot_s


class Calls:
    """out: where Sends go. on_missed(contact, blamed): told who left a request unanswered; not to be blamed if nobody
    answered since, for then we may be off the air ourselves.

    `client` is what our requests say of us; `contacted` says whom we wrote to, and when.
    """

    def __init__(
        self, rng: random.Random, out: list[Effect], agenda: Agenda, on_missed: Callable[[Contact, bool], None]
    ) -> None:
        self.client = True
        self.suspects = Suspects()
        self.contacted: OrderedDict[bytes, float] = OrderedDict()
        self._rng = rng
        self._out = out
        self._agenda = agenda
        self._on_missed = on_missed
        self._calls: dict[int, Call] = {}
        self._mean_s: float | None = None
        self._deviation_s = 0.0
        self._heard_s = float("-inf")

    def __len__(self) -> int:
        return len(self._calls)

    def ask(
        self, now: Now, to: Contact, request: type[Rpc], answer: type[Answer], asker: Asker, subject: Any, *fields: Any
    ) -> None:
        """Send `request(id, client, *fields)`. With too many under way it counts as lost at once."""
        call = Call(self._rng.getrandbits(32), to, asker, answer, now.boot, subject)
        if len(self._calls) >= limits.DHT_CALLS_MAX or call.id in self._calls:
            asker.lost(now, call)
            return
        self._note_contact(now, to.key)
        self._calls[call.id] = call
        self._out.append(Send(to, request(call.id, self.client, *fields)))
        call.due = self._agenda.at(now.boot + self.patience_s, partial(self._due, call))

    @property
    def patience_s(self) -> float:
        """How long a peer may keep its place in a lookup."""
        least, first, most = limits.DHT_SLOW_S
        if self._mean_s is None:
            return first
        return min(most, max(least, self._mean_s + 4 * self._deviation_s))

    def match(self, peer: Contact, answer: Answer) -> Call:
        """Take out the call that this answers. Raises PeerError('unasked-answer')."""
        call = self._calls.get(answer.id)
        if call is None or call.to != peer or not isinstance(answer, call.answer):
            raise PeerError("unasked-answer")
        del self._calls[answer.id]
        call.due.drop()
        return call

    def heard(self, now: Now, call: Call) -> None:
        """The call was answered: learn from its round trip."""
        self.suspects.clear(call.to)
        self._heard_s = now.boot
        trip_s = now.boot - call.sent_s
        if self._mean_s is None:
            self._mean_s, self._deviation_s = trip_s, trip_s / 2
            return
        self._deviation_s += (abs(trip_s - self._mean_s) - self._deviation_s) / 4
        self._mean_s += (trip_s - self._mean_s) / 8

    def abandon(self, now: Now) -> None:
        """All answers are hopeless and nobody is to blame (we slept, or changed networks)."""
        calls, self._calls = list(self._calls.values()), {}
        self.suspects.clear_all()
        for call in calls:
            call.due.drop()
            call.asker.lost(now, call)

    def _due(self, call: Call, now: Now) -> None:
        """First the patience with it ends, then all hope."""
        if not call.slow:
            call.slow = True
            call.due = self._agenda.at(max(call.sent_s + limits.DHT_CALL_S, now.boot), partial(self._due, call))
            self.suspects.add(call.to, now.boot, blamed=self._heard_s >= call.sent_s)
            call.asker.slow(now, call)
            return
        del self._calls[call.id]
        self._on_missed(call.to, self._heard_s >= call.sent_s)
        call.asker.lost(now, call)

    def _note_contact(self, now: Now, key: bytes) -> None:
        self.contacted.pop(key, None)
        self.contacted[key] = now.boot
        if len(self.contacted) > limits.DHT_CONTACTED_MAX:
            self.contacted.popitem(last=False)
