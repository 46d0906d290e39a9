"""What a change of the decided state is told as: events for the node, and for the people who watch.

PhaseMoved | TaskMoved | LineHeard | TurnGiven | Ended | RosterMoved ──> events        Refused, Checked ──> none
"""

from typing import Any

from ioa_p2p.team.events import Concluded, LineSaid, PhaseChanged, RosterChanged, TaskChanged, TurnMine
from ioa_p2p.team.state import Change, Ended, LineHeard, PhaseMoved, RosterMoved, TaskMoved, TeamState, TurnGiven
from ioa_p2p.wire.step import Admit, Promote, Remove


def events_of(change: Change, state: TeamState, me: bytes) -> list[Any]:
    """state: after the change. me: our node, for only the one that has the word is told so."""
    team = state.roster.team
    match change:
        case PhaseMoved():
            return [PhaseChanged(team, state.index, change.before, change.after)]
        case TaskMoved(row):
            text = row.outcome.summary if row.outcome is not None else ""
            return [TaskChanged(team, row.spec, row.state.value, True, note=row.reason, text=text)]
        case LineHeard(line):
            return [LineSaid(team, line.turn, line.node, line.agent, line.text)]
        case TurnGiven(turn, discuss) if discuss.node == me:
            return [TurnMine(team, turn, discuss.agent, discuss.prompt)]
        case Ended(conclusion):
            return [Concluded(team, conclusion)]
        case RosterMoved():
            return [_roster_changed(team, state, change)]
        case _:
            return []


def _roster_changed(team: bytes, state: TeamState, moved: RosterMoved) -> RosterChanged:
    how = {Admit: "admitted", Promote: "promoted", Remove: "removed"}[type(moved.step)]
    cut = moved.step.cut if isinstance(moved.step, Remove) else 0
    agents = tuple(member.agent for member in moved.members)
    return RosterChanged(team, how, moved.node, agents, state.roster, cut)
