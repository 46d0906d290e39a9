"""Verbs of the control socket that speak of tasks: list, show, watch, and what to do about dead letters.

Arguments and answers: docs/control.md.
"""

from collections.abc import Mapping
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.node import letters, telling
from ioa_p2p.node.arguments import flag, seconds, text, whole
from ioa_p2p.node.control import Emit
from ioa_p2p.node.node import Node
from ioa_p2p.node.story import Story
from ioa_p2p.team.team import Team
from ioa_p2p.wire.step import TaskSpec

RETRY_S = 600.0
GOAL_S_MAX = 86_400.0  # a longer goal is a service, not a team


async def _tasks(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    team, only_open = text(args, "team"), flag(args, "open")
    if flag(args, "dead"):
        return {"tasks": [letters.told(one) for one in node.letters.all()]}
    stories = [find_story(node, team)] if team else node.stories.all()
    teams = node.teams.teams
    rows = [row for story in reversed(stories) for row in task_rows(story.team, teams.get(story.team), story)]
    return {"tasks": [row for row in rows if not (only_open and row["final"])]}


async def _task(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    prefix = text(args, "task")
    try:
        team, task = find_task(node, prefix)
    except UsageError as fault:
        if fault.code != "no-task":
            raise
        return letters.told(node.letters.find(prefix))  # its team may be forgotten, the letter is not
    row, story = team.state.tasks[task], node.stories.of(team.team)
    told = next(one for one in task_rows(team.team, team, story) if one["task"] == task.hex())
    outcome = row.outcome
    files = [{"name": blob.name, "bytes": blob.size} for blob in outcome.blobs] if outcome else []
    return {**told, "goal": row.spec.goal, "summary": outcome.summary if outcome else "", "files": files,
            "reason": row.reason or (outcome.reason if outcome else ""),
            "budget": telling.amounts(row.spec.budget),
            "cost": telling.amounts(outcome.spent) if outcome and outcome.spent else {}}  # fmt: skip


async def _watch(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    team, task = find_task(node, text(args, "task"))
    life, after = whole(args, "life", 0, 0, 1 << 62), whole(args, "after", 0, 0, 1 << 62)
    events = node.stories.of(team.team).task(task.hex())
    emit({"kind": "watching", "task": task.hex(), "life": node.boot})
    if life and life != node.boot:
        emit({"kind": "gap", "from": after + 1, "to": None})
    if events.last or not team.state.tasks[task].state.final:  # else its story was given up to make room
        await events.follow(emit, after if life == node.boot else None)
    return await _task(node, {"task": task.hex()}, emit)


async def _forget(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    letter = node.letters.find(text(args, "task"))
    node.letters.forget(letter)
    return {"forgotten": letter.spec.id.hex()}


async def _retry(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """By its owner's word alone: the goal is asked anew, and the letter is done with."""
    letter = node.letters.find(text(args, "task"))
    if not letter.ours:
        hint = "`ioa-p2p task forget` lets go of it here"
        raise UsageError("not-ours", "only the node that asked for the goal can ask again", hint)
    story = node.ask(letter.wanted, seconds(args, "timeout_s", RETRY_S, GOAL_S_MAX))
    node.letters.forget(letter)
    return {"team": story.team.hex(), "goal": letter.wanted}


HANDLERS = {
    "tasks": _tasks, "task": _task, "watch": _watch, "forget": _forget, "retry": _retry,
}  # fmt: skip


def task_rows(team_id: bytes, team: Team | None, story: Story) -> list[dict[str, Any]]:
    """Decided tasks, newest first, with what was last reported of each."""
    if team is None:
        return []
    last = {event["task"]: event for event in story.events if event["kind"] == "task"}
    return [
        _task_row(team_id, row.spec, str(row.state), row.state.final, last)
        for row in reversed(team.state.tasks.values())
    ]


def _task_row(
    team_id: bytes, spec: TaskSpec, decided: str, final: bool, last: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    told = last.get(spec.id.hex(), {})
    state = decided if final else told.get("state", decided)
    return {**telling.spec(spec), "team": team_id.hex(), "state": state, "final": final,
            "fraction": told.get("fraction"), "note": told.get("note", "")}  # fmt: skip


def find_story(node: Node, prefix: str) -> Story:
    """The team with this id or beginning of one; the newest without. Raises UsageError('no-team' | 'ambiguous')."""
    found = [story for story in node.stories.all() if story.team.hex().startswith(prefix.lower())]
    if not found:
        message = f"no team {prefix[:40]!r} here" if prefix else "no team yet"
        raise UsageError("no-team", message, "see `ioa-p2p team list`")
    if prefix and len(found) > 1:
        raise UsageError("ambiguous", f"{len(found)} teams begin with {prefix[:40]!r}", "write more of the id")
    return found[-1]


def find_task(node: Node, prefix: str) -> tuple[Team, bytes]:
    """Raises UsageError('no-task' | 'ambiguous')."""
    everything = [(team, task) for team in node.teams.teams.values() for task in team.state.tasks]
    found = [(team, task) for team, task in everything if prefix and task.hex().startswith(prefix.lower())]
    if not found:
        raise UsageError("no-task", f"no task {prefix[:40]!r} here", "see `ioa-p2p task list`")
    if len(found) > 1:
        raise UsageError("ambiguous", f"{len(found)} tasks begin with {prefix[:40]!r}", "write more of the id")
    return found[0]
