"""When a member rests, and what wakes it.

awake ── concluded, and 30 s on ──> asleep ── a voter asks for an election: it does not know the end ──> awake
      └─ deadline long past, nobody leads ─┘                  └─ not concluded: only one that leads ─┘
"""

from ioa_p2p.effects import Now
from ioa_p2p.team.tasks import Profile
from ioa_p2p.wire.decision import Append, DecisionMessage, PreVoteRequest

_LINGER_S = 30.0  # awake after the conclusion, so that late members learn it


class Rest:
    def __init__(self, profile: Profile) -> None:
        self.asleep = False
        self._patience_s = profile.lease_s + profile.grace_s
        self._awake_until_s = 0.0
        self._led_s = 0.0

    def begin(self, now: Now) -> None:
        self._led_s = now.boot

    def linger(self, now: Now) -> None:
        """The team has concluded."""
        self._awake_until_s = now.boot + _LINGER_S

    def wake(self, now: Now) -> None:
        self.asleep = False
        self.begin(now)
        self.linger(now)

    def is_due(self, now: Now) -> bool:
        """Of a team that has concluded."""
        return now.boot >= self._awake_until_s

    def is_abandoned(self, now: Now, deadline: float, *, led: bool) -> bool:
        """Long after the goal's deadline nobody leads: whoever asked has vanished, and with it a majority."""
        if led:
            self._led_s = now.boot
        return now.boot > self._led_s + self._patience_s and now.wall > deadline + self._patience_s

    @staticmethod
    def is_broken_by(message: DecisionMessage, *, concluded: bool, known: bool) -> bool:
        """After the end, a voter that does not know of it; before, only one that leads: else two that were left
        would keep each other awake. known: its sender is in the team."""
        return known and isinstance(message, PreVoteRequest) if concluded else isinstance(message, Append)
