"""What a coordinator does, for one term: look at what is decided and reported, and say what is due next.

    decided state, reports, lost links, wishes, the planner's step ── due(now) ──> steps to propose, each once

Level-triggered: `due` is asked after every event and every beat. So a new coordinator needs no memory of the
old one; all it lacks are leases, and those start anew.
"""

import random
from dataclasses import dataclass

from ioa_p2p import steps
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.steps import View
from ioa_p2p.team.leases import Leases
from ioa_p2p.team.phases import Phase
from ioa_p2p.team.plan import Agent, Forced, forced_conclusion, log_step, view_of
from ioa_p2p.team.state import Committed, TeamState
from ioa_p2p.team.supervision import Supervision
from ioa_p2p.team.tasks import Profile
from ioa_p2p.wire import limits
from ioa_p2p.wire.spending import NOTHING, Spent
from ioa_p2p.wire.step import Assign, Await, Cancel, Discuss, Hear, Reassign, Resume, Spend, Step, encode_step
from ioa_p2p.wire.team import Report, Said, Wish

_PLAN_S = 120.0  # a planner silent for so long has failed


@dataclass(frozen=True, slots=True)
class Due:
    """A step to propose. key: names it while it is open; one talk step and one step a task at a time."""

    key: bytes
    step: bytes


class Coordinator:
    def __init__(
        self,
        state: TeamState,
        me: Agent,
        profile: Profile,
        rng: random.Random,
        now: Now,
        supervision: Supervision | None = None,
    ) -> None:
        """me: our own (node, agent), in whose name we speak. Made when the term's first entry is decided."""
        self._state = state
        self._me = me
        self._profile = profile
        self._rng = rng
        self._leases = Leases(state, profile, me[0], now)
        self._supervision = supervision or Supervision(state.roster, me[0], profile)
        self._supervision.lead(now)
        self._cancels: dict[bytes, str] = {}
        self._stop: tuple[Forced, str] | None = None
        self._asked: int | None = None
        self._asked_s = 0.0
        self._bad_plans = 0
        self._problem = ""
        self._planned: Step | None = None
        self._ending: steps.Conclude | None = None
        self._answer: tuple[int, str] = (0, "")
        self._turn: tuple[int, float] = (0, 0.0)
        self._talks = 0
        self._unbooked: list[Spent] = []
        self._booked = 0
        self._open: dict[bytes, bytes] = {}
        self._refused: set[bytes] = set()

    # -- what is heard

    def on_report(self, now: Now, peer: bytes, report: Report) -> None:
        """Of the current attempt of an open task. Raises PeerError('not-the-worker')."""
        self._leases.on_report(now, peer, report)

    def on_lost(self, peer: bytes, nodes: frozenset[bytes]) -> None:
        self._leases.on_lost(peer, nodes)

    def on_said(self, peer: bytes, said: Said) -> None:
        """Raises PeerError('not-your-turn')."""
        turn = self._state.open_turn
        if turn is None or said.turn != self._state.turn or turn.node != peer:
            raise PeerError("not-your-turn")
        self._answer = (said.turn, said.text)

    def on_wish(self, wish: Wish) -> None:
        if wish.what == "conclude":
            self._stop = self._stop or ("cancelled", wish.reason)
        else:
            self._cancels.update((task, wish.reason) for task in wish.tasks if task in self._state.tasks)

    def on_plan(self, now: Now, version: int, step: steps.Step, spent: Spent = NOTHING) -> str:
        """Take the planner's step; returns why it cannot be used, or an empty text. A stale one is ignored.

        spent: by the planner; counted in any case.
        """
        self._book(spent)
        if version != self._asked:
            return ""
        try:
            entry = log_step(step, self._state, self._me, now, self._rng)
        except UsageError as fault:
            return self._bad_plan(str(fault))
        if isinstance(step, steps.Conclude) and self._state.phase is Phase.DISCUSSION:
            self._ending = step
        elif lack := self._lack(entry):
            return self._run_short(lack)
        elif refusal := self._state.refusal(self._as_committed(now, entry)):
            return self._bad_plan(refusal)
        else:
            self._planned = entry
        self._asked, self._problem, self._bad_plans = None, "", 0
        return ""

    def on_plan_failed(self, version: int, reason: str, spent: Spent = NOTHING) -> str:
        self._book(spent)
        return self._bad_plan(reason) if version == self._asked else ""

    def on_decided(self, step: bytes, refused: str) -> None:
        """A step of ours is in the log. One that the fold refused is not proposed again in this term."""
        key = self._open.pop(step, None)
        if key is not None and key.startswith(b"talk"):
            self._talks += 1
            self._planned = None
            self._take_refusal(refused)
        elif key is not None and key.startswith(b"spend"):
            self._unbooked.pop(0)
            self._booked += 1
        elif key is not None and refused:
            self._refused.add(key)

    def _take_refusal(self, code: str) -> None:
        """The fold refused it: an end that was planned so would be refused for ever."""
        self._problem = code
        if code and self._ending is not None and not self._state.open_tasks:
            self._ending = None
            self._bad_plan(code)

    def on_not_proposed(self, step: bytes) -> None:
        self._open.pop(step, None)

    # -- what is due

    def due(self, now: Now) -> list[Due]:
        """New steps to propose, in order; each is told once."""
        if self._state.conclusion is not None:
            return []
        self._watch_planner(now)
        tasks = [] if self._ends(now) else self._tasks_due(now)
        talk = self._talk_due(now)
        wanted = [*self._spending_due(), *tasks, *([(b"talk%d" % self._talks, talk)] if talk else [])]
        open_keys = {*self._open.values(), *self._refused}
        wanted = [(key, step) for key, step in wanted if key not in open_keys and self._may_decide(step)]
        fresh = [Due(key, encode_step(step)) for key, step in wanted]
        self._open.update((each.step, each.key) for each in fresh)
        return fresh

    def ask(self, now: Now, reported: dict[bytes, str]) -> View | None:
        """The view for the planner when it is its turn (call after `due`), else None."""
        ours = self._state.phase in (Phase.DISCUSSION, Phase.ASYNC_ASSIGN) and self._state.open_turn is None
        if not ours or self._asked is not None or self._is_busy(now):
            return None
        self._asked, self._asked_s = self._state.index, now.boot
        return view_of(self._state, self._me, now, self._leases.here, reported, self._problem)

    def _is_busy(self, now: Now) -> bool:
        """A talk step is open, or due; or the end is only waiting for what it cost to be counted."""
        if self._stop is not None or self._ending is not None:
            return True
        return any(key.startswith(b"talk") for key in self._open.values()) or self._talk_due(now) is not None

    def _may_decide(self, step: Step) -> bool:
        """A nested team gives out nothing that its launcher may not know of."""
        return self._supervision.may_start or not isinstance(step, Assign | Reassign)

    def _tasks_due(self, now: Now) -> list[tuple[bytes, Step]]:
        due: list[tuple[bytes, Step]] = []
        for row in self._state.open_tasks:
            task = row.spec.id
            step = Cancel((task,), self._cancels[task]) if task in self._cancels else self._leases.due(now, row)
            if step is not None:
                due.append((b"task" + task + bytes([row.spec.attempt]), step))
        return due

    def _spending_due(self) -> list[tuple[bytes, Step]]:
        return [(b"spend%d" % self._booked, Spend(self._unbooked[0]))] if self._unbooked else []

    def _talk_due(self, now: Now) -> Step | None:
        """The one step that moves the talk: the end first, then what the phase waits for, then the plan."""
        if self._ends(now):
            return self._end(now)
        if self._state.phase in (Phase.SYNC_ASSIGN, Phase.PAUSE):
            return self._resume(now)
        if self._state.open_turn is not None:
            return self._hear(now)
        return self._planned

    def _ends(self, now: Now) -> bool:
        cap = self._state.cap(now.wall)
        if self._bad_plans > self._state.roster.caps.plans:
            cap = f"no usable plan ({self._problem})"
        if self._supervision.is_orphaned(now):
            self._stop = self._stop or ("cancelled", "its launcher is silent")
        if cap and self._stop is None and self._ending is None:
            self._stop = ("deadline" if cap == "deadline" else "cap", cap)
        return self._stop is not None or self._ending is not None

    def _end(self, now: Now) -> Step | None:
        """Running tasks are cancelled first, and the planner's last costs counted."""
        outcome, reason = self._stop or ("cancelled", "concluded")
        if self._state.open_tasks:
            return Cancel((), reason[: limits.REASON_CHARS_MAX])
        if self._unbooked:
            return None
        if self._stop is None and self._ending is not None:
            return log_step(self._ending, self._state, self._me, now, self._rng)
        return forced_conclusion(self._state, outcome, reason, self._leases.texts)

    def _resume(self, now: Now) -> Step | None:
        waiting = self._state.waiting
        if waiting is None or self._state.waiting_over:
            return Resume("done")
        return Resume("deadline") if now.wall >= waiting.deadline else None

    def _hear(self, now: Now) -> Step | None:
        turn = self._state.turn
        if self._answer[0] == turn:
            return Hear(turn, self._answer[1])
        if self._turn[0] != turn:
            self._turn = (turn, now.boot)
        return Hear(turn, "") if now.boot > self._turn[1] + self._profile.turn_s else None

    # -- the planner

    def _watch_planner(self, now: Now) -> None:
        if self._asked is not None and now.boot > self._asked_s + _PLAN_S:
            self._bad_plan("the planner did not answer")

    def _bad_plan(self, problem: str) -> str:
        """problem: maybe a stranger's words, and it may stand in the team's answer: so it is cut."""
        self._asked, self._problem = None, problem[: limits.REASON_CHARS_MAX]
        self._bad_plans += 1
        return self._problem

    # -- the budget

    def _book(self, spent: Spent) -> None:
        if spent != NOTHING:
            self._unbooked.append(spent)

    def _lack(self, step: Step) -> str:
        """Why the budget does not cover this step, for people; or an empty text. To wait costs nothing, nor does
        the word that leads from assigning back to discussion, where the end is planned."""
        if isinstance(step, Await) or (isinstance(step, Discuss) and self._state.phase is not Phase.DISCUSSION):
            return ""
        if out := self._exhausted:
            return f"the budget of {out} is spent"
        budget = self._state.budget
        for spec in step.tasks if isinstance(step, Assign) else ():
            if short := budget.shortage(spec.budget):
                return f"over budget: {short}"
            budget = budget.reserve(spec.id, spec.budget)
        return ""

    @property
    def _exhausted(self) -> str:
        budget = self._state.budget
        for spent in self._unbooked:
            budget = budget.spend(spent)
        return budget.exhausted

    def _run_short(self, lack: str) -> str:
        """What runs may give something back; if nothing does the goal ends here, or the planner thinks again."""
        running = tuple(row.spec.id for row in self._state.open_tasks)
        if running:
            self._planned = Await(running[: limits.STEP_TASKS_MAX], "any", self._state.roster.deadline)
        elif self._exhausted:
            self._stop = ("cap", lack)
        else:
            return self._bad_plan(lack)
        self._asked = None
        return lack

    def _as_committed(self, now: Now, step: Step) -> Committed:
        """How the entry would look if it were decided next."""
        return Committed(self._state.index + 1, self._state.term, self._me[0], int(now.wall), step)
