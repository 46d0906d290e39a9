"""The ways to meet the needs, laid over what was done so far.

    need ── best way ──> has a part failed for good? ── no ──> orders for the parts whose inputs are there
                 ^                    │ yes
                 └── the best way without it (and without a fresh ONCE part, where one was given out)

A part is tried on one member and once more on another; a part that takes all members is given to each once.
"""

from collections.abc import Iterable, Sequence

from ioa_p2p.mind.chain import Agent, Chain, Offered, Part, sources
from ioa_p2p.mind.needs import Need, Needs
from ioa_p2p.steps import MemberView, Order, Source, TaskView, View

_TRIES_MAX = 2  # the first and one retry on another member


class Work:
    """needs: of the view's goal, in the market of its members."""

    def __init__(self, view: View, needs: Needs) -> None:
        self.view = view
        self.needs = needs
        self._members = {(member.node, member.agent): member for member in view.members}
        self._tasks = _by_part(view.tasks, needs.market.parts)
        self._tried: dict[Need, list[Part]] = {need: [] for need in needs.all}
        self.ways = {need: self._way(need) for need in needs.all}

    # -- what became of a need

    def is_met(self, need: Need) -> bool:
        return bool(self.answers(need))

    def answers(self, need: Need) -> list[TaskView]:
        """Tasks whose result meets it."""
        way = self.ways[need]
        return self.results([way.last]) if way else []

    def is_told_with_another(self, need: Need) -> bool:
        """Its answer went into one that is met; or neither is met, and the other says why."""
        return any(self.is_met(other) or not self.is_met(need) for other in self.needs.holders(need))

    def lacks(self, need: Need) -> list[TaskView]:
        """Tasks for it that did not succeed and that nobody made good: where all members are taken each counts."""
        way = self.ways[need] or need.first
        parts = [*self._tried[need], *(way.parts if way else ())]
        return [
            task for part in dict.fromkeys(parts) for task in self.tasks(part) if task.state != "succeeded"
            if (way and part in way.all_of) or not (self.is_met(need) or self.results([part]))
        ]  # fmt: skip

    # -- ways

    def _way(self, need: Need) -> Chain | None:
        """The best way on which nothing has failed for good."""
        without, given = frozenset[Part](), False
        while (way := need.way(without)) is not None:
            dead = {part for part in way.parts if self._is_dead(part, way)}
            fresh = {part for part in way.parts if part.effect == "once" and not self.tasks(part)}
            given = given or any(part.effect == "once" and self.tasks(part) for part in way.parts)
            if given and (dead or without):
                without |= fresh
            if not dead and without.isdisjoint(way.parts):
                return way
            self._tried[need] += [part for part in way.parts if part in dead]
            without |= dead
        return None

    def _is_dead(self, part: Part, way: Chain) -> bool:
        """It was tried as often as it may be, and nothing came out."""
        tasks = self.tasks(part)
        over = bool(tasks) and all(task.final for task in tasks)
        return over and not self.results([part]) and not self._takers(part, way)

    # -- orders

    def ready(self) -> list[Order]:
        """Everything that can be given out now, each part once whoever needs it."""
        placed: dict[Part, tuple[Need, Chain]] = {}
        for need, way in self._open_ways():
            for part in way.parts:
                placed.setdefault(part, (need, way))
        return [
            self._order(part, member, need, way)
            for part, (need, way) in placed.items() if self._is_fed(part, way)
            for member in self._takers(part, way)
        ]  # fmt: skip

    def planned(self, part: Part, way: Chain) -> list[MemberView]:
        """Who is to do it."""
        providers = self._providers(part)
        return providers if part in way.all_of else providers[:1]

    def _providers(self, part: Part) -> list[MemberView]:
        """Who could do it: linked ones first, then the cheapest bid, then who has least to do; between equals the
        roster's order, which is that of the bids and of the search."""
        members = [self._members[each.by] for each in part.providers]
        return sorted(members, key=lambda one: (not one.here, one.cost, self._load((one.node, one.agent))))

    def _takers(self, part: Part, way: Chain) -> list[MemberView]:
        """To whom it can be given now, whether or not its inputs are there."""
        tasks = self.tasks(part)
        tried = {(task.node, task.agent) for task in tasks}
        fresh = [one for one in self._providers(part) if (one.node, one.agent) not in tried]
        if part in way.all_of:
            return fresh
        return fresh[:1] if _may_try(part, tasks) else []

    def _order(self, part: Part, member: MemberView, need: Need, way: Chain) -> Order:
        inputs = tuple(self._source(each, givers) for each, givers in sources(way, part))
        return Order(member.node, member.agent, part.name, self._told(part, need), inputs, pinned=part in way.all_of)

    def _source(self, type_name: str, givers: Sequence[Part]) -> Source:
        results = tuple(task.id for task in self.results(givers))
        return Source(type_name.rstrip("*"), results if type_name.endswith("*") else results[:1])

    def _told(self, part: Part, need: Need) -> str:
        """Of several needs only those that the part works for."""
        outer = [each for each in self.needs.outer if (way := self.ways[each]) is not None and part in way.parts]
        return self.needs.told(outer[0] if outer else need) if len(outer) < 2 else self.needs.goal

    # -- inputs

    def _is_fed(self, part: Part, way: Chain) -> bool:
        """Whoever gives it something has given all that will come, and each input has something."""
        return all(
            bool(self.results(givers)) and all(self._is_settled(giver, way) for giver in givers)
            for _, givers in sources(way, part)
        )

    def _is_settled(self, part: Part, way: Chain) -> bool:
        """Nothing more will come from it."""
        tasks = self.tasks(part)
        return bool(tasks) and all(task.final for task in tasks) and not self._takers(part, way)

    def may_go_on_early(self, open_tasks: frozenset[bytes]) -> bool:
        """Some part waits for only a few of these."""
        waits = (
            open_tasks & self._below(part, way)
            for _, way in self._open_ways() for part in way.parts if not self.tasks(part)
        )  # fmt: skip
        return any(below and below < open_tasks for below in waits)

    def _below(self, part: Part, way: Chain) -> frozenset[bytes]:
        """Ids of the tasks it waits for, directly or not."""
        found, queue = set[Part](), [part]
        while queue:
            givers = {giver for _, givers in sources(way, queue.pop()) for giver in givers} - found
            found |= givers
            queue += givers
        return frozenset(task.id for giver in found for task in self.tasks(giver))

    # -- looking

    def tasks(self, part: Part) -> Sequence[TaskView]:
        return self._tasks.get(part, ())

    def results(self, parts: Iterable[Part]) -> list[TaskView]:
        return [task for part in parts for task in self.tasks(part) if task.state == "succeeded"]

    def _open_ways(self) -> list[tuple[Need, Chain]]:
        return [(need, way) for need, way in self.ways.items() if way and not self.is_met(need)]

    def _load(self, agent: Agent) -> int:
        return sum((task.node, task.agent) == agent for task in self.view.tasks if not task.final)


def market_offers(view: View) -> list[Offered]:
    """What the members of a team offer."""
    return [
        Offered(one.node, one.agent, skill, f"{one.agent} {one.description}", one.cost, one.here)
        for one in view.members for skill in one.skills
    ]  # fmt: skip


def _may_try(part: Part, tasks: Sequence[TaskView]) -> bool:
    """Again only where another try could help and cannot do harm."""
    helps = all(task.final and task.state != "succeeded" and task.retry for task in tasks)
    return not tasks or (helps and part.effect != "once" and len(tasks) < _TRIES_MAX)


def _by_part(tasks: Iterable[TaskView], parts: Sequence[Part]) -> dict[Part, list[TaskView]]:
    """A task whose member is none any more counts for every part of its name: nothing is done twice for that."""
    known = {(offer.node, offer.agent, part.name): part for part in parts for offer in part.providers}
    found: dict[Part, list[TaskView]] = {}
    for task in tasks:
        part = known.get((task.node, task.agent, task.skill))
        for each in [part] if part else [each for each in parts if each.name == task.skill]:
            found.setdefault(each, []).append(task)
    return found
