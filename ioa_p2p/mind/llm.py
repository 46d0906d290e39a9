"""The planner that asks a model: one call a step, none where there is no choice, rules where it fails.

    View ── no choice? ──────────────────────────────────────────────> Planned(step)
      └─ prompt ──> model ── read ──> Planned(step, spent)
                      ^        └─ unusable: told why, once ── again ──> rules take this step
                      └─ down, busy, late, too dear: rules, and the model rests for a while

What a model can make worse than the rules is bounded: calls a step, tokens and seconds a call, and what `answer`
lets through. Turns, tokens and time of the whole team are the coordinator's to cap.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ioa_p2p.errors import PeerError
from ioa_p2p.llm.fence import Fence, quoted
from ioa_p2p.llm.port import Message, Model, ModelError, Reply, Request, Usage, reply_of, request_tokens, tokens_of
from ioa_p2p.mind.answer import Read, Wait, read
from ioa_p2p.mind.history import within
from ioa_p2p.mind.planner import Planner, introduction
from ioa_p2p.mind.prompt import complaint, messages, nests
from ioa_p2p.mind.schema import step_shape
from ioa_p2p.steps import Await, FoundAgent, Planned, Speak, Step, Turn, View, Wants
from ioa_p2p.wire import limits
from ioa_p2p.wire.spending import Spent

STEP_S = 45.0  # both calls of a step: below what the node waits for a plan
CALLS_MAX = 2  # of a step: the answer, and once more where it cannot be used
REST_S = (15.0, 240.0)  # a model that failed is left alone: first, and at most, doubling
LINE_S = 15.0  # for a line: below what a coordinator waits for one
TEAMS_MAX = 64  # whose talk is remembered; over: the longest unasked is forgotten, which costs it a call

log = logging.getLogger(__name__)


@dataclass
class _Talk:
    """What is remembered of a team between two steps. It may be lost: a new coordinator has none of it."""

    wait: Wait = "none"
    seen: frozenset[bytes] = frozenset()  # the tasks there were before the last assignment
    refused: int = 0  # steps in a row that the coordinator could not use


class ModelPlanner:
    """A `Planner`. rules: who plans where the model does not."""

    def __init__(
        self,
        model: Model,
        rules: Planner,
        *,
        count: Callable[[str], int] = tokens_of,
        fence: Fence | None = None,
    ) -> None:
        self._model = model
        self._rules = rules
        self._count = count
        self._fence = fence or Fence(secrets.token_hex(4))
        self._talks: OrderedDict[bytes, _Talk] = OrderedDict()
        self._failures, self._rest_until = 0, 0.0

    async def wants(self, goal: str, found: Sequence[FoundAgent], searched: frozenset[str]) -> Wants:
        """By rules: what to search is read off the goal and the cards."""
        return await self._rules.wants(goal, found, searched)

    async def next_step(self, view: View) -> Planned:
        """Raises what the rules raise."""
        talk = self._talk(view.team)
        talk.refused = talk.refused + 1 if view.problem else 0
        if step := _no_choice(view, talk):
            return Planned(step)
        spent = Usage()
        try:
            found, spent = await self._asked(view, talk)
        except ModelError as fault:
            spent = fault.usage
            self._rest(fault)
        else:
            if found is not None:
                talk.wait, talk.seen = found.wait, frozenset(task.id for task in view.tasks)
                return Planned(found.step, _spent(spent))
        talk.wait = "none"
        planned = await self._rules.next_step(view)
        return Planned(planned.step, _spent(spent))

    async def speak(self, turn: Turn) -> str:
        """What our agent says, in its own role; without a model what it can do."""
        if self._is_resting:
            return introduction(turn)
        try:
            reply = await reply_of(self._model, self._line_request(turn))
        except ModelError as fault:
            self._rest(fault)
            return introduction(turn)
        text = " ".join(reply.text.split())[: limits.LINE_CHARS_MAX]
        return text if text and reply.finish != "refused" else introduction(turn)

    # -- asking

    async def _asked(self, view: View, talk: _Talk) -> tuple[Read | None, Usage]:
        """A usable step, or None, and what was spent. Raises ModelError with all that was spent."""
        asked = messages(view, self._fence, self._count)
        deadline = asyncio.get_running_loop().time() + min(STEP_S, view.seconds_left)
        spent = Usage()
        for _ in range(CALLS_MAX):
            request = self._request(asked, deadline, view)
            if self._is_resting or talk.refused >= CALLS_MAX or self._is_too_dear(request, view, spent):
                return None, spent
            try:
                reply = await reply_of(self._model, request)
            except ModelError as fault:
                fault.usage = spent + fault.usage
                raise
            self._failures, spent = 0, spent + reply.usage
            try:
                return read(reply, view), spent
            except PeerError as fault:
                log.info("the model's step cannot be used: %s", fault)
                asked = (*asked, *_again(reply, fault))
        return None, spent

    def _request(self, asked: tuple[Message, ...], deadline: float, view: View) -> Request:
        left_s = max(0.0, deadline - asyncio.get_running_loop().time())
        return Request(asked, limits.PLAN_ANSWER_TOKENS_MAX, left_s, step_shape(nests=nests(view)))

    def _is_too_dear(self, request: Request, view: View, spent: Usage) -> bool:
        """It would cost more than the team has left."""
        left = view.left
        tokens = spent.tokens + request_tokens(request, self._count) + request.tokens_max
        return (left.tokens is not None and tokens > left.tokens) or (
            left.calls is not None and spent.calls >= left.calls
        )

    def _line_request(self, turn: Turn) -> Request:
        rules = (
            f"You are the agent {turn.agent} of a team and have the word. Answer the question in a few plain "
            f"sentences, only from what you know and can do; say so if you do not know. {self._fence.rule}"
        )
        lines = [f"{line.agent}: {quoted(line.text)}" for line in turn.lines]
        told = [
            f"you: {quoted(turn.description)}, skills: {', '.join(turn.skills) or 'none'}",
            f"goal: {quoted(turn.goal, 2_000)}",
            "said:",
            *within(lines, limits.LINE_TOKENS_MAX, self._count),
            f"the question to you: {quoted(turn.prompt, limits.LINE_CHARS_MAX)}",
        ]
        asked = (Message("system", rules), Message("user", self._fence.around(told)))
        return Request(asked, limits.LINE_TOKENS_MAX, LINE_S)

    # -- what is remembered

    def _talk(self, team: bytes) -> _Talk:
        talk = self._talks.pop(team, None) or _Talk()
        self._talks[team] = talk
        if len(self._talks) > TEAMS_MAX:
            self._talks.popitem(last=False)
        return talk

    @property
    def _is_resting(self) -> bool:
        return asyncio.get_running_loop().time() < self._rest_until

    def _rest(self, fault: ModelError) -> None:
        """It failed: rules plan for a while, so that a model that hangs costs the team no minute a step."""
        first_s, most_s = REST_S
        rest_s = min(most_s, max(first_s * 2.0**self._failures, fault.retry_s or 0.0))
        self._failures = min(self._failures + 1, 16)
        self._rest_until = asyncio.get_running_loop().time() + rest_s
        log.warning("%s: %s: %s; rules plan for %.0f s", self._model.name, fault.code, fault, rest_s)


def _no_choice(view: View, talk: _Talk) -> Step | None:
    """What needs no model: to wait for what was just given out, and to come back from an assignment that is over."""
    if view.phase != "async-assign":
        return None
    if all(task.final for task in view.tasks):
        done = sum(task.state == "succeeded" for task in view.tasks)
        return Speak(*view.me, text=f"{done} of {len(view.tasks)} tasks are done; going on.")
    fresh = [task for task in view.tasks if task.id not in talk.seen]
    running = tuple(task.id for task in fresh if not task.final)
    wait, talk.wait = talk.wait, "none"
    if view.problem or not running or wait == "none" or (wait == "any" and len(running) < len(fresh)):
        return None
    return Await(running[: limits.STEP_TASKS_MAX], wait)


def _again(reply: Reply, fault: PeerError) -> tuple[Message, Message]:
    """Its own answer, cut, and what is wrong with it."""
    return Message("assistant", reply.text[:2_000] or "(nothing)"), complaint(str(fault))


def _spent(usage: Usage) -> Spent:
    return Spent(tokens=usage.tokens, calls=usage.calls)
