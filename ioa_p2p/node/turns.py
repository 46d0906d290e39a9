"""Whose turn it is at an agent that can do only so much at a time.

    take(own) ── a slot is free? ──> at once        else waits: the owner's own first, then the others as they came
    give ──> the next that waits has the slot

Strangers who wait in hundreds so cost the owner one run of theirs at most, never their queue. One event loop.
"""

import asyncio
from collections import deque


class Turns:
    """slots: runs at a time."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._own: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    async def take(self, *, own: bool) -> None:
        """Return when the turn has come. Cancelled, it leaves no trace."""
        if self._free:  # then nobody waits
            self._free -= 1
            return
        waiting = self._own if own else self._others
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it came in the very moment
                self.give()
            raise

    def give(self) -> None:
        for waiting in (self._own, self._others):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():  # else it was cancelled while it waited
                    turn.set_result(None)
                    return
        self._free += 1
