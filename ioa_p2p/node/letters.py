"""Tasks that need a person: dead letters, and those of which nobody knows whether they were done.

    TaskChanged(dead-letter | unknown), for our goals and our agents ──> kept, with reason and last output
    list, show ──> read      forget ──> gone, also when the log is told again      retry ──> the goal is asked anew

Nothing here is ever repeated by itself. Kept longer than the team; bounded.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ioa_p2p.effects import Rows, Save
from ioa_p2p.errors import UsageError
from ioa_p2p.team.events import TaskChanged
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.ids import node_text
from ioa_p2p.wire.step import TaskSpec

SPACE = "letter"
STATES = ("dead-letter", "unknown")


class Letter(Message, frozen=True):
    """output: the end of what it put out. wanted: the team's goal. ours: this node asked for it. forgotten: by its
    owner; kept so that it does not come back while its team is remembered."""

    team: bytes
    spec: TaskSpec
    state: str
    reason: str
    output: str
    wanted: str
    at: int
    ours: bool
    forgotten: bool = False


class Letters:
    """teams: those of the machine, by id. submit: saves durably."""

    def __init__(
        self, node: bytes, rows: Rows, teams: Mapping[bytes, Team], submit: Callable[[Sequence[Save]], None]
    ) -> None:
        self._node = node
        self._teams = teams
        self._submit = submit
        self._letters = {task: codec.decode(row, Letter) for task, row in rows(SPACE)}

    def on_event(self, event: Any) -> None:
        if isinstance(event, TaskChanged) and event.decided and event.state in STATES:
            roster = self._teams[event.team].state.roster
            ours = roster.launcher == self._node
            if event.spec.id not in self._letters and (ours or event.spec.node == self._node):
                letter = Letter(
                    event.team, event.spec, event.state, event.note, event.text, roster.goal, int(time.time()), ours
                )
                self._put(event.spec.id, letter)

    def all(self) -> list[Letter]:
        """Newest first."""
        there = [letter for letter in self._letters.values() if not letter.forgotten]
        return sorted(there, key=lambda letter: letter.at, reverse=True)

    def find(self, prefix: str) -> Letter:
        """Raises UsageError('no-task' | 'ambiguous')."""
        found = [one for one in self.all() if prefix and one.spec.id.hex().startswith(prefix.lower())]
        if not found:
            raise UsageError("no-task", f"no dead letter {prefix[:40]!r} here", "see `ioa-p2p task list --dead`")
        if len(found) > 1:
            raise UsageError("ambiguous", f"{len(found)} tasks begin with {prefix[:40]!r}", "write more of the id")
        return found[0]

    def forget(self, letter: Letter) -> None:
        self._put(letter.spec.id, codec.replace(letter, forgotten=True, output="", reason=""))

    def _put(self, task: bytes, letter: Letter) -> None:
        self._letters[task] = letter
        over = sorted(self._letters, key=lambda one: (not self._letters[one].forgotten, self._letters[one].at))
        gone = over[: max(0, len(over) - limits.LETTERS_MAX)]
        for one in gone:
            del self._letters[one]
        kept = [Save(SPACE, task, codec.encode(letter))] if task in self._letters else []
        self._submit([*kept, *(Save(SPACE, one, None) for one in gone)])


def told(letter: Letter) -> dict[str, Any]:
    """As docs/control.md has it."""
    spec = letter.spec
    return {
        "task": spec.id.hex(),
        "team": letter.team.hex(),
        "agent": spec.agent,
        "node": node_text(spec.node),
        "skill": spec.skill,
        "state": letter.state,
        "final": True,
        "attempt": spec.attempt,
        "goal": spec.goal,
        "wanted": letter.wanted,
        "reason": letter.reason,
        "partial": letter.output,
        "at": letter.at,
        "ours": letter.ours,
    }
