"""Teams that this node remembers only in part: it goes on in them as a member that lost its disk.

rows lost by name ── team ──> its vote and log are dropped ──┐
perhaps others ── every team ────────────────────────────────┴──> never votes in it again, learns it from the others
"""

from collections.abc import Iterable

from ioa_p2p.effects import Rows, Save
from ioa_p2p.team.decisions import spaces
from ioa_p2p.team.row import SPACE, TeamRow
from ioa_p2p.wire import codec


def doubt(rows: Rows, lost: Iterable[tuple[str, bytes]], *, all_teams: bool) -> list[Save]:
    """What to save before the team machine is made. lost: (space, key) of rows known to be lost."""
    names = {space for space, _ in lost}
    return [save for team, value in rows(SPACE) for save in _doubt_one(rows, team, value, names, all_teams)]


def _doubt_one(rows: Rows, team: bytes, value: bytes, names: set[str], all_teams: bool) -> list[Save]:
    *held, archive = spaces(team)
    names = names - {archive}  # nothing that we promised depends on old entries: what is left of them stays
    saves = [Save(space, key, None) for space in held if space in names for key, _ in rows(space)]
    if not all_teams and not any(team.hex() in name.split("/") for name in names):
        return []
    row = codec.replace(codec.decode(value, TeamRow), lost_disk=True)
    return [Save(SPACE, team, codec.encode(row)), *saves]
