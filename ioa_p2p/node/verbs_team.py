"""Verbs of the control socket that change a team, or our part in it. docs/control.md, "Verbs".

team-add ── the agent's record ──> AddMember        team-remove ──> RemoveMember        stand-aside ──> StandAside
team-reform ──> ReformTeam
"""

from collections.abc import Mapping
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.node import verbs_find
from ioa_p2p.node.arguments import flag, text
from ioa_p2p.node.control import Emit
from ioa_p2p.node.node import Node
from ioa_p2p.team.commands import AddMember, ReformTeam, RemoveMember, StandAside
from ioa_p2p.team.team import Team
from ioa_p2p.wire import ids

Args = dict[str, Any]


async def add(node: Node, args: Args, emit: Emit) -> dict[str, Any]:
    """What comes of it is told as events of the team."""
    team = _team(node, text(args, "team"))
    shown = await verbs_find.show(node, {"agent": text(args, "agent")}, emit)
    skills, addresses = tuple(skill["name"] for skill in shown["skills"]), tuple(shown["addresses"])
    key = ids.node_from_text(shown["node"])
    leads = flag(args, "may_coordinate")
    node.teams_driver.command(AddMember(team.team, key, shown["agent"], skills, addresses, leads))
    return {"team": team.team.hex(), "agent": shown["agent"], "node": shown["node"]}


async def remove(node: Node, args: Args, emit: Emit) -> dict[str, Any]:
    """The chat of who is removed counts as far as we have it."""
    team = _team(node, text(args, "team"))
    key = _member(team, text(args, "node").lower())
    cut = node.gossip.seq(team.team, key)
    node.teams_driver.command(RemoveMember(team.team, key, cut, "asked by the owner"))
    return {"team": team.team.hex(), "node": ids.node_text(key), "cut": cut}


async def reform(node: Node, args: Args, emit: Emit) -> dict[str, Any]:
    """What comes of it is told as events of the team."""
    team = _team(node, text(args, "team"))
    node.teams_driver.command(ReformTeam(team.team))
    return {"team": team.team.hex(), "asked": [ids.node_text(one) for one in team.election.electorate.voters]}


async def stand_aside(node: Node, args: Args, emit: Emit) -> dict[str, Any]:
    aside = flag(args, "aside")
    node.teams_driver.command(StandAside(aside))
    return {"aside": aside}


def _team(node: Node, prefix: str) -> Team:
    """Raises UsageError('no-team' | 'ambiguous')."""
    found = [team for team in node.teams.teams.values() if prefix and team.team.hex().startswith(prefix.lower())]
    if not found:
        raise UsageError("no-team", f"no team {prefix[:40]!r} here", "see `ioa-p2p team list`")
    if len(found) > 1:
        raise UsageError("ambiguous", f"{len(found)} teams begin with {prefix[:40]!r}", "write more of the id")
    return found[0]


def _member(team: Team, prefix: str) -> bytes:
    """Raises UsageError('no-such-member' | 'ambiguous')."""
    found = [node for node in team.state.standing.nodes if prefix and ids.node_text(node).startswith(prefix)]
    if not found:
        raise UsageError("no-such-member", f"no node {prefix[:60]!r} in this team", "see `ioa-p2p team show`")
    if len(found) > 1:
        raise UsageError("ambiguous", f"{len(found)} members begin with {prefix[:60]!r}", "write more of the id")
    return found[0]


HANDLERS: Mapping[str, Any] = {
    "team-add": add,
    "team-remove": remove,
    "team-reform": reform,
    "stand-aside": stand_aside,
}
