"""Many deadlines behind one timer of the machine.

at(deadline, do) ──> heap ── run(now) ──> each do(now) whose time has come
     │                └── wake() ──> SetTimer, only when an earlier deadline moves it
     └──> Deadline ── drop() ──> it does nothing, holds nothing and wakes nobody
"""

import heapq
import itertools
from collections.abc import Callable

from ioa_p2p.effects import Now, SetTimer

Do = Callable[[Now], None]
_NEVER = float("inf")


class Deadline:
    """do: what is due then; None once it was done or dropped."""

    __slots__ = ("do",)

    def __init__(self, do: Do) -> None:
        self.do: Do | None = do

    def drop(self) -> None:
        """It no longer matters. Its place in the heap is given up when it comes to the front."""
        self.do = None


class Agenda:
    """name: of the machine's timer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._heap: list[tuple[float, int, Deadline]] = []
        self._order = itertools.count()
        self._armed_s = _NEVER

    def at(self, deadline_s: float, do: Do) -> Deadline:
        """deadline_s: boot time."""
        deadline = Deadline(do)
        heapq.heappush(self._heap, (deadline_s, next(self._order), deadline))
        return deadline

    def run(self, now: Now) -> None:
        """Do all that is due by now, earliest first. The timer counts as gone off."""
        self._armed_s = _NEVER
        while self._next_s() <= now.boot:
            deadline = heapq.heappop(self._heap)[2]
            do, deadline.do = deadline.do, None
            if do is not None:
                do(now)

    def late_s(self, boot_s: float) -> float:
        """How far past the earliest deadline it is."""
        return max(0.0, boot_s - self._next_s())

    def wake(self) -> SetTimer | None:
        """The timer to set, if the one that is set would come too late."""
        next_s = self._next_s()
        if next_s >= self._armed_s:
            return None
        self._armed_s = next_s
        return SetTimer(self._name, next_s)

    def _next_s(self) -> float:
        """The earliest deadline that still matters; never if there is none."""
        while self._heap and self._heap[0][2].do is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else _NEVER
