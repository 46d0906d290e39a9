"""What this member asks of the coordinator: said again every beat until the log shows it, or shows that it cannot be.

cancel, conclude, change of the roster, answer to a turn ──> open(state) ── each beat ──> coordinator
"""

from ioa_p2p.team.affairs import is_open
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire import limits
from ioa_p2p.wire.step import roster_step
from ioa_p2p.wire.team import Said, Wish


class Wishes:
    def __init__(self) -> None:
        self._wishes: list[Wish] = []
        self._answer: Said | None = None

    def add(self, wish: Wish) -> None:
        """Of too many the oldest is forgotten."""
        self._wishes = [*self._wishes, wish][-limits.STEP_TASKS_MAX :]

    def answer(self, said: Said) -> None:
        self._answer = said

    def open(self, state: TeamState) -> list[Wish | Said]:
        """Those that are still to be said."""
        if state.conclusion is not None:
            self._wishes, self._answer = [], None
        self._wishes = [wish for wish in self._wishes if _is_open(wish, state)]
        said = self._answer
        mine = said is not None and state.open_turn is not None and said.turn == state.turn
        return [*self._wishes, *([said] if said is not None and mine else [])]


def _is_open(wish: Wish, state: TeamState) -> bool:
    if wish.what == "cancel":
        return any(row.spec.id in wish.tasks for row in state.open_tasks)
    change = roster_step(wish.change)
    return wish.what == "conclude" or (change is not None and is_open(state, change))
