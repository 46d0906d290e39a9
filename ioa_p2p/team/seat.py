"""A member's seat in a team's election: what every role needs, and what others may know of it.

log, electorates ──> role, term, coordinator, commit            effects are gathered, and drained once an input
"""

import random
from abc import ABC, abstractmethod

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Rows, Send, SetTimer
from ioa_p2p.team.campaign import Campaign
from ioa_p2p.team.decisions import Decisions, Held, held_of, open_founding
from ioa_p2p.team.election_events import Committed, Event, Restored
from ioa_p2p.team.electorate import Electorate
from ioa_p2p.team.electorates import Electorates
from ioa_p2p.team.intake import saved_mandate
from ioa_p2p.team.introductions import Introductions, introduction
from ioa_p2p.team.replication import Replication
from ioa_p2p.team.role import Role
from ioa_p2p.team.snapshots import Arrivals
from ioa_p2p.team.timing import Timing
from ioa_p2p.wire.decision import Certificate, DecisionMessage
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Remove, roster_step


class Seat(ABC):
    """A member that lost its disk has forgotten its votes and must not vote again: make it with `lost_disk`. It
    still stores and acknowledges entries (an elected coordinator has all decided entries, because the majority
    that voted for it remembers), and never votes or leads in this incarnation again, which it saves.
    """

    def __init__(
        self,
        me: NodeKey,
        network: bytes,
        team: bytes,
        incarnation: int,
        voters: frozenset[bytes],
        candidates: frozenset[bytes],
        rank: float,
        timing: Timing,
        rng: random.Random,
        founding: bytes,
        saved: Rows,
        *,
        lost_disk: bool = False,
    ) -> None:
        """voters: node keys of the first roster. candidates: those that may coordinate. rank: 0..1, higher
        stands earlier. founding: the frame of entry 0. Raises PeerError('wrong-founding' or as frames do),
        UsageError('other-incarnation'), StorageError('damaged')."""
        assert candidates <= voters
        assert 0 <= rank <= 1
        first = Held(open_founding(founding, network, team, incarnation), founding, blake(founding))
        self._me, self._rank, self._timing, self._rng = me, rank, timing, rng
        self._log = Decisions(first, network, saved, may_vote=not lost_disk)
        self._founded = Electorates((Electorate(network, team, incarnation, voters, candidates, 0, first.hash),))
        self._electorates = self._known_electorates()
        self._arrivals = Arrivals()
        self._introductions = Introductions(me.node, self._founded.latest)
        self._role = Role.FOLLOWER
        self._coordinator: bytes | None = None
        self._mandate = saved_mandate(self._log)
        self._told_term = self._told_incarnation = 0
        self._heard_s = self._due_s = float("-inf")
        self._aside = False
        self._leaving_s: float | None = None
        self._campaign: Campaign | None = None
        self._replication: Replication | None = None
        self._open: dict[bytes, int] = {}
        self._effects: list[Effect] = []

    def _known_electorates(self) -> Electorates:
        """After a start: those below the log, then those in it."""
        links = self._log.base.links if self._log.base is not None else ()
        known = self._founded.after_all(held_of(link.frame) for link in links)
        return known.after_all(self._log.between(0, self._log.last_index))

    # -- what others may know

    @property
    def role(self) -> Role:
        return self._role

    @property
    def term(self) -> int:
        return self._log.term

    @property
    def incarnation(self) -> int:
        return self._electorate.incarnation

    @property
    def fence(self) -> tuple[int, int]:
        """(incarnation, term): what a worker stores and compares."""
        return self.incarnation, self.term

    @property
    def coordinator(self) -> bytes | None:
        """The node that we follow (or are); None while there is none."""
        return self._coordinator

    @property
    def certificate(self) -> Certificate:
        """The votes that elected the coordinator of this term; empty until they are seen."""
        return self._mandate.certificate if self._mandate.term == self.term else ()

    @property
    def may_vote(self) -> bool:
        """False at a member that lost its memory of this team."""
        return self._log.may_vote

    @property
    def electorate(self) -> Electorate:
        """In force here: that of the last roster entry in our log, decided or not."""
        return self._electorate

    @property
    def electorates(self) -> Electorates:
        """All that were ever in force, as far as our log tells."""
        return self._electorates

    @property
    def cuts(self) -> dict[bytes, int]:
        """Who was removed, as is decided, and the last line of its talk that counts."""
        steps = (roster_step(held_of(link.frame).entry.step) for link in self._log.links(self.commit_index))
        return {step.node: step.cut for step in steps if isinstance(step, Remove)}

    @property
    def commit_index(self) -> int:
        return self._log.commit

    @property
    def first_index(self) -> int:
        """Where the log begins in memory; 0 until a checkpoint stands for its beginning."""
        return self._log.first_index

    @property
    def last_index(self) -> int:
        return self._log.last_index

    @property
    def is_settled(self) -> bool:
        """A coordinator is known, and an entry of its term is decided: the team can decide."""
        return self._coordinator is not None and self._log.matches(self.commit_index, self.term)

    @property
    def may_be_followed(self) -> bool:
        """Another node may coordinate, so we may stand aside."""
        return any(node != self._me.node and self._electorate.may_lead(node) for node in self._electorate.voters)

    @property
    def log(self) -> Decisions:
        """To read."""
        return self._log

    def entry_at(self, index: int) -> Held | None:
        """What the log holds there, decided or not; None also for what is in the state only."""
        return self._log.get(index)

    # -- what every role does

    @abstractmethod
    def _become_follower(self, now: Now, term: int, coordinator: bytes | None) -> None: ...

    @abstractmethod
    def _has_lapsed(self, now: Now) -> bool: ...

    @property
    def _electorate(self) -> Electorate:
        return self._electorates.latest

    def _commit_to(self, index: int) -> None:
        """Saved too, so that after a restart a member need not ask a majority for what it knew."""
        news = self._log.between(self.commit_index + 1, index)
        if news:
            self._log.set_commit(index)
        self._tell(news)

    def _tell(self, decided: list[Held]) -> None:
        for held in decided:
            self._emit(Committed(held.entry.index, held.entry, held.frame))

    def _tell_restored(self) -> None:
        if self._log.base is not None:
            self._emit(Restored(self._log.first_index, self._log.state))

    # -- effects

    @property
    def _timer(self) -> str:
        return f"election/{self._electorate.team.hex()}"

    def _head(self) -> tuple[bytes, int, int]:
        return self._electorate.team, self.incarnation, self.term

    def _arm(self, at: float | None) -> None:
        self._due_s = float("inf") if at is None else at
        self._effects = [effect for effect in self._effects if not isinstance(effect, SetTimer)]
        self._effects.append(SetTimer(self._timer, at))

    def _introduce(self, *peers: bytes) -> None:
        for peer in self._introductions.due(peers):
            self._send(peer, introduction(self._log))

    def _send(self, peer: bytes, message: DecisionMessage) -> None:
        self._effects.append(Send(peer, message))

    def _emit(self, event: Event) -> None:
        self._effects.append(Emit(event))

    def _drain(self) -> list[Effect]:
        effects: list[Effect] = [*self._log.drain(), *self._effects]
        self._effects = []
        return effects
