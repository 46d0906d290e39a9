"""The planner that needs no model: backward chaining, then the obvious next step. Deterministic. docs/planner.md.

goal ── wants ──> queries, roles          View ── next_step ──> say the plan | give out what is ready (async
when several, sync when one) | wait for what runs | one retry elsewhere, then another way | conclude, honestly
"""

from collections.abc import Iterable, Iterator, Sequence

from ioa_p2p.mind.chain import Chain, Market, Offered, Part
from ioa_p2p.mind.ending import conclusion
from ioa_p2p.mind.kin import forms
from ioa_p2p.mind.lexicon import lexicon
from ioa_p2p.mind.needs import Need, Needs
from ioa_p2p.mind.planner import introduction
from ioa_p2p.mind.work import Work, market_offers
from ioa_p2p.steps import Assign, Await, Candidate, FoundAgent, Planned, Role, Speak, Step, Turn, View, Wants
from ioa_p2p.wire import limits
from ioa_p2p.wire.words import words

_WORDS_MAX = 16  # of a goal that are searched, the most telling
_QUERIES_MAX = 24  # with the types that lead to what they found
_WIDER_MAX = 24  # of the second search
_OTHER_PARTS_MAX = 8  # of other ways that are hired for the case that the first fails
_END_S = 3.0  # left for a conclusion, so that what is done is told before the deadline ends it


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
    """What to search next, and the roles as far as they can be filled from what was found. found: the most trusted
    first; between equals they are asked in this order."""
    needs = Needs(goal, Market(_offers(found)))
    types = dict.fromkeys(each for need in needs.all for each in need.fit.wanted_types())
    queries = [f"word:{word}" for word in _telling(goal)] + [f"out:{each}" for each in types]
    queries = queries[:_QUERIES_MAX]
    unserved = needs.unserved
    if unserved and searched.issuperset(queries):
        queries += _wider(unserved)
    missing = dict.fromkeys(each for need in needs.all for each in need.fit.missing_types())
    addresses = {each.node: each.addresses for each in found}
    done = not unserved and searched.issuperset(queries)
    texts = tuple(need.text for need in unserved)
    return Wants(tuple(queries), tuple(_roles(needs, addresses)), done, tuple(missing), texts)


def unmet(view: View) -> tuple[str, ...]:
    """What of the goal has no answer in a view, in the goal's words."""
    work = _work(view)
    return tuple(need.text for need in work.needs.all if not (work.is_met(need) or work.is_told_with_another(need)))


def _offers(found: Iterable[FoundAgent]) -> list[Offered]:
    return [
        Offered(each.node, each.card.name, skill, f"{each.card.name} {each.card.description}")
        for each in found
        for skill in each.card.skills
    ]


def _telling(text: str) -> list[str]:
    """Its most telling words, in their order."""
    asked = list(dict.fromkeys(words(text)))
    kept = set(sorted(asked, key=lambda word: -lexicon().weight(word))[:_WORDS_MAX])
    return [word for word in asked if word in kept]


def _wider(unserved: Iterable[Need]) -> list[str]:
    """Where else there may be somebody for these: under types and skills of that name, and words of one family."""
    asked = list(dict.fromkeys(word for need in unserved for word in _telling(need.text)))
    named = [f"{kind}:{word}" for word in asked for kind in ("out", "skill")]
    kin = [f"word:{form}" for word in asked for form in forms(word)]
    return list(dict.fromkeys([*named[: _WIDER_MAX // 2], *kin]))[:_WIDER_MAX]


def _roles(needs: Needs, addresses: dict[bytes, tuple[str, ...]]) -> Iterator[Role]:
    """One a part: first all of the best ways, then what other ways have beside them."""
    firsts = [(need, need.first) for need in needs.outer if need.first]
    others = {(need, part): need.way(frozenset([part])) for need, way in firsts for part in way.parts}
    all_of = frozenset[Part]().union(*(way.all_of for _, way in firsts))
    used = dict.fromkeys(part for _, way in firsts for part in way.parts)
    for part in used:
        needed = all(part in way.parts and others[need, part] is None for need, way in firsts)
        yield _role(part, addresses, count=0 if part in all_of else 1, needed=needed)
    beside = dict.fromkeys(part for way in others.values() if way for part in way.parts if part not in used)
    for part in list(beside)[:_OTHER_PARTS_MAX]:
        yield _role(part, addresses, count=1, needed=False)


def _role(part: Part, addresses: dict[bytes, tuple[str, ...]], *, count: int, needed: bool) -> Role:
    unique = dict.fromkeys(each.by for each in part.providers)
    candidates = tuple(Candidate(node, agent, addresses[node]) for node, agent in unique)
    return Role(part.name, (part.name,), candidates, count, needed)


# -- in the team


def next_step(view: View) -> Step:
    """The step that brings the goal nearest. Always answers; the same view gives the same step."""
    work = _work(view)
    if not any(need.first for need in work.needs.all):
        return conclusion(work)
    if not view.lines:
        return Speak(*view.me, text=_plan_text(work))
    open_tasks = tuple(task.id for task in view.tasks if not task.final)
    has_answer = any(map(work.is_met, work.needs.outer))
    stop = _stop(view)
    ready = [] if stop else work.ready()[: _orders_max(view)]
    if open_tasks and has_answer and view.seconds_left <= _END_S:
        ready, open_tasks, stop = [], (), "the time is over"
    if ready and not open_tasks and view.phase == "async-assign":
        return Speak(*view.me, text=_status_text(view))
    if ready:
        alone = len(ready) == 1 and not open_tasks and not has_answer
        return Assign("sync" if alone else "async", tuple(ready))
    if open_tasks:
        return _wait(work, open_tasks[: limits.STEP_TASKS_MAX], has_answer=has_answer)
    if view.phase != "discussion":
        return Speak(*view.me, text=_status_text(view))
    return conclusion(work, stop)


def _work(view: View) -> Work:
    return Work(view, Needs(view.goal, Market(market_offers(view))))


def _wait(work: Work, open_tasks: tuple[bytes, ...], *, has_answer: bool) -> Await:
    """For all of them, or for any where that lets something begin. An answer that is there is told in time."""
    mode = "any" if work.may_go_on_early(frozenset(open_tasks)) else "all"
    seconds = int(work.view.seconds_left - _END_S) if has_answer else 0
    return Await(open_tasks, mode, max(1, seconds) if has_answer else 0)


def _stop(view: View) -> str:
    """Why no further task can be given out, or an empty text. Who was given nothing from the start, as tokens where
    no model works, has not used it up."""
    left, spent = view.left, view.spent
    over = {"tokens": left.tokens == 0 < spent.tokens, "money": left.money == 0 < spent.money, "calls": left.calls == 0}
    if kind := next((kind for kind in over if over[kind]), ""):
        return f"the budget of {kind} is spent"
    full = len(view.tasks) >= limits.TEAM_TASKS_MAX
    return f"a team does {limits.TEAM_TASKS_MAX} tasks at most" if full else ""


def _orders_max(view: View) -> int:
    """In one step: each is one call at least."""
    calls = limits.STEP_TASKS_MAX if view.left.calls is None else view.left.calls
    return min(limits.STEP_TASKS_MAX, calls, limits.TEAM_TASKS_MAX - len(view.tasks))


# -- words


def _plan_text(work: Work) -> str:
    served = [(need, need.first) for need in work.needs.outer if need.first]
    plans = [", then ".join(f"{part.name} by {_names(work, part, way)}" for part in way.parts) for _, way in served]
    if len(work.needs.outer) == 1:
        return f"Goal: {work.view.goal} Plan: {plans[0]}."
    told = [f'for "{need.text}": {plan}' for (need, _), plan in zip(served, plans, strict=True)]
    told += [f'for "{need.text}": nobody here offers it' for need in work.needs.unserved]
    return f"Goal: {work.view.goal} Plan: {'; '.join(told)}."


def _names(work: Work, part: Part, way: Chain) -> str:
    names = [member.agent for member in work.planned(part, way)]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _status_text(view: View) -> str:
    done = sum(task.state == "succeeded" for task in view.tasks)
    return f"{done} of {len(view.tasks)} tasks are done; going on."
