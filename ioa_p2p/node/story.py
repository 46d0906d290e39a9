"""What people are told of a team: its events as plain JSON objects, in order, for those who come late too.

    machine events ──> tell(event) ──> kept (bounded) ──> every watcher's emit        docs/control.md

A story is remade from the decision log after a restart: the team machine tells its committed past again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ioa_p2p.node.task_events import TaskEvents

EVENTS_MAX = 4_000  # kept a team; the oldest go first, a late watcher then misses the beginning
STORIES_MAX = 200  # kept a node; concluded teams go first, oldest first

Emit = Callable[[dict[str, Any]], None]


class Story:
    """One team as told so far. `result` is set once, at the end."""

    def __init__(self, team: bytes, goal: str = "") -> None:
        self.team = team
        self.goal = goal
        self.started = time.time()
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)
        self.result: dict[str, Any] | None = None
        self.second = b""  # the team that tries what this one did not do
        self._tasks: dict[str, TaskEvents] = {}
        self._watchers: set[Emit] = set()
        self._ended = asyncio.Event()
        self._founded = asyncio.Event()

    def tell(self, event: dict[str, Any]) -> None:
        """Add one event. Task progress replaces the same task's progress before it. Events of tasks are numbered."""
        if event["kind"] in ("task", "orphan"):
            event = self.task(event["task"]).tell(event)
        if self._is_progress(event) and self.events and self._same_task(self.events[-1], event):
            self.events.pop()
        self.events.append(event)
        if event["kind"] == "roster":
            self._founded.set()
        for emit in list(self._watchers):
            emit(event)

    def retell(self, event: dict[str, Any]) -> None:
        """What its second team does; its tasks are numbered anew."""
        self.tell({key: value for key, value in event.items() if key != "seq"})

    @property
    def current(self) -> bytes:
        """The team that is at work for it."""
        return self.second or self.team

    def bids(self, *, willing: bool) -> list[dict[str, Any]]:
        """Who would join, or would not and why."""
        return [event for event in self.events if event["kind"] == "bid" and event["willing"] == willing]

    @property
    def is_founded(self) -> bool:
        """Its team stands, or it is over."""
        return self._founded.is_set()

    def task(self, task: str) -> TaskEvents:
        """The events of one task, by its hex id."""
        return self._tasks.setdefault(task, TaskEvents())

    def end(self, result: dict[str, Any]) -> None:
        """The team is over: all that follow it get `result`. The first end stands."""
        if self.result is None:
            self.result = result
            self._ended.set()
            self._founded.set()

    async def follow(self, emit: Emit) -> dict[str, Any]:
        """Tell the past, then what comes; return the result. Cancelling only stops the watching."""
        for event in list(self.events):
            emit(event)
        self._watchers.add(emit)
        try:
            await self._ended.wait()
        finally:
            self._watchers.discard(emit)
        assert self.result is not None
        return self.result

    async def founded(self, emit: Emit) -> dict[str, Any]:
        """As `follow`, but only until the roster stands (or the launch failed)."""
        for event in list(self.events):
            emit(event)
        self._watchers.add(emit)
        try:
            await self._founded.wait()
        finally:
            self._watchers.discard(emit)
        return self.result or {"team": self.team.hex(), "outcome": "detached"}

    def _is_progress(self, event: dict[str, Any]) -> bool:
        return event["kind"] == "task" and event["state"] == "running"

    def _same_task(self, before: dict[str, Any], event: dict[str, Any]) -> bool:
        return self._is_progress(before) and (before["task"], before["attempt"]) == (event["task"], event["attempt"])


class Stories:
    """All teams this node has heard of, newest last."""

    def __init__(self) -> None:
        self._stories: dict[bytes, Story] = {}

    def of(self, team: bytes, goal: str = "") -> Story:
        """The team's story, begun if there is none."""
        story = self._stories.get(team)
        if story is None:
            self._make_room()
            story = self._stories[team] = Story(team, goal)
        story.goal = story.goal or goal
        return story

    def get(self, team: bytes) -> Story | None:
        return self._stories.get(team)

    def all(self) -> list[Story]:
        return sorted(self._stories.values(), key=lambda story: story.started)

    def _make_room(self) -> None:
        if len(self._stories) >= STORIES_MAX:
            ended = (team for team, story in self._stories.items() if story.result is not None)
            del self._stories[next(ended, next(iter(self._stories)))]
