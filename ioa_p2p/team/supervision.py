"""A nested team's eye on its launcher, who works for the team above: when it is silent, its work is soon another's.

    launcher's last word ── lease - 2 beats ──> orphaned: cancel, conclude ── a beat at most ──> gone
    its last report to the team above ── lease ──> that team gives the task to another member
    a coordinator's term begins ── no word yet: start nothing, and a beat later orphaned ── a word ──> as above

The last report is at most a beat older than the last word here, so no two teams work at the same task. Every member
listens all the time, for the next coordinator may be the one that knows when the last one, the launcher, fell silent;
a word in each term is asked for because a launcher has no reason to speak to who does not lead.
"""

from ioa_p2p.effects import Now
from ioa_p2p.team.tasks import Profile
from ioa_p2p.wire.roster import Roster


class Supervision:
    """me: this node."""

    def __init__(self, roster: Roster, me: bytes, profile: Profile) -> None:
        self._launcher = roster.launcher
        self._applies = bool(roster.ancestors) and me != roster.launcher
        self._patience_s = profile.lease_s - 2 * profile.beat_s
        self._first_word_s = profile.beat_s
        self._heard_s = float("-inf")
        self._waits = False  # for its first word since we led

    def lead(self, now: Now) -> None:
        """A term of ours begins. The launcher is given time for a first word, but once: terms may be short."""
        if not self._waits:
            self._heard_s = max(self._heard_s, now.boot - self._patience_s + self._first_word_s)
        self._waits = True

    def hear(self, now: Now, peer: bytes) -> None:
        if peer == self._launcher:
            self._heard_s, self._waits = now.boot, False

    def is_orphaned(self, now: Now) -> bool:
        return self._applies and now.boot > self._heard_s + self._patience_s

    @property
    def may_start(self) -> bool:
        """Work may be given out."""
        return not (self._applies and self._waits)
