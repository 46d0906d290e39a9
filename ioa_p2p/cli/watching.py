"""Watching one task through cuts: the node may be stopped and started, the watcher goes on where it was.

watch(life, after) ──> events with numbers ──> cut ──> watch(life, last number) again ──> a gap is told
"""

import time
from typing import Any

from ioa_p2p.cli.here import Here

POLL_S = 0.5


class Watching:
    """patience_s: how long the node may be away."""

    def __init__(self, here: Here, task: str, patience_s: float) -> None:
        self._here = here
        self._task = task
        self._patience_s = patience_s
        self._life = 0
        self._after = 0
        self._heard_s = time.monotonic()

    def to_the_end(self) -> dict[str, Any]:
        """The task as it ended. Raises NotRunningError when the node is away for too long, RefusedError."""
        from ioa_p2p.cli.client import NotRunningError
        from ioa_p2p.cli.stream import events

        while True:
            args = {"task": self._task, "life": self._life, "after": self._after}
            try:
                return events(self._here.call("watch", args, wait_s=None), self._show)
            except NotRunningError:
                if not self._life or time.monotonic() > self._heard_s + self._patience_s:
                    raise
                time.sleep(POLL_S)

    def _show(self, event: dict[str, Any]) -> None:
        self._heard_s = time.monotonic()
        if event["kind"] == "watching":
            self._life, self._task = event["life"], event["task"]
            return
        self._after = event.get("seq", self._after)
        self._here.out.event(event)
        if line := _line(event):
            self._here.out.say(line)


def _line(event: dict[str, Any]) -> str:
    match event["kind"]:
        case "gap" if event["to"] is None:
            return f"gap       the node was started anew; what came after number {event['from'] - 1} may be missing"
        case "gap":
            return f"gap       {event['to'] - event['from'] + 1} events were missed"
        case "task":
            share = "" if event.get("fraction") is None else f" {event['fraction']:.0%}"
            note = f": {event['note']}" if event.get("note") else ""
            return f"{event['seq']:4}  {event['state']}{share}{note}"
        case "orphan":
            return f"{event['seq']:4}  attempt {event['attempt']} {event['state']} too late; kept apart"
        case _:
            return ""
