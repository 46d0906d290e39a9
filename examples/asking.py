"""`ioa-p2p ask` as a process, followed event by event; what was seen is kept for the verdict.

ask --json ── line ──> Asking ── event ──> on_event      result, or None when its node died under it
"""

import json
import queue
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from examples.mesh import COMMAND, ROOT, MeshNode

OPEN_STATES = frozenset({"accepted", "running"})
Event = dict[str, Any]


class Seen:
    """What the events told so far."""

    def __init__(self) -> None:
        self.team = ""
        self.phases: list[str] = []
        self.coordinators: dict[int, str] = {}
        self.tasks: dict[str, Event] = {}

    def take(self, event: Event) -> None:
        match event["kind"]:
            case "started" | "roster":
                self.team = event["team"]
            case "phase" if event["phase"] not in self.phases:
                self.phases.append(event["phase"])
            case "elected":
                self.coordinators[event["term"]] = event["coordinator"]
            case "task":
                self.tasks[event["task"]] = event
            case _:
                pass

    @property
    def coordinator(self) -> str:
        """The node that leads the newest term, "" before there is one."""
        return self.coordinators[max(self.coordinators)] if self.coordinators else ""

    @property
    def at_work(self) -> list[Event]:
        """The newest event of each task that somebody works on."""
        return [task for task in self.tasks.values() if task["state"] in OPEN_STATES]


class Asking:
    """One `ask` (or `ask --resume`) process of `node`."""

    def __init__(self, node: MeshNode, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "ask", *arguments, "--json"], cwd=ROOT, env=node.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.pid = self._process.pid
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def follow(self, on_event: Callable[[Event], None], on_pause: Callable[[], None]) -> Event:
        """Call `on_event` for each event and `on_pause` a few times a second; the last line: result or refusal."""
        last: Event = {"ok": False, "code": "silent", "message": "ask ended without a word"}
        while (line := self._next(on_pause)) is not None:
            answer = json.loads(line)
            if "event" in answer:
                on_event(answer["event"])
            else:
                last = answer
        self._process.wait()
        return last

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _next(self, on_pause: Callable[[], None]) -> str | None:
        while True:
            on_pause()
            try:
                return self._lines.get(timeout=0.1)
            except queue.Empty:
                continue

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)
