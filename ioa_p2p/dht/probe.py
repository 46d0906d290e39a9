"""Is somebody there? Asked before an agent is offered to anybody, for a record outlives its node. T01's dial check.

probe(contact) ── Ping ──> Pong: there        slow ── another Ping (three in all) ──> all unanswered: not there
"""

from dataclasses import dataclass
from typing import Any

from ioa_p2p.dht.calls import Call, Calls
from ioa_p2p.dht.events import Probed
from ioa_p2p.effects import Effect, Emit, Now
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Ping, Pong


@dataclass(slots=True, eq=False)
class Probe:
    """left: Pings that may still be sent. open: under way."""

    request: int
    contact: Contact
    left: int = limits.DHT_STORE_TRIES
    open: int = 0
    told: bool = False


class Probes:
    """An Asker: its Pings."""

    def __init__(self, calls: Calls, out: list[Effect]) -> None:
        self._calls = calls
        self._out = out

    def probe(self, now: Now, request: int, contact: Contact) -> None:
        self._ping(now, Probe(request, contact))

    def answered(self, now: Now, call: Call, answer: Any) -> None:
        self._tell(call.subject, there=True)

    def slow(self, now: Now, call: Call) -> None:
        if call.subject.left and not call.subject.told:
            self._ping(now, call.subject)

    def lost(self, now: Now, call: Call) -> None:
        call.subject.open -= 1
        if not call.subject.open:
            self._tell(call.subject, there=False)

    def _ping(self, now: Now, probe: Probe) -> None:
        probe.left -= 1
        probe.open += 1
        self._calls.ask(now, probe.contact, Ping, Pong, self, probe)

    def _tell(self, probe: Probe, *, there: bool) -> None:
        if not probe.told:
            probe.told = True
            self._out.append(Emit(Probed(probe.request, there)))
