"""What workers say of their tasks and nobody decided: shown, as such, and never applied.

Report (of an attempt that stands) ── progress ──> TaskChanged(decided=False)
Report (of one that was given up)  ── late ──> Orphan, once
"""

from ioa_p2p.team.events import Orphan, TaskChanged
from ioa_p2p.wire import limits
from ioa_p2p.wire.step import TaskSpec
from ioa_p2p.wire.team import Report


class Hearsay:
    def __init__(self) -> None:
        self._states: dict[bytes, str] = {}
        self._orphans: set[tuple[bytes, int]] = set()

    @property
    def states(self) -> dict[bytes, str]:
        """task -> the state that its worker told last, until one is decided."""
        return dict(self._states)

    def progress(self, team: bytes, spec: TaskSpec, report: Report) -> TaskChanged | None:
        """None: its end, which is shown when it is decided."""
        if report.state not in ("accepted", "running", "busy"):
            return None
        self._states[report.task] = report.state
        return TaskChanged(team, spec, report.state, False, report.fraction, report.note, report.summary)

    def late(self, team: bytes, report: Report) -> Orphan | None:
        """The result of a fenced attempt; None if it was shown."""
        seen = (report.task, report.attempt) in self._orphans
        if report.state != "succeeded" or seen or len(self._orphans) > limits.TEAM_TASKS_MAX:
            return None
        self._orphans.add((report.task, report.attempt))
        return Orphan(team, report.task, report.attempt, report.state, report.summary)

    def decided(self, task: bytes) -> None:
        self._states.pop(task, None)
