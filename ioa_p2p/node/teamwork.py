"""What the node makes of its teams' events: links, channel, planner, jobs, and the story people read.

Connect ──> neighbourhood      TeamFormed, LineSaid ──> channel      PlanWanted ──> planner ──> PlanStep
StartTask, CancelTask ──> jobs      Concluded ──> the launcher fetches the answer's files ──> story ends
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ioa_p2p.errors import IoaError
from ioa_p2p.gossip import commands as gossip
from ioa_p2p.mind.planner import Planner
from ioa_p2p.node import reports, telling
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.node.goals import Goals
from ioa_p2p.node.jobs import Jobs
from ioa_p2p.node.neighbourhood import Neighbourhood
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.safekeeping import Safekeeping
from ioa_p2p.node.story import Stories, Story
from ioa_p2p.steps import LineView, Turn, View
from ioa_p2p.team import commands, events
from ioa_p2p.team.machine import Teams
from ioa_p2p.wire import codec
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.roster import Roster

PLAN_S = 60.0  # a planner that takes longer has failed; the coordinator asks again or concludes
KEEP_S = 86_400.0  # a keeper's channel stays a day longer, for those who were away
LEAVE_S = 120.0  # a concluded team's channel and links stay so long, for those who still fetch files

log = logging.getLogger(__name__)


class Teamwork:
    """Feed every event of the team machine to `on_event`. `cards`: of our agents, by name."""

    def __init__(
        self,
        node: bytes,
        machine: Teams,
        teams: Driver,
        channel: Driver,
        neighbourhood: Neighbourhood,
        planner: Planner,
        blobs: Blobs,
        stories: Stories,
        cards: Mapping[str, Card],
        reports_folder: Path,
    ) -> None:
        self.jobs: Jobs
        self.goals: Goals
        self._node = node
        self._machine = machine
        self._teams = teams
        self._channel = channel
        self._neighbourhood = neighbourhood
        self._planner = planner
        self._blobs = blobs
        self._stories = stories
        self._cards = cards
        self._reports = reports_folder
        self._safekeeping = Safekeeping(node, blobs)
        self._tasks: set[asyncio.Task[None]] = set()
        self._on: dict[type[Any], Callable[[Any], None]] = {
            events.Connect: self._connect,
            events.BidHeard: lambda event: self._story(event.team).tell(telling.bid(event)),
            events.LaunchFailed: self._launch_failed,
            events.TeamFormed: self._formed,
            events.Elected: self._elected,
            events.PhaseChanged: lambda event: self._story(event.team).tell(telling.phase(event)),
            events.LineSaid: self._line_said,
            events.TurnMine: lambda event: self._spawn(self._my_turn(event)),
            events.TaskChanged: self._task_changed,
            events.PlanWanted: lambda event: self._spawn(self._plan(event.view)),
            events.PlanRefused: lambda event: log.warning("a plan step was refused: %s", event.reason),
            events.StartTask: lambda event: self.jobs.start(event),
            events.CancelTask: lambda event: self.jobs.cancel(event),
            events.Orphan: lambda event: self._story(event.team).tell(telling.orphan(event)),
            events.MemoryLost: self._memory_lost,
            events.Concluded: self._concluded,
            events.RosterChanged: self._roster_changed,
            events.AdmissionFailed: lambda event: self._story(event.team).tell(telling.not_admitted(event)),
            events.Halted: self._halted,
            events.Forgotten: self._forgotten,
            events.Reforming: lambda event: self._story(event.team).tell(telling.reforming(event)),
            events.ReformFailed: lambda event: self._story(event.team).tell(telling.reform_failed(event)),
            events.Reformed: lambda event: self._story(event.team).tell(telling.reformed(event)),
            events.LeftBehind: self._left_behind,
        }

    def on_event(self, event: Any) -> None:
        handle = self._on.get(event.__class__)
        if handle is not None:
            handle(event)

    async def aclose(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.goals.aclose()
        await self._safekeeping.aclose()
        await self.jobs.aclose()

    # -- forming and leading

    def _connect(self, event: events.Connect) -> None:
        self._neighbourhood.want(event.node, event.addresses, "team")

    def _launch_failed(self, event: events.LaunchFailed) -> None:
        self.goals.launch_failed(event)

    def _formed(self, event: events.TeamFormed) -> None:
        doubted = not self._machine.teams[event.team].election.may_vote
        self._open_channel(event.team, event.roster, doubted=doubted)
        story = self._stories.of(event.team, event.roster.goal)
        story.started = float(event.roster.created)
        story.tell(telling.roster(event))
        if event.roster.launcher == self._node and (note := telling.fragile(event.roster)):
            story.tell(note)

    def _left_behind(self, event: events.LeftBehind) -> None:
        """The talk goes on without us."""
        log.warning("team %s was formed anew without this node", event.team.hex()[:8])
        self._channel.command(gossip.CloseChannel(event.team))
        told, story = telling.left_behind(event), self._story(event.team)
        story.tell(told)
        story.end(telling.halted(events.Halted(event.team, told["text"]), time.time() - story.started))

    def _roster_changed(self, event: events.RosterChanged) -> None:
        self._open_channel(event.team, event.roster)
        self._story(event.team).tell(telling.roster_changed(event))

    def _open_channel(self, team: bytes, roster: Roster, *, doubted: bool = False) -> None:
        """Its members are the team's, us among them; who was removed is heard no more, and counts up to its cut."""
        if self._node not in roster.voters:
            self._channel.command(gossip.CloseChannel(team))
            return
        cuts = tuple(sorted(self._machine.teams[team].election.cuts.items()))
        self._channel.command(gossip.OpenChannel(team, tuple(roster.voters), doubted, cuts))

    def _halted(self, event: events.Halted) -> None:
        log.error("team %s: this node takes no more part: %s", event.team.hex()[:8], event.reason)
        story = self._story(event.team)
        story.tell({"kind": "halted", "reason": event.reason})
        story.end(telling.halted(event, time.time() - story.started))

    def _memory_lost(self, event: events.MemoryLost) -> None:
        self._open_channel(event.team, self._machine.teams[event.team].state.roster, doubted=True)

    def _elected(self, event: events.Elected) -> None:
        team = self._machine.teams[event.team]
        votes, voters = len(team.election.certificate), len(team.state.roster.voters)
        self._story(event.team).tell(telling.elected(event, votes, voters))

    async def _plan(self, view: View) -> None:
        """One call of the planner; whatever it does, the coordinator gets an answer."""
        try:
            async with asyncio.timeout(PLAN_S):
                planned = await self._planner.next_step(view)
            answer: Any = commands.PlanStep(view.team, view.version, planned.step, planned.spent)
        except Exception as fault:  # a planner may be a stranger's model: it must not stop the goal
            log.warning("the planner failed: %s: %s", type(fault).__name__, fault)
            answer = commands.PlanFailed(view.team, view.version, f"{type(fault).__name__}: {fault}"[:200])
        self._command(answer)

    # -- talk

    def _line_said(self, event: events.LineSaid) -> None:
        if event.node == self._node:
            self._say(event.team, event.text)
        self._story(event.team).tell(telling.said(event))

    def _say(self, team: bytes, text: str) -> None:
        try:
            self._channel.command(gossip.Say(team, "text", text.encode(), recalled=True))
        except IoaError as fault:
            log.warning("a line was not said: %s", fault)
            self._story(team).tell({"kind": "unsaid", "reason": str(fault)})

    async def _my_turn(self, event: events.TurnMine) -> None:
        """Our planner finds the words, at our expense: a line that takes too long is an empty one."""
        text = ""
        try:
            async with asyncio.timeout(PLAN_S):
                text = await self._planner.speak(self._turn(event))
        except Exception as fault:  # likewise
            log.warning("no line was found: %s: %s", type(fault).__name__, fault)
        self._command(commands.Answer(event.team, event.turn, text))

    def _turn(self, event: events.TurnMine) -> Turn:
        card, state = self._cards.get(event.agent), self._machine.teams[event.team].state
        lines = tuple(LineView(line.node, line.agent, line.text) for line in state.lines)
        skills = tuple(skill.name for skill in card.skills) if card else ()
        about = card.description if card else ""
        return Turn(event.team, event.agent, about, skills, state.roster.goal, event.prompt, lines)

    # -- tasks

    def _task_changed(self, event: events.TaskChanged) -> None:
        self._story(event.team).tell(telling.task(event))
        if (team := self._machine.teams.get(event.team)) is not None:
            self._safekeeping.look(team, event.spec.id)

    # -- the end

    def _forgotten(self, event: events.Forgotten) -> None:
        self._safekeeping.forget(event.team)
        self._channel.command(gossip.ForgetTeam(event.team, event.voters, event.blobs))

    def _concluded(self, event: events.Concluded) -> None:
        if event.conclusion.outcome != "done":
            log.info("team %s concluded as %s", event.team.hex()[:8], event.conclusion.outcome)
        self._spawn(self._conclude(event))
        asyncio.get_running_loop().call_later(LEAVE_S, self._leave, event.team)

    async def _conclude(self, event: events.Concluded) -> None:
        team = self._machine.teams[event.team]
        files: list[dict[str, Any]] = []
        story = self._story(event.team)
        if team.state.roster.launcher == self._node and not team.state.roster.ancestors:  # for its owner
            try:
                files = await self._fetch_files(event)
            except (IoaError, OSError) as fault:  # the disk refuses, or a peer's outputs cannot be read
                log.warning("the answer's files were not written: %s", fault)
                story.tell({"kind": "missing", "name": "files", "note": str(fault)})
        story.tell({"kind": "concluded", "outcome": telling.OUTCOMES[event.conclusion.outcome]})
        seconds = team.state.at - team.state.roster.created
        self.goals.concluded(story, telling.result(event.team, event.conclusion, files, seconds), team.state)

    async def _fetch_files(self, event: events.Concluded) -> list[dict[str, Any]]:
        """The results' files and outputs into the report folder; a missing one is told, not fatal."""
        tasks = self._machine.teams[event.team].state.tasks
        rows = (tasks.get(task) for task in event.conclusion.result)
        outcomes = [row.outcome for row in rows if row is not None and row.outcome is not None]
        folder = self._reports / event.team.hex()[:16]
        files: list[dict[str, Any]] = []
        taken = set[str]()
        for blob in (blob for outcome in outcomes for blob in outcome.blobs):
            try:
                path = await asyncio.to_thread(reports.place, folder, blob.name, taken)
                await self._blobs.get_file(event.team, blob.hash, path)
                files.append(reports.row(path))
            except IoaError as fault:
                self._story(event.team).tell({"kind": "missing", "name": blob.name, "note": str(fault)})
        outputs = reports.together(codec.read_any(outcome.outputs) for outcome in outcomes if outcome.outputs)
        if outputs:
            files.append(await asyncio.to_thread(reports.write_outputs, folder, outputs))
        return files

    def _leave(self, team: bytes) -> None:
        member = self._machine.teams.get(team)
        if member is not None and self._safekeeping.is_keeper(member):
            asyncio.get_running_loop().call_later(KEEP_S, self._channel.command, gossip.CloseChannel(team))
        else:
            self._channel.command(gossip.CloseChannel(team))
        if all(other.state.conclusion is not None for other in self._machine.teams.values()):
            self._neighbourhood.drop_all("team")

    # -- helpers

    def _story(self, team: bytes) -> Story:
        return self._stories.of(team)

    def _command(self, command: Any) -> None:
        try:
            self._teams.command(command)
        except IoaError as fault:
            log.info("%s came too late: %s", type(command).__name__, fault)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
