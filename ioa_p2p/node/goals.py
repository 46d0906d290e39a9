"""From a goal to a team: ask the planner what is needed, search until it is found, launch.

    goal ── planner.wants ──> index keys ──> search ──> cards ──> wants again ... ──> roles ──> Launch
    its end ── something missing that others could do? (second.py) ──> once more, without who failed

The launch is journaled by the team machine; from then on the team lives without us.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from ioa_p2p.errors import IoaError, UsageError
from ioa_p2p.mind.planner import Planner
from ioa_p2p.node import clock, telling
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import AGE_STEP_S, Hit
from ioa_p2p.node.query import Query
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.second import Agent, Missing, merged, missing_after_launch, missing_in, second_team, told
from ioa_p2p.node.story import Stories, Story
from ioa_p2p.steps import Candidate, Wants
from ioa_p2p.team.commands import Launch, Policy
from ioa_p2p.team.events import LaunchFailed
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire.ids import blake, node_text
from ioa_p2p.wire.roster import Caps, Member
from ioa_p2p.wire.spending import Allowance
from ioa_p2p.wire.words import words

ROUNDS_MAX = 8  # searches before a goal: each may name types that only its finds revealed; the last are wider
GOAL_S_MIN = 5.0
REFUSALS_TOLD = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Launched:
    """What a launch was, until its team stands or it failed. until: wall seconds."""

    called: frozenset[Agent]
    until: float
    budget: Allowance


class Goals:
    """new_search: makes a search that leads to an assignment and tells its hits. me: our own member entry, now."""

    def __init__(
        self,
        teams: Driver,
        planner: Planner,
        stories: Stories,
        new_search: Callable[[Query, Callable[[Hit], None]], Awaitable[Search]],
        me: Callable[[], Member],
        leaders: Callable[[], frozenset[bytes]],
        witnesses: Callable[[], tuple[Candidate, ...]] = tuple,
    ) -> None:
        self._teams = teams
        self._planner = planner
        self._stories = stories
        self._new_search = new_search
        self._me = me
        self._leaders = leaders
        self._witnesses = witnesses
        self._launched: dict[bytes, _Launched] = {}
        self._again: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        for task in list(self._again):
            task.cancel()
        await asyncio.gather(*self._again, return_exceptions=True)

    def known(self, goal: str, key: str) -> Story | None:
        """The story of a goal that was asked under this key of its client's before. Raises UsageError('key-used')."""
        story = self._stories.get(self._team_of(key)) if key else None
        if story is not None and story.goal != goal:
            raise UsageError("key-used", f"another goal was asked under the key {key!r}", "use a new key")
        return story

    def begin(self, goal: str, key: str = "", witnesses: tuple[Candidate, ...] = ()) -> Story:
        """A new team's story; `pursue` does the work. Under one key it is one team, also after a start of the node.
        witnesses: named for it."""
        story = self._stories.of(self._team_of(key) if key else secrets.token_bytes(16), goal)
        story.witnesses = witnesses
        story.tell({"kind": "started", "team": story.team.hex(), "goal": goal})
        return story

    async def pursue(self, story: Story, goal_s: float, budget: Allowance, *, again: bool = True) -> None:
        """Search, then launch; the story ends by the team's conclusion, or here when nobody fits. again: what is
        missing then may be another team's. A nested team's end is its task's: who plans above says what next."""
        until = clock.now().wall + goal_s
        try:
            wants = await self._wants(story.goal, _Told(story))
        except Exception as fault:  # a planner may be a stranger's model: the goal ends with a reason
            log.exception("planning for a goal failed")
            self._give_up(story, "planner-failed", f"the planner failed: {type(fault).__name__}: {fault}")
            return
        if not wants.roles:
            self._give_up(story, "nobody-found", _nobody(wants))
            return
        for need in wants.unserved:
            story.tell({"kind": "lacking", "need": need})
        if story.result is None:  # not cancelled meanwhile
            self._launch(story, wants, until, budget, again=again)

    async def _wants(self, goal: str, on_hit: Callable[[Hit], None], without: frozenset[Agent] = frozenset()) -> Wants:
        """By the goal's meaning and words first, then by what the planner asks for. Who has not answered is no part
        of it: nobody is called who may be dead."""
        search = await self._new_search(Query(goal), on_hit)
        if words(goal):
            await search.run()
        wants = await self._planner.wants(goal, (), search.searched)
        for _ in range(ROUNDS_MAX):
            await search.widen(wants.queries)
            hits = sorted((hit for hit in search.hits.values() if hit.answered), key=_trusted_first)
            found = [hit.found for hit in hits if hit.agent not in without]
            wants = await self._planner.wants(goal, found, search.searched)
            if search.searched.issuperset(wants.queries):
                break
        return wants

    def _team_of(self, key: str) -> bytes:
        return blake(b"ask" + self._me().node + key.encode())[:16]

    def _launch(self, story: Story, wants: Wants, until: float, budget: Allowance, *, again: bool = True) -> None:
        goal_s = int(max(GOAL_S_MIN, until - clock.now().wall))
        witnesses = story.witnesses or self._witnesses()
        policy = Policy(
            goal_s=goal_s, leaders=self._leaders(), caps=Caps(budget=budget), witnesses=witnesses,
            witness_always=bool(story.witnesses),
        )  # fmt: skip
        if again:
            called = frozenset((one.node, one.agent) for role in wants.roles for one in role.candidates)
            self._launched[story.team] = _Launched(called, until, budget)
        try:
            self._teams.command(Launch(story.team, story.goal, self._me(), wants.roles, policy))
        except IoaError as fault:
            self._give_up(story, fault.code, f"The launch was refused: {fault}.")

    def _give_up(self, story: Story, code: str, answer: str) -> None:
        self._launched.pop(story.team, None)
        result = telling.failed_launch(LaunchFailed(story.team, code), time.time() - story.started)
        story.end({**result, "answer": answer})

    # -- the end, or once more

    def launch_failed(self, event: LaunchFailed) -> None:
        """No team; others may form one."""
        story = self._stories.of(event.team)
        result = telling.failed_launch(event, time.time() - story.started)
        launched, missing = self._launched.pop(event.team, None), None
        if launched and event.code in ("nobody-fits", "too-few"):
            willing = {(event["agent"], event["node"]) for event in story.bids(willing=True)}
            refused = _named(launched.called, willing, among=False)
            missing = missing_after_launch(story.goal, refused, launched.until, launched.budget, clock.now())
        self._end(story, _with_refusals(story, result), missing)

    def concluded(self, story: Story, result: dict[str, Any], state: TeamState) -> None:
        """A team is over. state: as decided."""
        launched, missing = self._launched.pop(story.team, None), None
        if state.roster.launcher == self._me().node and not state.roster.ancestors:
            unwilling = {(event["agent"], event["node"]) for event in story.bids(willing=False)}
            refused = _named(launched.called if launched else frozenset(), unwilling, among=True)
            missing = missing_in(state, refused, clock.now())
        self._end(story, _with_refusals(story, result), missing)

    def _end(self, story: Story, result: dict[str, Any], missing: Missing | None) -> None:
        """A second team's end is the end."""
        is_second = any(second_team(other.team) == story.team for other in self._stories.all())
        if missing is None or is_second or story.result is not None:
            story.end(result)
            return
        story.second = second_team(story.team)
        task = asyncio.create_task(self._try_again(story, result, missing))
        self._again.add(task)
        task.add_done_callback(self._again.discard)

    async def _try_again(self, story: Story, first: dict[str, Any], missing: Missing) -> None:
        """Search and launch without those who failed, unless that was done before a restart; the story tells both."""
        second = self._stories.get(story.second)
        if second is None:
            wants = await self._wanted_again(missing)
            if story.result is not None:  # cancelled meanwhile
                return
            if wants is None:
                story.end({**first, "answer": f"{first['answer']}\nNobody else was found who could."})
                return
            second = self._stories.of(story.second, missing.goal)
            story.tell(told(second.team, missing))
            self._launch(second, wants, missing.until, missing.budget)
        story.end(merged(first, await second.follow(story.retell)))

    async def _wanted_again(self, missing: Missing) -> Wants | None:
        """None: nobody else is there."""
        try:
            wants = await self._wants(missing.goal, lambda hit: None, missing.without)
        except Exception:  # a planner may be a stranger's model: then the first result stands
            log.exception("planning for a second team failed")
            return None
        return wants if wants.roles else None


def _trusted_first(hit: Hit) -> tuple[Any, ...]:
    """Who is asked first between equals: trust, then freshness and load; never who answered first."""
    return hit.standing.level, int(hit.age_s // AGE_STEP_S), hit.load or 0.0, hit.agent


def _named(agents: Iterable[Agent], names: Collection[tuple[str, str]], *, among: bool) -> frozenset[Agent]:
    """Those who are (or are not) among these pairs of agent and node, as a story tells them."""
    return frozenset(each for each in agents if ((each[1], node_text(each[0])) in names) == among)


def _with_refusals(story: Story, result: dict[str, Any]) -> dict[str, Any]:
    """A result that lacks something also says who would not take part, and why."""
    told = [f"{bid['agent']}@{bid['node'][:8]}: {bid['reason']}" for bid in story.bids(willing=False)][:REFUSALS_TOLD]
    if not told or result["why"] == "done":
        return result
    return {**result, "answer": f"{result['answer']}\nWould not take part: {'; '.join(told)}."}


def _nobody(wants: Wants) -> str:
    """Why, and what a person can do."""
    lacking = "".join(map(_lacking, wants.missing))
    return f"Nobody was found whose skills lead to this goal.{lacking}"


def _lacking(type_name: str) -> str:
    """A goal cannot bring inputs along: somebody has to make them."""
    return f" An agent that fits needs an input of type {type_name}, which nobody who was found makes."


class _Told:
    """Tells each agent once, when its node answered."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._agents: set[Agent] = set()

    def __call__(self, hit: Hit) -> None:
        if hit.answered and hit.agent not in self._agents:
            self._agents.add(hit.agent)
            skills = [skill.name for skill in hit.card.skills]
            event = {"kind": "found", "agent": hit.record.agent, "node": node_text(hit.record.node), "skills": skills}
            self._story.tell(event)
