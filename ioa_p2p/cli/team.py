"""`ioa-p2p team`: the teams this node takes part in."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from ioa_p2p.cli import transcript
from ioa_p2p.cli.here import Here, node_command

BELOW = "└ "


@click.group()
def command() -> None:
    """The teams this node takes part in."""


@node_command(command, name="list")
def list_teams(here: Here) -> None:
    """All teams, newest first, each with those that work for it below."""
    from ioa_p2p.cli.output import columns

    answer = here.ask("teams")
    rows = [
        (BELOW * depth + team["team"], team.get("outcome") or team["phase"], team["term"], team["tasks_open"],
         team["goal"][:60])
        for depth, team in _as_tree(answer["teams"])
    ]  # fmt: skip
    here.out.result(answer, columns(("TEAM", "STATE", "TERM", "OPEN TASKS", "GOAL"), rows))


@node_command(command, name="show")
@click.argument("team", required=False)
def show(here: Here, team: str | None) -> None:
    """One team, the newest unless named. Goal, members, coordinator, tasks, what was said and decided."""
    answer = here.ask("team", {"team": team} if team else {})
    here.out.result(answer, _text(answer))


@node_command(command, name="cancel")
@click.argument("team")
def cancel(here: Here, team: str) -> None:
    """End a team's work: its running tasks first, and the teams below."""
    here.out.result(here.ask("cancel", {"team": team}), f"team {team}: cancel is under way")


@node_command(command, name="add")
@click.argument("team")
@click.argument("agent", metavar="AGENT@NODE")
@click.option("--may-coordinate", is_flag=True, help="It may lead the team, if it is willing.")
def add(here: Here, team: str, agent: str, may_coordinate: bool) -> None:
    """Call one more agent into a team that works. For its launcher and for the coordinator's owner."""
    answer = here.ask("team-add", {"team": team, "agent": agent, "may_coordinate": may_coordinate})
    text = f"team {team}: {agent} is being called in, see `ioa-p2p team show {team}`"
    here.out.result(answer, here.spelt(text))


@node_command(command, name="remove")
@click.argument("team")
@click.argument("node")
def remove(here: Here, team: str, node: str) -> None:
    """Put a node out of a team, for good. Its tasks go to others; what it said until now stays."""
    answer = here.ask("team-remove", {"team": team, "node": node})
    here.out.result(answer, f"team {team}: {node} is being removed")


command.add_command(transcript.export)
command.add_command(transcript.replay)


@node_command(command, name="reform")
@click.argument("team")
def reform(here: Here, team: str) -> None:
    """Let a team go on without those who are gone. It is formed anew of all that can be reached; by itself that happens
    a while after the majority was lost. What others decide meanwhile, out of reach, does not count."""
    answer = here.ask("team-reform", {"team": team})
    here.out.result(answer, f"team {team}: its members are asked what they hold, see `ioa-p2p team show {team}`")


def _text(team: dict[str, Any]) -> str:
    from ioa_p2p.cli.output import columns, one_line, pairs

    listed = ("members", "tasks", "chat", "gaps", "history", "children", "notes")
    rest = {key: value for key, value in team.items() if key not in listed}
    parts = [pairs(rest)]
    parts.append(columns(("MEMBER", "NODE"), [(member["agent"], member["node"]) for member in team.get("members", [])]))
    parts.append("\n".join(f"note: {note}" for note in team.get("notes", [])))
    tasks = [(task["task"], task["skill"], task["state"], task["agent"]) for task in team.get("tasks", [])]
    parts.append(columns(("TASK", "SKILL", "STATE", "AGENT"), tasks))
    below = [(BELOW * depth + child["team"], child["state"], child["agent"]) for depth, child in _below(team)]
    parts.append(columns(("TEAM BELOW", "TASK", "AGENT"), below) if below else "")
    parts.append("\n".join(one_line(f"{line['who']}: {line['text']}") for line in team.get("chat", [])))
    gaps = [(gap["node"], f"{gap['first']} to {gap['last']}") for gap in team.get("gaps", [])]
    parts.append(columns(("NOBODY HAS LINES OF", "NUMBERS"), gaps) if gaps else "")
    return "\n\n".join(part for part in parts if part)


def _as_tree(teams: Sequence[dict[str, Any]], parent: str = "", depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """(how far below, team), children right after their parent; one whose parent is not here stands by itself."""
    known = {team["team"] for team in teams}
    for team in teams:
        above = team.get("parent", "")
        if (above if above in known else "") == parent:
            yield depth, team
            yield from _as_tree(teams, team["team"], depth + 1)


def _below(team: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    for child in team.get("children", []):
        yield depth, child
        yield from _below(child, depth + 1)
