"""A goal that was not met is tried once more, with others.

    first team ── failed or partial, by somebody's failure? time left? nothing that happens only once? ──> Missing
    Missing ── search, without those who failed or refused ──> second team, told in the first one's story ──> merged

The second team's id follows from the first one's: who restarts between them begins no third, and goes on with the
second. docs/planner.md, "A second try".
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ioa_p2p.effects import Now
from ioa_p2p.mind.rules import unmet
from ioa_p2p.team.plan import view_of
from ioa_p2p.team.state import TeamState
from ioa_p2p.team.tasks import TaskState
from ioa_p2p.wire.ids import node_text
from ioa_p2p.wire.spending import Allowance

SECONDS_MIN = 10.0  # that must be left, or a second team could only form and end
_FAILED = frozenset({TaskState.FAILED, TaskState.DEAD_LETTER, TaskState.UNKNOWN, TaskState.EXPIRED})

Agent = tuple[bytes, str]
"""(node, agent)."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What a second team is for. without: who failed or refused. until: wall seconds. budget: what is left."""

    goal: str
    without: frozenset[Agent]
    until: float
    budget: Allowance


def second_team(first: bytes) -> bytes:
    """Its 16 byte id."""
    return hashlib.blake2b(first, digest_size=16, person=b"ioa-second-team").digest()


def missing_in(state: TeamState, refused: frozenset[Agent], now: Now) -> Missing | None:
    """What a concluded team of ours lacks and others could do; None: nothing, or it is no matter of others."""
    rows, roster = state.tasks.values(), state.roster
    without = refused | frozenset((row.spec.node, row.spec.agent) for row in rows if row.state in _FAILED)
    if not _is_worth_it(without, roster.deadline, now) or any(row.spec.effect == "once" for row in rows):
        return None
    if state.conclusion is None or state.conclusion.outcome not in ("partial", "failed") or roster.ancestors:
        return None
    launcher = next(member for member in roster.members if member.node == roster.launcher)
    me = (launcher.node, launcher.agent)
    goals = unmet(view_of(state, me, now, lambda node: True, {}, ""))
    usable = goals and not state.budget.exhausted
    return Missing(". ".join(goals), without, roster.deadline, state.budget.free) if usable else None


def missing_after_launch(
    goal: str, refused: frozenset[Agent], until: float, budget: Allowance, now: Now
) -> Missing | None:
    """The same when no team formed."""
    return Missing(goal, refused, until, budget) if _is_worth_it(refused, until, now) else None


def _is_worth_it(without: frozenset[Agent], until: float, now: Now) -> bool:
    return bool(without) and until - now.wall >= SECONDS_MIN


def told(team: bytes, missing: Missing) -> dict[str, Any]:
    """As the control socket tells it. docs/control.md, "Events of a team"."""
    without = [{"agent": agent, "node": node_text(node)} for node, agent in sorted(missing.without)]
    return {"kind": "again", "team": team.hex(), "goal": missing.goal, "without": without}


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """One result of both: what either brought counts, and nothing of what failed is kept back."""
    both = [first, second]
    best = first if first["outcome"] == "concluded" != second["outcome"] else second
    done = second.get("why") == "done"
    lists = {key: [*_all(both, key)] for key in ("files", "credits", "evidence")}
    return {
        **first,
        "outcome": best["outcome"],
        "why": "done" if done else best.get("why", ""),
        "answer": second["answer"] if done and first["outcome"] != "concluded" else _answers(first, second),
        **lists,
        "cost": _sum(both),
        "seconds": round(sum(result.get("seconds", 0.0) for result in both), 1),
    }


def _answers(first: dict[str, Any], second: dict[str, Any]) -> str:
    return f"{first['answer']}\nA second team, with others: {second['answer'] or second['outcome']}"


def _all(results: Iterable[dict[str, Any]], key: str) -> Iterable[Any]:
    return (each for result in results for each in result.get(key, ()))


def _sum(results: Iterable[dict[str, Any]]) -> dict[str, int]:
    costs: list[dict[str, int]] = [result["cost"] for result in results if "cost" in result]
    return {kind: sum(cost[kind] for cost in costs) for kind in ("tokens", "money", "calls")}
