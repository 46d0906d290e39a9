"""What of a team ends with an incarnation, and what goes on in the next one.

unled for lease and grace ──> the launcher forms it anew          signed ──> silent for a while
old log, votes, lead ──> dropped          worker, clock, decided state ──> successor          not in it ──> left behind
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from ioa_p2p.effects import Effect, Emit, Now, Save, SetTimer
from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Held, held_of, spaces
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import TakeTail
from ioa_p2p.team.events import Concluded, LeftBehind, Reformed
from ioa_p2p.team.ground import Ground
from ioa_p2p.team.rest import Rest
from ioa_p2p.team.roster import open_team
from ioa_p2p.team.row import TeamRow
from ioa_p2p.team.state import TeamState
from ioa_p2p.team.worker import Deed, Worker
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import DecisionMessage
from ioa_p2p.wire.roster import Adopted
from ioa_p2p.wire.team import Founding

LEFT_BEHIND = "the launcher formed this team anew without this node"


class Lineage(ABC):
    """`Team` is one; its parts are made there."""

    node: bytes
    team: bytes
    state: TeamState
    halted: str
    outdated: str
    _ground: Ground
    _row: TeamRow
    _election: Election
    _worker: Worker
    _rest: Rest
    _silent_until_s = float("-inf")

    @abstractmethod
    def __init__(
        self, ground: Ground, team: bytes, row: TeamRow, *, blank: bool = False, worker: Worker | None = None
    ) -> None: ...

    @abstractmethod
    def start(self, now: Now) -> list[Effect]: ...

    @abstractmethod
    def _settle(self, now: Now, effects: list[Effect]) -> list[Effect]: ...

    @abstractmethod
    def _carry(self, deeds: Sequence[Deed]) -> list[Effect]: ...

    @abstractmethod
    def _stop(self) -> list[Effect]: ...

    @abstractmethod
    def _wake(self, now: Now) -> list[Effect]: ...

    # -- its end

    def forget(self) -> list[Effect]:
        """Delete every row this member keeps of it."""
        kept = (*spaces(self.team), self._worker.space)
        return [Save(space, key, None) for space in kept for key, _ in self._ground.rows(space)]

    def _sleep(self) -> list[Effect]:
        self._rest.asleep = True
        return self._timers_off()

    def _timers_off(self) -> list[Effect]:
        return [SetTimer(self._timer, None), SetTimer(f"election/{self.team.hex()}", None)]

    @property
    def _timer(self) -> str:
        return f"team/{self.team.hex()}"

    # -- what others may know

    @property
    def row(self) -> TeamRow:
        """As it is saved."""
        return self._row

    @property
    def founding(self) -> bytes:
        """The frame of entry 0."""
        return self._row.founding

    @property
    def adopted(self) -> bytes:
        """The state that this incarnation began from; empty in the first one."""
        return self._row.state

    @property
    def left(self) -> bytes:
        """The founding that goes on without us, if there is one."""
        return self._row.left

    @property
    def absent(self) -> frozenset[bytes]:
        """Nodes of earlier incarnations that are not in this one."""
        adopted = self.state.roster.adopted
        return frozenset(adopted.absent) - self.state.roster.voters if adopted is not None else frozenset()

    @property
    def known(self) -> frozenset[bytes]:
        """Nodes that may ask us about this team."""
        return self.state.roster.voters | self.absent | {self.node}

    # -- the launcher

    def wants_reform(self, now: Now) -> bool:
        """Ours, at work, and without a coordinator for too long."""
        ours = self.node == self.state.roster.launcher
        open_ = self.state.conclusion is None and not (self.halted or self.outdated or self._rest.asleep)
        return ours and open_ and self._rest.is_unled(now)

    def wait_anew(self, now: Now) -> None:
        """It came to nothing: not again before another lease and grace."""
        self._rest.begin(now)

    def take_tail(self, now: Now, entries: Sequence[Held]) -> list[Effect]:
        return self._settle(now, self._election.handle_command(now, TakeTail(tuple(entries))))

    # -- who signs

    def check_may_leave(self, adopted: Adopted) -> None:
        """Raises PeerError: 'halted', 'other-incarnation', 'led' (the majority is not lost), 'longer-log'."""
        election = self._election
        if self.halted:
            raise PeerError("halted")
        if adopted.incarnation != election.incarnation:
            raise PeerError("other-incarnation")
        if election.coordinator is not None:
            raise PeerError("led")
        if election.log.end > (adopted.term, adopted.index):
            raise PeerError("longer-log")

    def keep_silent(self, until_s: float) -> None:
        """Neither vote nor acknowledge in this incarnation before boot second `until_s`."""
        self._silent_until_s = until_s

    def _is_silent(self, now: Now) -> bool:
        return now.boot < self._silent_until_s

    # -- one incarnation after the other

    def successor(self, row: TeamRow) -> Self:
        """The next incarnation, with the same worker. Raises PeerError as `Team`."""
        return type(self)(self._ground, self.team, row, blank=True, worker=self._worker)

    def end_log(self) -> list[Effect]:
        """Its rows go; the successor's come in the same group."""
        return [Save(space, key, None) for space in spaces(self.team) for key, _ in self._ground.rows(space)]

    def start_anew(self, now: Now, old: "Lineage") -> list[Effect]:
        """In place of `old`."""
        moved = self._carry(self._worker.move(self._election.incarnation, self.state))
        roster = self.state.roster
        absent = tuple(sorted(self.absent & old.known))
        told = Emit(Reformed(self.team, roster.incarnation, roster, absent, old.dropped_by(roster.adopted)))
        awake = self._wake(now) if self.state.conclusion is not None else []
        return [*moved, told, *self.start(now), *awake]

    def leave(self, frame: bytes) -> list[Effect]:
        """The incarnation that begins with `frame` goes on without us: what runs here stops, results are kept."""
        roster = open_team(frame, self.team, self._ground.network)
        dropped = self.dropped_by(roster.adopted)
        self._row = codec.replace(self._row, left=frame)
        stopped = [*self._carry(self._worker.abandon()), *self._stop()]
        self.halted = LEFT_BEHIND
        return [*stopped, Emit(LeftBehind(self.team, roster.incarnation, dropped))]

    def dropped_by(self, adopted: Adopted | None) -> int:
        """Decisions that we know, of the incarnation before, and that the next one has not."""
        before = adopted is not None and adopted.incarnation == self._election.incarnation
        return max(0, self._election.commit_index - adopted.index) if adopted is not None and before else 0

    def _tell_adopted_end(self) -> list[Effect]:
        """A team that was formed anew just to learn that it had concluded."""
        ended = self.state.conclusion if self.state.index == 0 else None
        return [Emit(Concluded(self.team, ended))] if ended is not None else []

    def _is_behind(self, peer: bytes, message: object) -> bool:
        """It does not know of the newest incarnation, and may: it was in an earlier one."""
        if peer in self.absent and not self.left:
            return not isinstance(message, Founding)
        old = isinstance(message, DecisionMessage) and message.incarnation < self._newest
        return old and peer in self.known

    @property
    def _newest(self) -> int:
        """The incarnation that we know of."""
        if not self.left:
            return self._election.incarnation
        return held_of(self.left).entry.incarnation
