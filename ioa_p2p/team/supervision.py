"""A nested team's eye on its launcher, who works for the team above: when it is silent, its work is soon another's.

    launcher's last word ── lease - 2 beats ──> orphaned: start nothing, cancel, conclude ── 1 beat ──> gone
    its last report to the team above ── lease ──> that team gives the task to another member

The last report is at most a beat older than the last word here, and the end is decided at most a beat late. So no two
teams work at the same task. One term's view: a new coordinator counts from its own beginning, for before it led the
launcher had no reason to speak to it.
"""

from ioa_p2p.effects import Now
from ioa_p2p.team.tasks import Profile
from ioa_p2p.wire.roster import Roster


class Supervision:
    """me: the node that leads."""

    def __init__(self, roster: Roster, me: bytes, profile: Profile, now: Now) -> None:
        self._launcher = roster.launcher
        self._applies = bool(roster.ancestors) and me != roster.launcher
        self._patience_s = profile.lease_s - 2 * profile.beat_s
        self._heard_s = now.boot

    def hear(self, now: Now, peer: bytes) -> None:
        if peer == self._launcher:
            self._heard_s = now.boot

    def is_orphaned(self, now: Now) -> bool:
        return self._applies and now.boot > self._heard_s + self._patience_s
