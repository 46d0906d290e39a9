"""From a goal to a team: ask the planner what is needed, search until it is found, launch.

    goal ── planner.wants ──> index keys ──> search ──> cards ──> wants again ... ──> roles ──> Launch

The launch is journaled by the team machine; from then on the team lives without us.
"""

import logging
import secrets
import time
from collections.abc import Awaitable, Callable

from ioa_p2p.errors import IoaError, UsageError
from ioa_p2p.mind.planner import Planner
from ioa_p2p.node import telling
from ioa_p2p.node.finder import Search
from ioa_p2p.node.hits import Hit
from ioa_p2p.node.query import Query
from ioa_p2p.node.runtime import Driver
from ioa_p2p.node.story import Stories, Story
from ioa_p2p.steps import Wants
from ioa_p2p.team.events import Launch, LaunchFailed, Policy
from ioa_p2p.wire.ids import blake, node_text
from ioa_p2p.wire.roster import Caps, Member
from ioa_p2p.wire.spending import Allowance
from ioa_p2p.wire.words import words

ROUNDS_MAX = 6  # searches before a goal; each may name types that only its finds revealed
GOAL_S_MIN = 5.0

log = logging.getLogger(__name__)


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
    ) -> None:
        self._teams = teams
        self._planner = planner
        self._stories = stories
        self._new_search = new_search
        self._me = me
        self._leaders = leaders

    def known(self, goal: str, key: str) -> Story | None:
        """The story of a goal that was asked under this key of its client's before. Raises UsageError('key-used')."""
        story = self._stories.get(self._team_of(key)) if key else None
        if story is not None and story.goal != goal:
            raise UsageError("key-used", f"another goal was asked under the key {key!r}", "use a new key")
        return story

    def begin(self, goal: str, key: str = "") -> Story:
        """A new team's story; `pursue` does the work. Under one key it is one team, also after a start of the node."""
        story = self._stories.of(self._team_of(key) if key else secrets.token_bytes(16), goal)
        story.tell({"kind": "started", "team": story.team.hex(), "goal": goal})
        return story

    async def pursue(self, story: Story, goal_s: float, budget: Allowance) -> None:
        """Search, then launch; the story ends by the team's conclusion, or here when nobody fits."""
        told = _Told(story)
        try:
            search = await self._new_search(Query(story.goal), told)
            wants = await self._wants(story.goal, search)
        except Exception as fault:  # a planner may be a stranger's model: the goal ends with a reason
            log.exception("planning for a goal failed")
            self._give_up(story, "planner-failed", f"the planner failed: {type(fault).__name__}: {fault}")
            return
        if not wants.roles:
            answer = f"Nobody was found whose skills lead to this goal.{''.join(map(_lacking, wants.missing))}"
            self._give_up(story, "nobody-found", answer)
            return
        if story.result is not None:  # cancelled meanwhile
            return
        caps = Caps(budget=budget)
        policy = Policy(goal_s=int(max(GOAL_S_MIN, goal_s)), leaders=self._leaders(), caps=caps)
        try:
            self._teams.command(Launch(story.team, story.goal, self._me(), wants.roles, policy))
        except IoaError as fault:
            self._give_up(story, fault.code, f"The launch was refused: {fault}.")

    async def _wants(self, goal: str, search: Search) -> Wants:
        """By the goal's meaning and words first, then by what the planner asks for. Who has not answered is no part
        of it: nobody is called who may be dead."""
        if words(goal):
            await search.run()
        wants = await self._planner.wants(goal, (), search.searched)
        for _ in range(ROUNDS_MAX):
            await search.widen(wants.queries)
            found = [hit.found for hit in search.hits.values() if hit.answered]
            wants = await self._planner.wants(goal, found, search.searched)
            if search.searched.issuperset(wants.queries):
                break
        return wants

    def _team_of(self, key: str) -> bytes:
        return blake(b"ask" + self._me().node + key.encode())[:16]

    def _give_up(self, story: Story, code: str, answer: str) -> None:
        result = telling.failed_launch(LaunchFailed(story.team, code), time.time() - story.started)
        story.end({**result, "answer": answer})


def _lacking(type_name: str) -> str:
    """A goal cannot bring inputs along: somebody has to make them."""
    return f" An agent that fits needs an input of type {type_name}, which nobody who was found makes."


class _Told:
    """Tells each agent once, when its node answered."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._agents: set[tuple[bytes, str]] = set()

    def __call__(self, hit: Hit) -> None:
        if hit.answered and hit.agent not in self._agents:
            self._agents.add(hit.agent)
            skills = [skill.name for skill in hit.card.skills]
            event = {"kind": "found", "agent": hit.record.agent, "node": node_text(hit.record.node), "skills": skills}
            self._story.tell(event)
