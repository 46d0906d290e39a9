"""What happens to one task, numbered: who watches can go on after a cut, or is told what it missed.

    tell(event) ──> kept under the next number (the newest few) ──> every watcher
    follow(after) ──> a gap, if what came after that number is no longer kept ──> the kept ones ──> what comes

Numbers begin anew with each start of the node: a watcher names the start (`life`) that its number is of.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ioa_p2p.steps import FINAL
from ioa_p2p.wire import limits

Emit = Callable[[dict[str, Any]], None]


class TaskEvents:
    def __init__(self) -> None:
        self.last = 0
        self._kept: deque[dict[str, Any]] = deque(maxlen=limits.TASK_EVENTS_KEPT)
        self._watchers: set[Emit] = set()
        self._over = asyncio.Event()

    def tell(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with its number."""
        self.last += 1
        numbered = {**event, "seq": self.last}
        self._kept.append(numbered)
        for emit in list(self._watchers):
            emit(numbered)
        if event.get("state") in FINAL and event["kind"] == "task":
            self._over.set()
        return numbered

    async def follow(self, emit: Emit, after: int | None) -> None:
        """Until the task is final. after: the last number heard in this life; None: it was another life, or none."""
        heard = 0 if after is None else after
        first = self.last - len(self._kept) + 1
        if heard + 1 < first:
            emit({"kind": "gap", "from": heard + 1, "to": first - 1})
        for event in list(self._kept):
            if event["seq"] > heard:
                emit(event)
        self._watchers.add(emit)
        try:
            await self._over.wait()
        finally:
            self._watchers.discard(emit)
