"""How often a coordinator beats and how long its followers wait: one profile per kind of network.

follower:  |--- lease = shortest wait ---|--- spread, shortened by rank ---|   then: pre-vote
asker:     |--- one beat ---|--- one beat more at most ---|                    then: ask again
"""

import random
from dataclasses import dataclass

JUMP_S = 2.0
"""A timer this late means that the machine slept (suspend, SIGSTOP): what it believes is old."""

_RANK_SHARE = 0.75  # the best rank still leaves a quarter of the spread to dice, or ties would never break


@dataclass(frozen=True, slots=True)
class Timing:
    """beat_s: seconds between beats. wait_beats: shortest and longest election timeout, in beats."""

    beat_s: float
    wait_beats: tuple[float, float]

    @property
    def lease_s(self) -> float:
        """The minimum election timeout: for so long a majority that was heard stays a majority (I8)."""
        return self.beat_s * self.wait_beats[0]

    @property
    def wait_s_max(self) -> float:
        """The longest election timeout; liveness is promised in multiples of it."""
        return self.beat_s * self.wait_beats[1]

    def wait_s(self, rank: float, rng: random.Random) -> float:
        """A follower's wait for its coordinator. rank 0..1 only shortens it, never below the lease."""
        spread = self.wait_s_max - self.lease_s
        return self.lease_s + spread * rng.random() * (1 - _RANK_SHARE * rank)

    def ask_s(self, rank: float, rng: random.Random) -> float:
        """The wait between two rounds of asking while there is no coordinator."""
        return self.beat_s * (1 + rng.random() * (1 - _RANK_SHARE * rank))


LAN = Timing(beat_s=0.5, wait_beats=(2, 4))
WAN = Timing(beat_s=2.0, wait_beats=(10, 20))
BATTERY = Timing(beat_s=5.0, wait_beats=(10, 20))
PROFILES = {"lan": LAN, "wan": WAN, "battery": BATTERY}
