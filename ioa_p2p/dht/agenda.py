"""Many deadlines behind one timer of the machine.

    at(deadline, do) ──> heap ── run(now) ──> each do(now) whose time has come
                           └── wake() ──> SetTimer, only when an earlier deadline moves it

Nothing is ever taken out early: what no longer matters does nothing when it comes due.
"""

import heapq
import itertools
from collections.abc import Callable

from ioa_p2p.effects import Now, SetTimer


class Agenda:
    """name: of the machine's timer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._heap: list[tuple[float, int, Callable[[Now], None]]] = []
        self._order = itertools.count()
        self._armed: float | None = None

    def at(self, deadline_s: float, do: Callable[[Now], None]) -> None:
        """deadline_s: boot time."""
        heapq.heappush(self._heap, (deadline_s, next(self._order), do))

    def run(self, now: Now) -> None:
        """Do all that is due by now, earliest first. The timer counts as gone off."""
        self._armed = None
        while self._heap and self._heap[0][0] <= now.boot:
            heapq.heappop(self._heap)[2](now)

    def late_s(self, boot_s: float) -> float:
        """How far past the earliest deadline it is."""
        return boot_s - self._heap[0][0] if self._heap else 0.0

    def wake(self) -> SetTimer | None:
        """The timer to set, if the one that is set would come too late."""
        if not self._heap or (self._armed is not None and self._armed <= self._heap[0][0]):
            return None
        self._armed = self._heap[0][0]
        return SetTimer(self._name, self._armed)
