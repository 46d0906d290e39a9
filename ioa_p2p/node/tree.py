"""Which team works for which, as far as this node knows: its own teams, and the children that their tasks name.

roster ── ancestors ──> the team above        tasks of skills that nest ──> teams below, and theirs if known
"""

from collections.abc import Mapping
from typing import Any

from ioa_p2p.team.team import Team
from ioa_p2p.wire.ids import nested_team, node_text


def parent(team: Team | None) -> str:
    """Hex id of the team above, or empty."""
    ancestors = team.state.roster.ancestors if team is not None else ()
    return ancestors[-1].hex() if ancestors else ""


def children(teams: Mapping[bytes, Team], team: Team | None) -> list[dict[str, Any]]:
    """Of each task's newest attempt, oldest first. The path of a team is at most 3 long, so this ends."""
    state = team.state if team is not None else None
    rows = [row for row in state.tasks.values() if state.nests(row.spec)] if state is not None else []
    below = [(row, nested_team(row.spec.key, row.spec.node, row.spec.attempt)) for row in rows]
    return [
        {
            "team": child.hex(),
            "task": row.spec.id.hex(),
            "agent": row.spec.agent,
            "node": node_text(row.spec.node),
            "state": row.state.value,
            "children": children(teams, teams.get(child)),
        }
        for row, child in below
    ]
