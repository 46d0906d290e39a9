"""What a team decides about itself: who is in it, and checkpoints of what it decided.

    wished changes, learners that caught up, a checkpoint ── propose(now) ──> steps, one change of the roster at a time

Only the coordinator proposes.
"""

from collections.abc import Iterator
from contextlib import suppress

from ioa_p2p.effects import Effect, Now
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.team.checkpoints import Checkpoints
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Propose
from ioa_p2p.team.standing import changed, check_admission, newcomer
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Admit, Promote, RosterStep, encode_step, roster_step
from ioa_p2p.wire.team import Wish


class Affairs:
    def __init__(self, election: Election, network: bytes) -> None:
        self._election = election
        self._network = network
        self.checkpoints = Checkpoints(election)
        self._wished: list[RosterStep] = []

    # -- the roster

    def wish(self, state: TeamState, peer: bytes, step: bytes) -> None:
        """Asked of the coordinator by `peer`. Raises PeerError('not-allowed' | 'wrong-change') and as changes do."""
        change = roster_step(step)
        if change is None or isinstance(change, Promote):
            raise PeerError("wrong-change", "members come and go; nobody is promoted by wish")
        if peer not in (state.roster.launcher, self._election.coordinator):
            raise PeerError("not-allowed", "the launcher and the coordinator's owner say who is in the team")
        if isinstance(change, Admit):
            self._check_invited_by(state, peer, change)
        if change not in self._wished and is_open(state, change) and len(self._wished) < limits.VOTERS_ADMITTED_MAX:
            self._wished.append(change)

    def check(self, state: TeamState, me: bytes, step: RosterStep) -> None:
        """Of our own owner. Raises UsageError for what would be refused."""
        self.check_may_ask(state, me)
        try:
            if isinstance(step, Admit):
                self._check_invited_by(state, me, step)
            changed(state.standing, step)
        except PeerError as fault:
            raise UsageError(fault.code, str(fault), "see `ioa-p2p team show`") from None

    def check_may_ask(self, state: TeamState, me: bytes) -> None:
        """Raises UsageError('team-ended' | 'not-allowed')."""
        if state.conclusion is not None:
            raise UsageError("team-ended", "the team has concluded already")
        if me not in (state.roster.launcher, self._election.coordinator):
            raise UsageError("not-allowed", "only the launcher and the coordinator's owner change the team")

    def check_admits(self, state: TeamState, me: bytes, node: bytes) -> None:
        """Would we call `node` in? Raises UsageError."""
        self.check_may_ask(state, me)
        if node in state.standing.nodes | state.standing.gone:
            raise UsageError("already-in", "its node is in the team already, or was removed for good")

    def _check_invited_by(self, state: TeamState, peer: bytes, step: Admit) -> None:
        check_admission(step, self._network, state.roster.team)
        new = newcomer(step)
        if new.inviter != peer:
            raise PeerError("wrong-admission", "invited by another")
        if len(state.roster.members) + len(new.members) > limits.TEAM_MEMBERS_MAX:
            raise PeerError("too-many-members", f"a team has at most {limits.TEAM_MEMBERS_MAX} agents")

    def roster_due(self, now: Now, state: TeamState) -> Iterator[RosterStep]:
        """Changes to propose, in order; all but the first wait for it to be decided."""
        self._wished = [step for step in self._wished if is_open(state, step)]
        yield from self._wished
        for node in sorted(state.standing.learners):
            if self._election.is_caught_up(now, node):
                yield Promote(node)

    def propose(self, now: Now, state: TeamState) -> list[Effect]:
        """At the coordinator: what is due. A change that may not be yet stays due, with those behind it."""
        effects: list[Effect] = []
        with suppress(UsageError):
            if (checkpoint := self.checkpoints.due()) is not None:
                key = b"checkpoint" + checkpoint.index.to_bytes(8, "big")
                effects += self._election.handle_command(now, Propose(encode_step(checkpoint), key))
            for step in self.roster_due(now, state):
                encoded = encode_step(step)
                effects += self._election.handle_command(now, Propose(encoded, b"roster" + blake(encoded)))
        return effects


def is_open(state: TeamState, step: RosterStep) -> bool:
    """Not done yet, and still possible."""
    try:
        changed(state.standing, step)
    except PeerError:
        return False
    return True


def wish_of(team: bytes, step: RosterStep) -> Wish:
    return Wish(team, "change", change=encode_step(step))
