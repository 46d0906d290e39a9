"""All teams of one node: launches, invitations, and what becomes of them.

    Launch ──> Formation ── entry 0 ──┐
    Call, Invitation ──> Guest        ├──> Team (one each; election, decided state, work, lead)
    Founding (all signed) ────────────┘

Routes by team id. What a team sends to this very node is handed in at once. Rows: space "team", key team id:
the founding entry; "invite": rosters we signed, until they are founded.
"""

import random
from collections.abc import Callable
from contextlib import suppress

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Rows, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, StorageError, UsageError
from ioa_p2p.team import formation
from ioa_p2p.team.admission import Admission
from ioa_p2p.team.commands import (
    AddMember,
    AdmitMember,
    CancelTeam,
    Command,
    Launch,
    LinkPeer,
    Offer,
    ReformTeam,
    StandAside,
    StepDown,
)
from ioa_p2p.team.decisions import open_entry, spaces
from ioa_p2p.team.events import Forgotten, MemoryLost
from ioa_p2p.team.formation import Formation, Journal
from ioa_p2p.team.ground import Ground
from ioa_p2p.team.guest import Guest
from ioa_p2p.team.life import Life
from ioa_p2p.team.nesting import Nesting
from ioa_p2p.team.queue import Queue
from ioa_p2p.team.reforms import PROMISES, Asked, Reforms
from ioa_p2p.team.roster import open_team
from ioa_p2p.team.row import SPACE, TeamRow
from ioa_p2p.team.tasks import LAN, Profile
from ioa_p2p.team.team import Team
from ioa_p2p.team.timing import LAN as LAN_TIMING
from ioa_p2p.team.timing import Timing
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.decision import DecisionMessage
from ioa_p2p.wire.roster import Roster
from ioa_p2p.wire.team import (
    Bid,
    BidFrame,
    Call,
    Decline,
    Founding,
    Invitation,
    InviteFrame,
    Joined,
    LostLinks,
    Report,
    Said,
    TeamMessage,
    Wish,
)

_ASK_S = 0.5  # between repeated calls and invitations


class Teams:
    """Machine. Messages: `wire.decision.DecisionMessage`, `wire.team.TeamMessage`; commands and events in
    `team.events`."""

    def __init__(
        self,
        key: NodeKey,
        network: bytes,
        rows: Rows,
        rng: random.Random,
        allowed: Callable[[], frozenset[bytes]],
        profile: Profile = LAN,
        timing: Timing = LAN_TIMING,
        queue: Queue | None = None,
        life: Life | None = None,
    ) -> None:
        """allowed: the nodes whose calls and invitations we answer, as of now; nobody by default. queue: how much
        work is taken on. life: how this one began."""
        self._key = key
        self._ground = Ground(key, network, rows, rng, profile, timing, queue or Queue(own=key.node), life or Life())
        self._guest = Guest(key, network, rows, allowed, lambda path: self._nesting.waiting(path))
        self._launches: dict[bytes, Formation] = {}
        self._admissions: dict[bytes, Admission] = {}
        self._teams: dict[bytes, Team] = {}
        self._reforms = Reforms(self._ground, self._teams)
        self._nesting = Nesting(rows, self._teams, self._on_command)

    @property
    def teams(self) -> dict[bytes, Team]:
        """By team id; to read."""
        return self._teams

    # -- inputs

    def start(self, now: Now) -> list[Effect]:
        effects, started = self._guest.start(now), dict[bytes, list[Effect]]()
        for team, value in self._ground.rows(SPACE):
            self._teams[team], mended = self._remake(team, codec.decode(value, TeamRow))
            self._reforms.start(now, self._teams[team])
            started[team] = [*mended, *self._teams[team].start(now)]
        effects += self._forget_old()
        effects += [effect for team, begun in started.items() if team in self._teams for effect in begun]
        for team, value in self._ground.rows(formation.SPACE):
            if team not in self._teams:
                effects += self._begin(now, codec.decode(value, Journal))
        return self._hand_in(now, [*effects, *self._nesting.start(now)])

    def handle_message(self, now: Now, peer: bytes, message: DecisionMessage | TeamMessage) -> list[Effect]:
        return self._hand_in(now, self._on_message(now, peer, message))

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        kind, _, hexed = name.partition("/")
        team = bytes.fromhex(hexed)
        if kind == "launch":
            return self._hand_in(now, self._tick(now, team))
        if kind == "admit":
            return self._hand_in(now, self._on_admission(now, team, lambda one: one.tick(now)))
        if kind == "reform":
            return self._hand_in(now, self._reforms.tick(now, team))
        if team not in self._teams:
            return []
        effects = self._teams[team].handle_timer(now, name)
        return self._hand_in(now, [*effects, *(self._reforms.look(now, team) if kind == "team" else [])])

    def handle_command(self, now: Now, command: Command) -> list[Effect]:
        """Raises UsageError('no-such-team' | 'too-many-launches' | 'not-wanted' | 'team-ended' | 'no-such-task')."""
        return self._hand_in(now, self._on_command(now, command))

    def _on_command(self, now: Now, command: Command) -> list[Effect]:
        match command:
            case Launch():
                return self._launch(now, self._nesting.on_terms(now, command))
            case Offer():
                self._guest.offer(command)
                return []
            case LinkPeer():
                return self._on_link(now, command)
            case StepDown() | StandAside():
                return self._on_all(now, command)
            case CancelTeam() if command.team in self._launches:
                return self._on_launch(now, command.team, Formation.cancel)
            case AddMember() if command.team in self._teams:
                return self._add_member(now, command)
            case ReformTeam() if command.team in self._teams:
                return self._reforms.command(now, self._teams[command.team])
            case AddMember() | ReformTeam():
                raise _no_team(command.team)
            case _ if command.team in self._teams:
                return self._teams[command.team].handle_command(now, command)
            case _:
                raise _no_team(command.team)

    # -- messages

    def _on_message(self, now: Now, peer: bytes, message: DecisionMessage | TeamMessage) -> list[Effect]:
        if isinstance(message, Asked) or self._reforms.is_answer(message):
            return self._reforms.handle_message(now, peer, message)
        match message:
            case Call():
                room = sum(not team.asleep for team in self._teams.values()) < limits.TEAMS_OPEN_MAX
                return self._guest.on_call(now, peer, message, room)
            case Invitation():
                return self._on_invitation(now, peer, message)
            case BidFrame():
                bid = codec.decode(frames.parse(message.frame).body, Bid)
                if bid.team in self._admissions:
                    return self._on_admission(now, bid.team, lambda one: one.on_bid(now, peer, message.frame))
                return self._on_launch(now, bid.team, lambda launch: launch.on_bid(now, peer, message.frame))
            case InviteFrame():
                frame = message.frame
                if message.team in self._admissions:
                    return self._on_admission(now, message.team, lambda one: one.on_signature(peer, frame))
                return self._on_launch(now, message.team, lambda launch: launch.on_signature(now, peer, frame))
            case Decline():
                agent, reason = message.agent, message.reason
                if message.team in self._admissions:
                    return self._on_admission(now, message.team, lambda one: one.on_decline(peer, reason))
                return self._on_launch(now, message.team, lambda launch: launch.on_decline(now, peer, agent, reason))
            case Founding():
                return self._on_founding(now, peer, message)
            case Joined() | Report() | Said() | LostLinks() | Wish():
                return self._to_team(now, peer, message)
            case _:
                return self._to_team(now, peer, message)

    def _to_team(
        self, now: Now, peer: bytes, message: DecisionMessage | Joined | Report | Said | LostLinks | Wish
    ) -> list[Effect]:
        """Raises PeerError('unknown-team'): we are not in it, or were not told yet that it stands."""
        team = self._teams.get(message.team)
        if team is None:
            raise PeerError("unknown-team")
        return team.handle_message(now, peer, message)

    def _on_founding(self, now: Now, peer: bytes, message: Founding) -> list[Effect]:
        """Raises PeerError('second-founding' | 'not-a-member' or as the entry's checks do)."""
        team_id = open_entry(message.frame, self._ground.network).team
        known, signed = self._teams.get(team_id), self._guest.signed(team_id)
        if known is not None:
            if known.founding != message.frame:
                called = signed is not None and bool(known.left)
                effects = self._reforms.on_founding(now, peer, known, message.frame, called=called)
                moved = self._teams[team_id] is not known
                return [*(self._guest.forget(team_id) if called and moved else []), *effects]
            return known.handle_message(now, peer, message)
        row = TeamRow(message.frame, signed is None, signed.ahead_s if signed else 0)
        roster = open_team(message.frame, team_id, self._ground.network)
        if roster.adopted is not None:
            row = codec.replace(row, state=self._reforms.state_for(roster))
            if not row.state:
                return [self._reforms.want(peer, roster)]
        team = self._make(team_id, row)
        return [*self._guest.forget(team_id), *self._join(now, team, row), Send(peer, Joined(team_id))]

    def _on_invitation(self, now: Now, peer: bytes, message: Invitation) -> list[Effect]:
        roster = codec.decode(message.roster, Roster)
        if roster.adopted is not None:
            return self._reforms.on_invitation(now, peer, message, roster)
        known = self._teams.get(roster.team)
        if known is not None and not known.left:  # it comes late: the team stands
            return []
        return self._guest.on_invitation(now, peer, message)

    # -- launching

    def _launch(self, now: Now, launch: Launch) -> list[Effect]:
        """The same team again is the same launch. Raises UsageError('too-many-launches')."""
        if launch.team in self._teams or launch.team in self._launches:
            return []
        if len(self._launches) >= limits.LAUNCHES_MAX:
            raise UsageError("too-many-launches", hint="wait until some teams have formed")
        return self._begin(now, Journal(launch, int(now.wall)))

    def _begin(self, now: Now, journal: Journal) -> list[Effect]:
        team = journal.launch.team
        launch = self._launches[team] = Formation(self._key, self._ground.network, journal, now)
        return [*launch.begin(), self._ask_again(now, team)]

    def _tick(self, now: Now, team: bytes) -> list[Effect]:
        effects = self._on_launch(now, team, lambda launch: launch.tick(now))
        return [*effects, self._ask_again(now, team)] if team in self._launches else effects

    def _on_launch(self, now: Now, team: bytes, do: Callable[[Formation], list[Effect]]) -> list[Effect]:
        """An answer to a launch of ours; founded or failed, it is over."""
        launch = self._launches.get(team)
        if launch is None:
            return []
        effects = do(launch)
        if launch.over:
            del self._launches[team]
            effects.append(SetTimer(f"launch/{team.hex()}", None))
        if launch.founding:
            row = TeamRow(launch.founding)
            effects += self._join(now, self._make(team, row), row)
        return effects

    @staticmethod
    def _ask_again(now: Now, team: bytes) -> SetTimer:
        return SetTimer(f"launch/{team.hex()}", now.boot + _ASK_S)

    # -- letting one in later

    def _add_member(self, now: Now, wanted: AddMember) -> list[Effect]:
        """Raises UsageError('busy' | 'not-allowed' | 'team-ended' | 'already-in' | 'was-removed' | ...)."""
        team = self._teams[wanted.team]
        if wanted.team in self._admissions:
            raise UsageError("busy", "another agent is being called into this team", "try again in a moment")
        team.check_admits(wanted.node)
        admission = self._admissions[wanted.team] = Admission(
            self._key, self._ground.network, team.state.roster, wanted, now
        )
        return [*admission.begin(), SetTimer(f"admit/{wanted.team.hex()}", now.boot + _ASK_S)]

    def _on_admission(self, now: Now, team: bytes, do: Callable[[Admission], list[Effect]]) -> list[Effect]:
        """Signed, the team decides; failed, it is over."""
        admission = self._admissions.get(team)
        if admission is None:
            return []
        effects, timer = do(admission), f"admit/{team.hex()}"
        if not admission.over:
            return [*effects, SetTimer(timer, now.boot + _ASK_S)]
        del self._admissions[team]
        if admission.invite:
            try:
                effects += self._teams[team].handle_command(now, AdmitMember(team, admission.terms, admission.invite))
            except UsageError as fault:  # the coordinator changed meanwhile, or the team's end came
                effects += admission.fail(fault.code)
        return [*effects, SetTimer(timer, None)]

    # -- teams

    def _make(self, team: bytes, row: TeamRow, *, blank: bool = False) -> Team:
        return Team(self._ground, team, row, blank=blank)

    def _remake(self, team: bytes, row: TeamRow) -> tuple[Team, list[Effect]]:
        """A team as it was saved. One whose log or vote is damaged, or gone, begins again without its memory."""
        rows = [(space, key) for space in spaces(team) for key, _ in self._ground.rows(space)]
        what = "its vote is gone"  # it was saved in one group with the team's own row
        if any((space, key) == (spaces(team)[1], b"state") for space, key in rows):
            try:
                return self._make(team, row), []
            except StorageError as fault:
                what = str(fault)
        row = codec.replace(row, lost_disk=True)
        dropped = [Save(space, key, None) for space, key in rows]
        told = Emit(MemoryLost(team, what))
        return self._make(team, row, blank=True), [Save(SPACE, team, codec.encode(row)), *dropped, told]

    def _join(self, now: Now, team: Team, row: TeamRow) -> list[Effect]:
        self._teams[team.team] = team
        return [Save(SPACE, team.team, codec.encode(row)), *team.start(now), *self._forget_old()]

    def _forget_old(self) -> list[Effect]:
        """Of the teams that are over only the newest stay, or they would fill the disk."""
        over = sorted(
            (team for team in self._teams.values() if team.asleep), key=lambda team: (team.state.at, team.team)
        )
        old = over[: -limits.TEAMS_OVER_MAX]
        for team in old:
            del self._teams[team.team]
        named = frozenset[bytes]().union(*(team.state.blobs for team in self._teams.values()))
        return [*(effect for team in old for effect in self._forget(team, named)), *self._nesting.forget()]

    @staticmethod
    def _forget(team: Team, named: frozenset[bytes]) -> list[Effect]:
        voters = tuple(sorted(team.state.roster.voters))
        told = Emit(Forgotten(team.team, voters, tuple(sorted(team.state.blobs - named))))
        return [Save(SPACE, team.team, None), Save(PROMISES, team.team, None), *team.forget(), told]

    def _on_link(self, now: Now, link: LinkPeer) -> list[Effect]:
        asked = [effect for launch in self._launches.values() if link.up for effect in launch.ask(link.node)]
        return [*asked, *self._on_all(now, link)]

    def _on_all(self, now: Now, command: LinkPeer | StepDown | StandAside) -> list[Effect]:
        return [effect for team in self._teams.values() for effect in team.handle_command(now, command)]

    def _hand_in(self, now: Now, effects: list[Effect]) -> list[Effect]:
        """What is sent to this very node comes in at once; what we would drop from a peer we drop from us. So is what
        a team tells of itself handed to those that it is nested in."""
        out: list[Effect] = []
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, Emit):
                taken, more = self._nesting.on_event(now, effect.event)
                out += [] if taken else [effect]
                waiting += more
                continue
            if not isinstance(effect, Send) or effect.to != self._key.node:
                out.append(effect)
                continue
            with suppress(PeerError):
                waiting += self._on_message(now, self._key.node, effect.message)
        return out


def _no_team(team: bytes) -> UsageError:
    return UsageError("no-such-team", team.hex()[:8], "see `ioa-p2p team list`")
