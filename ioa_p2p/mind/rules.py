"""The planner that needs no model: backward chaining, then the obvious next step. Deterministic.

goal ── wants ──> queries, roles          View ── next_step ──> say the plan | give out what is ready (async
when several, sync when one) | wait for what runs | one retry elsewhere | conclude, honestly
"""

from collections.abc import Sequence

from ioa_p2p.mind.chain import Chain, Market, Offered, Part, sources
from ioa_p2p.mind.planner import introduction
from ioa_p2p.steps import (
    Assign,
    Await,
    Candidate,
    Conclude,
    FoundAgent,
    MemberView,
    Order,
    Planned,
    Role,
    Source,
    Speak,
    Step,
    TaskView,
    Turn,
    View,
    Wants,
)
from ioa_p2p.wire.ids import node_short

_QUERIES_MAX = 24
_TRIES_MAX = 2  # the first and one retry on another member
_ASSIGN_MAX = 16


class Rules:
    """The embedded default planner; see `wants` and `next_step` for what it does."""

    async def wants(self, goal: str, found: Sequence[FoundAgent], searched: frozenset[str]) -> Wants:
        return wants(goal, found, searched)

    async def next_step(self, view: View) -> Planned:
        return Planned(next_step(view))

    async def speak(self, turn: Turn) -> str:
        return introduction(turn)


# -- before there is a team


def wants(goal: str, found: Sequence[FoundAgent], searched: frozenset[str] = frozenset()) -> Wants:
    """What to search next, and the roles as far as they can be filled from what was found."""
    offers = [
        Offered(each.node, each.card.name, skill, f"{each.card.name} {each.card.description}")
        for each in found
        for skill in each.card.skills
    ]
    market = Market(goal, offers)
    queries = [f"word:{word}" for word in market.goal_words] + [f"out:{each}" for each in market.wanted_types()]
    queries = queries[:_QUERIES_MAX]
    chain = market.best()
    addresses = {each.node: each.addresses for each in found}
    roles = tuple(_role(part, chain, addresses) for part in chain.parts) if chain else ()
    done = chain is not None and searched.issuperset(queries)
    return Wants(tuple(queries), roles, done, tuple(market.missing_types()))


def _role(part: Part, chain: Chain, addresses: dict[bytes, tuple[str, ...]]) -> Role:
    unique = dict.fromkeys((each.node, each.agent) for each in part.providers)
    candidates = tuple(Candidate(node, agent, addresses[node]) for node, agent in unique)
    return Role(part.name, (part.name,), candidates, 0 if part.name in chain.all_of else 1)


# -- in the team


def next_step(view: View) -> Step:
    """The step that brings the goal nearest. Always answers; the same view gives the same step."""
    chain = _market(view).best()
    if chain is None:
        return Conclude("failed", "No member's skills lead to this goal.", _evidence(view))
    job = _Job(view, chain)
    if not view.lines:
        return Speak(*view.me, text=job.plan_text())
    open_tasks = tuple(task.id for task in view.tasks if not task.final)
    ready = job.ready()[:_ASSIGN_MAX]
    if ready and not open_tasks and view.phase == "async-assign":
        return Speak(*view.me, text=job.status_text())
    if ready:
        return Assign("sync" if len(ready) == 1 and not open_tasks else "async", tuple(ready))
    if open_tasks:
        return Await(open_tasks[:_ASSIGN_MAX])
    if view.phase != "discussion":
        return Speak(*view.me, text=job.status_text())
    return job.conclusion()


def _market(view: View) -> Market:
    offers = [
        Offered(member.node, member.agent, skill, f"{member.agent} {member.description}")
        for member in view.members
        for skill in member.skills
    ]
    return Market(view.goal, offers)


class _Job:
    """The chain laid over what was done so far."""

    def __init__(self, view: View, chain: Chain) -> None:
        self._view = view
        self._chain = chain
        self._members = {(member.node, member.agent): member for member in view.members}

    def ready(self) -> list[Order]:
        """Everything that can be given out now."""
        return [order for part in self._chain.parts if self._inputs_settled(part) for order in self._orders(part)]

    def _orders(self, part: Part) -> list[Order]:
        if self._is_for_all(part):
            given = {(task.node, task.agent) for task in self._tasks(part)}
            return [self._order(part, one) for one in self._providers(part) if (one.node, one.agent) not in given]
        tasks = self._tasks(part)
        if any(not task.final or task.state == "succeeded" for task in tasks) or not self._may_try(part, tasks):
            return []
        tried = {(task.node, task.agent) for task in tasks}
        fresh = [one for one in self._providers(part) if (one.node, one.agent) not in tried]
        return [self._order(part, fresh[0])] if fresh else []

    def _may_try(self, part: Part, tasks: list[TaskView]) -> bool:
        """Again only where another try could help and cannot do harm."""
        return len(tasks) < _TRIES_MAX and all(task.retry and part.effect != "once" for task in tasks)

    def _providers(self, part: Part) -> list[MemberView]:
        """Who could do it: linked ones first, then the cheapest bid; between equals the roster's order."""
        members = [self._members[each.node, each.agent] for each in part.providers]
        return sorted(members, key=lambda member: (not member.here, member.cost))

    def _order(self, part: Part, member: MemberView) -> Order:
        inputs = tuple(Source(each, self._results(givers)) for each, givers in sources(self._chain, part))
        return Order(member.node, member.agent, part.name, self._view.goal, inputs, pinned=self._is_for_all(part))

    def _inputs_settled(self, part: Part) -> bool:
        return all(
            any(self._is_settled(giver) and self._results([giver]) for giver in givers)
            and all(self._is_settled(giver) for giver in givers)
            for _, givers in sources(self._chain, part)
        )

    def _is_settled(self, part: Part) -> bool:
        """Nothing more will come from it."""
        tasks = self._tasks(part)
        return bool(tasks) and all(task.final for task in tasks) and not self._orders_left(part)

    def _orders_left(self, part: Part) -> bool:
        return self._inputs_settled(part) and bool(self._orders(part))

    def _results(self, parts: Sequence[Part]) -> tuple[bytes, ...]:
        return tuple(task.id for part in parts for task in self._tasks(part) if task.state == "succeeded")

    def _tasks(self, part: Part) -> list[TaskView]:
        return [task for task in self._view.tasks if task.skill == part.name]

    def _is_for_all(self, part: Part) -> bool:
        return part.name in self._chain.all_of

    # -- words

    def plan_text(self) -> str:
        steps = [f"{part.name} by {self._names(part)}" for part in self._chain.parts]
        return f"Goal: {self._view.goal} Plan: {', then '.join(steps)}."

    def _names(self, part: Part) -> str:
        providers = self._providers(part)
        names = [member.agent for member in (providers if self._is_for_all(part) else providers[:1])]
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

    def status_text(self) -> str:
        done = sum(task.state == "succeeded" for task in self._view.tasks)
        return f"{done} of {len(self._view.tasks)} tasks are done; going on."

    def conclusion(self) -> Conclude:
        """What came out, and what did not: nothing is claimed that no task reported."""
        last = [task for task in self._tasks(self._chain.parts[-1]) if task.state == "succeeded"]
        failed = [task for task in self._view.tasks if task.state != "succeeded" and not self._made_good(task)]
        lacking = "; ".join(map(_lack, failed))
        if not last:
            answer = f"The goal could not be met. {lacking}" if lacking else "The goal could not be met."
            return Conclude("failed", answer, _evidence(self._view))
        answer = last[0].summary or "Done."
        if lacking:
            answer += f"\nWithout: {lacking}."
        return Conclude("partial" if lacking else "done", answer, _evidence(self._view), last[0].id)

    def _made_good(self, failed: TaskView) -> bool:
        """Somebody else did it in the second try."""
        done = any(task.skill == failed.skill and task.state == "succeeded" for task in self._view.tasks)
        return done and all(part.name != failed.skill or not self._is_for_all(part) for part in self._chain.parts)


def _lack(task: TaskView) -> str:
    """Which agent of which device did not do what, and why."""
    return f"{task.skill} by {task.agent}@{node_short(task.node)}: {task.reason or task.state}"


def _evidence(view: View) -> tuple[tuple[bytes, str], ...]:
    return tuple((task.id, task.summary) for task in view.tasks if task.state == "succeeded" and task.summary)
