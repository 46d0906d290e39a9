"""Forming anew, at all members: the launcher's tries, the others' answers, and what becomes of the old incarnation.

    team unled for long, ReformTeam ──> Reform (launcher) ── founded ──> successor
    Survey ──> Tail      Invitation ── as we know it? ──> promise saved, InviteFrame | StateWanted | Decline
    Founding of a higher incarnation ── us in it ──> successor          not us ──> left behind

A successor is a `Team` anew, with the same worker: what runs goes on. Rows: space "promise", key team id.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeGuard

from ioa_p2p.effects import Effect, Now, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.team import survey
from ioa_p2p.team.adoption import check_state, own_state
from ioa_p2p.team.ground import Ground
from ioa_p2p.team.reform import PROMISE_S, Reform
from ioa_p2p.team.roster import check_successor, open_team, sign
from ioa_p2p.team.row import SPACE, TeamRow
from ioa_p2p.team.snapshots import Arriving
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.roster import Roster
from ioa_p2p.wire.team import (
    Decline,
    Founding,
    Invitation,
    InviteFrame,
    Joined,
    StatePart,
    StateWanted,
    Survey,
    Tail,
)

PROMISES = "promise"
_ASK_S = 0.5  # between repeated questions

Asked = Survey | Tail | StateWanted | StatePart


class Promise(Message, frozen=True):
    """We signed to go on in this incarnation, from this state, and are silent in the one before for a while."""

    incarnation: int
    state: bytes


class Reforms:
    def __init__(self, ground: Ground, teams: dict[bytes, Team]) -> None:
        """teams: all of the node; a successor takes its place there."""
        self._ground = ground
        self._teams = teams
        self._tries: dict[bytes, Reform] = {}
        self._arriving: dict[bytes, Arriving] = {}
        self._states: dict[bytes, bytes] = {}
        self._promises = {team: codec.decode(value, Promise) for team, value in ground.rows(PROMISES)}

    # -- inputs

    def start(self, now: Now, team: Team) -> None:
        """A promise outlives a restart, and counts anew."""
        promise = self._promises.get(team.team)
        if promise is not None and promise.incarnation > team.election.incarnation:
            team.keep_silent(now.boot + PROMISE_S)

    def look(self, now: Now, team: bytes) -> list[Effect]:
        """After each beat of a team: is it time?"""
        due = team not in self._tries and self._teams[team].wants_reform(now)
        return self._begin(now, self._teams[team]) if due else []

    def command(self, now: Now, team: Team) -> list[Effect]:
        """By hand. Raises UsageError."""
        if team.state.roster.launcher != self._ground.key.node:
            raise UsageError("not-allowed", "only the node that launched a team forms it anew")
        if team.state.conclusion is not None or team.halted or team.outdated:
            raise UsageError("team-ended", "the team has concluded already")
        if team.election.coordinator is not None:
            raise UsageError("led", "the team has a coordinator", "remove who is gone with `ioa-p2p team remove`")
        return self._begin(now, team) if team.team not in self._tries else []

    def tick(self, now: Now, team: bytes) -> list[Effect]:
        return self._on_try(now, team, lambda one: one.tick(now))

    def is_answer(self, message: object) -> TypeGuard[InviteFrame | Decline]:
        """To a try of ours."""
        return isinstance(message, InviteFrame | Decline) and message.team in self._tries

    def handle_message(self, now: Now, peer: bytes, message: Asked | InviteFrame | Decline) -> list[Effect]:
        """Raises PeerError."""
        team = message.team
        match message:
            case Survey():
                asked = self._known_by(peer, team, launcher=True)
                return [Send(peer, part) for part in survey.answer(asked.election, message)]
            case Tail():
                return self._on_try(now, team, lambda one: one.on_tail(now, peer, message))
            case InviteFrame(_, frame):
                return self._on_try(now, team, lambda one: one.on_signature(now, peer, frame))
            case Decline(_, _, reason):
                return self._on_try(now, team, lambda one: one.on_decline(now, peer, reason))
            case StateWanted():
                return self._give_state(peer, message)
            case StatePart():
                return self._on_state_part(peer, message)

    # -- the launcher

    def _begin(self, now: Now, team: Team) -> list[Effect]:
        one = self._tries[team.team] = Reform(self._ground.key, self._ground.network, team, now)
        return self._after(now, team.team, one, one.begin(now))

    def _on_try(self, now: Now, team: bytes, do: Callable[[Reform], list[Effect]]) -> list[Effect]:
        one = self._tries.get(team)
        if one is None:
            return []
        try:
            return self._after(now, team, one, do(one))
        except PeerError:
            if one.over:
                del self._tries[team]
            raise

    def _after(self, now: Now, team: bytes, one: Reform, effects: list[Effect]) -> list[Effect]:
        timer = f"reform/{team.hex()}"
        if not one.over:
            return [*effects, SetTimer(timer, now.boot + _ASK_S)]
        del self._tries[team]
        effects.append(SetTimer(timer, None))
        old = self._teams[team]
        if not one.founding:
            old.wait_anew(now)
            return effects
        row = codec.replace(old.row, founding=one.founding, state=one.state, lost_disk=False)
        return [*effects, *self._succeed(now, old, row)]

    # -- the others

    def on_invitation(self, now: Now, peer: bytes, message: Invitation, roster: Roster) -> list[Effect]:
        """Into the next incarnation of a team that we are in. Raises PeerError."""
        team = self._known_by(peer, roster.team, launcher=True)
        adopted = roster.adopted
        try:
            check_successor(roster, team.state.roster, team.node)
            assert adopted is not None
            team.check_may_leave(adopted)
        except PeerError as fault:
            return [Send(peer, Decline(roster.team, "any", fault.code))]
        state = self.state_for(roster, team)
        if not state:
            return [self.want(peer, roster)]
        promise = self._promises[team.team] = Promise(roster.incarnation, state)
        team.keep_silent(now.boot + PROMISE_S)
        signature = sign(self._ground.key, self._ground.network, message.roster, now)
        return [
            Save(PROMISES, team.team, codec.encode(promise)),
            Send(peer, InviteFrame(team.team, signature)),
        ]

    def on_founding(self, now: Now, peer: bytes, team: Team, frame: bytes, *, called: bool) -> list[Effect]:
        """Another one of a team that we know. called: we signed to come into it later. Raises PeerError."""
        roster = open_team(frame, team.team, self._ground.network)
        mine = team.election.incarnation
        if roster.launcher != team.state.roster.launcher:
            raise PeerError("wrong-founding", "only the launcher forms a team anew")
        if roster.incarnation < mine:
            return [Send(peer, Founding(team.founding))] if peer in team.known else []
        if roster.incarnation == mine:
            raise PeerError("second-founding")
        if team.node not in roster.voters and not called:
            return self._leave(now, team, frame)
        promise = self._promises.get(team.team)
        lost = team.node in roster.voters and (promise is None or promise.incarnation < roster.incarnation)
        row = codec.replace(team.row, founding=frame, lost_disk=lost, left=b"")
        state = self.state_for(roster, team)
        if not state:
            return [self.want(peer, roster)]
        return [*self._succeed(now, team, codec.replace(row, state=state)), Send(peer, Joined(team.team))]

    def _succeed(self, now: Now, old: Team, row: TeamRow) -> list[Effect]:
        """In one group of saves: the old log ends, the new one begins."""
        new = old.successor(row)
        self._teams[new.team] = new
        self._arriving.pop(new.team, None)
        self._promises.pop(new.team, None)
        return [
            *old.end_log(),
            Save(SPACE, new.team, codec.encode(row)),
            Save(PROMISES, new.team, None),
            *new.start_anew(now, old),
        ]

    def _leave(self, now: Now, team: Team, frame: bytes) -> list[Effect]:
        if team.left == frame:
            return []
        told = team.leave(frame)
        return [Save(SPACE, team.team, codec.encode(team.row)), *told]

    # -- the adopted state, in parts

    def state_for(self, roster: Roster, team: Team | None = None) -> bytes:
        """The state that `roster` adopts: kept at our signature, come in parts, or made of our own log. Or nothing."""
        assert roster.adopted is not None
        promise = self._promises.get(roster.team)
        kept = [promise.state if promise is not None else b"", self._states.get(roster.team, b"")]
        if team is not None:
            kept.append(own_state(team.state, team.election, roster.adopted))
        for data in kept:
            with suppress(PeerError):
                check_state(roster.adopted, data)
                return data
        return b""

    def want(self, peer: bytes, roster: Roster) -> Send:
        """Ask for it; the Invitation or the Founding will come again."""
        arriving = self._arriving.get(roster.team)
        if arriving is None or arriving.index != roster.incarnation:
            arriving = self._arriving[roster.team] = Arriving(roster.incarnation, 0)
        return Send(peer, StateWanted(roster.team, roster.incarnation, len(arriving.data)))

    def _on_state_part(self, peer: bytes, part: StatePart) -> list[Effect]:
        """Raises PeerError. Whole, it waits for the Invitation or the Founding to come again: both are repeated."""
        arriving = self._arriving.get(part.team)
        if arriving is None or arriving.index != part.incarnation:
            return []
        if not arriving.data:
            arriving.size = part.size
        before = len(arriving.data)
        try:
            arriving.take(part)
        except PeerError:
            del self._arriving[part.team]
            raise
        if arriving.is_whole:
            self._states[part.team] = bytes(arriving.data)
            del self._arriving[part.team]
            return []
        if len(arriving.data) == before:  # it came twice; the next is asked for already
            return []
        return [Send(peer, StateWanted(part.team, part.incarnation, len(arriving.data)))]

    def _give_state(self, peer: bytes, wanted: StateWanted) -> list[Effect]:
        data = self._adopted(peer, wanted)
        part = data[wanted.offset : wanted.offset + limits.SNAPSHOT_PART_BYTES_MAX]
        if not part:
            return []
        return [Send(peer, StatePart(wanted.team, wanted.incarnation, len(data), wanted.offset, part))]

    def _adopted(self, peer: bytes, wanted: StateWanted) -> bytes:
        """Of our try, or of the incarnation that stands."""
        one, team = self._tries.get(wanted.team), self._known_by(peer, wanted.team)
        if one is not None and one.incarnation == wanted.incarnation:
            return one.state if peer in one.voters else b""
        return team.adopted if team.election.incarnation == wanted.incarnation else b""

    # -- small parts

    def _known_by(self, peer: bytes, team: bytes, *, launcher: bool = False) -> Team:
        """Raises PeerError('unknown-team' | 'not-a-voter' | 'wrong-launcher')."""
        known = self._teams.get(team)
        if known is None:
            raise PeerError("unknown-team")
        if peer not in known.known:
            raise PeerError("not-a-voter")
        if launcher and (peer != known.state.roster.launcher or known.halted):
            raise PeerError("wrong-launcher")
        return known
