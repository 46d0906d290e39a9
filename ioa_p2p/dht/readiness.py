"""When a node may say "ready": it then finds and is found, as far as anybody can.

filled ── alone ────────────────────────────────> Ready(0 peers)
       └─ reach known (or asked in vain for 10 s) and directories compared (or no link for 3 s) ──> Ready
"""

from collections.abc import Callable

from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.events import Ready
from ioa_p2p.effects import Effect, Emit, Now
from ioa_p2p.wire import limits


class Readiness:
    """status() -> (good peers, reachable, compared). Says Ready once."""

    def __init__(self, agenda: Agenda, out: list[Effect], status: Callable[[], tuple[int, bool, bool]]) -> None:
        self._agenda = agenda
        self._out = out
        self._status = status
        self._filled_s: float | None = None
        self._said = False

    def filled(self, now: Now) -> None:
        """The search for ourselves found somebody, or it is clear that nobody is there."""
        if self._filled_s is None:
            self._filled_s = now.boot
            for wait_s in (limits.DIGEST_WAIT_S, limits.DHT_DIAL_BACK_S):
                self._agenda.at(now.boot + wait_s, self.check)
        self.check(now)

    def check(self, now: Now) -> None:
        if self._said or self._filled_s is None:
            return
        peers, reachable, compared = self._status()
        waited_s = now.boot - self._filled_s
        reach_known = reachable or waited_s >= limits.DHT_DIAL_BACK_S
        if not peers or (reach_known and (compared or waited_s >= limits.DIGEST_WAIT_S)):
            self._said = True
            self._out.append(Emit(Ready(peers, reachable, compared)))
