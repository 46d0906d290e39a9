"""The node's part of teams within teams: it searches for them, and brings their files home. team/nesting.py, the rest.

NestWanted ──> story, search ── goals ──> Launch | TaskFailed          NestDropped ──> the search ends
NestEnded  ──> its files fetched ──> TaskDone | TaskFailed, of the task above
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ioa_p2p.adapters.team import goal_of
from ioa_p2p.errors import IoaError
from ioa_p2p.node import telling
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.node.config import AgentConfig
from ioa_p2p.node.goals import Goals
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.story import Stories, Story
from ioa_p2p.team.commands import TaskDone, TaskFailed
from ioa_p2p.team.events import NestDropped, NestEnded, NestWanted
from ioa_p2p.wire import limits
from ioa_p2p.wire.spending import UNLIMITED

log = logging.getLogger(__name__)


class Nests:
    """agents: as configured. joined: waits until the node is ready to search."""

    def __init__(
        self,
        teams: Driver,
        goals: Goals,
        blobs: Blobs,
        stories: Stories,
        agents: Mapping[str, AgentConfig],
        joined: Callable[[], Awaitable[None]],
    ) -> None:
        self._teams = teams
        self._goals = goals
        self._blobs = blobs
        self._stories = stories
        self._agents = agents
        self._joined = joined
        self._searches: dict[bytes, asyncio.Task[None]] = {}
        self._ends: set[asyncio.Task[None]] = set()

    def on_event(self, event: Any) -> None:
        """Feed every event of the team machine."""
        match event:
            case NestWanted():
                self._want(event)
            case NestDropped(team) if team in self._searches:
                self._searches[team].cancel()
            case NestEnded():
                ending = asyncio.create_task(self._end(event))
                self._ends.add(ending)
                ending.add_done_callback(self._ends.discard)
            case _:
                pass

    async def aclose(self) -> None:
        open_tasks = [*self._searches.values(), *self._ends]
        for task in open_tasks:
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)

    # -- searching

    def _want(self, event: NestWanted) -> None:
        if event.team not in self._searches:
            search = self._searches[event.team] = asyncio.create_task(self._search(event))
            search.add_done_callback(lambda _: self._searches.pop(event.team, None))

    async def _search(self, event: NestWanted) -> None:
        """The machine holds the launch to the task's own terms, whatever is asked for here."""
        agent = self._agents.get(event.agent)
        if agent is None:  # taken out of the configuration, over a restart
            self._command(TaskFailed(event.parent, event.task, event.attempt, "no-such-agent: it is not here any more"))
            return
        story = self._stories.of(event.team, goal_of(event.agent, agent.options, event.goal))
        story.tell({**telling.nested(event), "goal": story.goal})
        try:
            await self._joined()
            await self._goals.pursue(story, event.seconds_left, UNLIMITED, again=False)
        except asyncio.CancelledError:
            _give_up(story, "cancelled")
            raise
        if story.result is not None:
            reason = f"no team: {story.result['answer']}"[: limits.REASON_CHARS_MAX]
            self._command(TaskFailed(event.parent, event.task, event.attempt, reason))

    # -- the end

    async def _end(self, event: NestEnded) -> None:
        """What the team above gets by hash must be here when it asks."""
        end = event.end
        try:
            for blob in end.blobs if isinstance(end, TaskDone) else ():
                await self._blobs.have(event.team, blob.hash)
        except IoaError as fault:
            end = TaskFailed(end.team, end.task, end.attempt, f"{fault.code}: {fault}", spent=end.spent)
        self._command(end)

    def _command(self, command: TaskDone | TaskFailed) -> None:
        try:
            self._teams.command(command)
        except IoaError as fault:
            log.info("the end of a nested team came too late: %s", fault)


def _give_up(story: Story, outcome: str) -> None:
    story.end({"team": story.team.hex(), "outcome": outcome, "answer": "", "files": [], "credits": []})
