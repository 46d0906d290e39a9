"""One team at one member: its election, its decided state, this node's work in it, and the lead when it has it.

    DecisionMessage ──> Election ── Committed ──> TeamState ── changes ──> events, Worker
    Report, Said, LostLinks, Wish ──> Coordinator ── due ──> Election.Propose        (only while it leads)

After the conclusion it lingers, so that late members learn the end, then sleeps; a voter that asks for an
election, or says that it has joined, is one that does not know the end yet, and wakes it. It sleeps too when long after
the deadline nobody leads.
"""

from collections.abc import Sequence

from ioa_p2p.effects import Effect, Emit, Now, Rows, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.team import election_events as told
from ioa_p2p.team import saved_state
from ioa_p2p.team.adoption import founded_on
from ioa_p2p.team.affairs import Affairs, wish_of
from ioa_p2p.team.changes import events_of
from ioa_p2p.team.commands import (
    AdmitMember,
    Answer,
    CancelTeam,
    LinkPeer,
    PlanFailed,
    PlanStep,
    RemoveMember,
    StandAside,
    StepDown,
    TaskDone,
    TaskFailed,
    TaskProgress,
    TeamCommand,
    WorkerDied,
)
from ioa_p2p.team.coordinator import Coordinator
from ioa_p2p.team.election import Election
from ioa_p2p.team.events import (
    Concluded,
    Connect,
    Elected,
    Halted,
    MemoryLost,
    PlanRefused,
    PlanWanted,
    RosterChanged,
    TeamFormed,
)
from ioa_p2p.team.ground import Ground
from ioa_p2p.team.hearsay import Hearsay
from ioa_p2p.team.lineage import LEFT_BEHIND, Lineage
from ioa_p2p.team.links import Links
from ioa_p2p.team.phases import Move, next_phase
from ioa_p2p.team.phases import Role as Speaker
from ioa_p2p.team.post import Post
from ioa_p2p.team.rest import Rest
from ioa_p2p.team.role import Role
from ioa_p2p.team.roster import open_team
from ioa_p2p.team.row import TeamRow
from ioa_p2p.team.state import (
    Change,
    Checked,
    Committed,
    Ended,
    Refused,
    RosterMoved,
    TaskMoved,
    step_of,
)
from ioa_p2p.team.supervision import Supervision
from ioa_p2p.team.worker import Deed, Worker
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import DecisionMessage, Entry
from ioa_p2p.wire.roster import Member
from ioa_p2p.wire.step import Admit, Remove, RosterStep, is_known
from ioa_p2p.wire.team import Founding, Joined, LostLinks, Report, Said, Wish

TeamTraffic = Founding | Joined | Report | Said | LostLinks | Wish

_HURRY_S = 0.5  # between founding entries sent to a member that was never heard


class Team(Lineage):
    def __init__(
        self,
        ground: Ground,
        team: bytes,
        row: TeamRow,
        *,
        blank: bool = False,
        worker: Worker | None = None,
    ) -> None:
        """blank: what is saved of the log does not count. worker: of the incarnation before.
        Raises PeerError unless its founding proves a team with us in it, or we signed to come in later."""
        rows: Rows = (lambda space: []) if blank else ground.rows
        roster = open_team(row.founding, team, ground.network)
        self.node = ground.key.node
        if self.node not in roster.voters and row.lost_disk:
            raise PeerError("not-a-member")
        self.team = team
        self.state = founded_on(roster, row.state)
        self.halted = LEFT_BEHIND if row.left else ""
        self.outdated = ""
        self._row = row
        self._ground = ground
        rank = max((member.rank for member in self._mine), default=0) / 255
        self._election = Election(
            ground.key, ground.network, team, roster.incarnation, roster.voters, roster.candidates,
            rank, ground.timing, ground.rng, row.founding, rows, lost_disk=row.lost_disk,
        )  # fmt: skip
        self._worker = worker or Worker(
            self.node, team, roster.launcher, ground.rows, ground.profile, ground.queue, ground.life,
            lost_disk=row.lost_disk,
        )  # fmt: skip
        self._worker.serve(roster.incarnation)
        self._affairs = Affairs(self._election, ground.network)
        self._supervision = Supervision(roster, self.node, ground.profile)
        self._coordinator: Coordinator | None = None
        self._links = Links(roster.voters - {self.node})
        self._post = Post(team, row.founding, self._election, self._links)
        self._rest = Rest(ground.profile)
        self._hearsay = Hearsay()

    @property
    def asleep(self) -> bool:
        return self._rest.asleep

    @property
    def _is_over(self) -> bool:
        return self.state.conclusion is not None

    @property
    def _mine(self) -> list[Member]:
        """Our agents in it; none before we are let in."""
        return [member for member in self.state.roster.members if member.node == self.node]

    @property
    def coordinator(self) -> bytes | None:
        """Who leads, as far as this member knows."""
        return self._election.coordinator

    def check_admits(self, node: bytes) -> None:
        """Would we call a node in? Raises UsageError."""
        self._affairs.check_admits(self.state, self.node, node)

    @property
    def election(self) -> Election:
        return self._election

    def runs(self, task: bytes, attempt: int) -> bool:
        """Here, without a result yet."""
        return self._worker.runs(task, attempt)

    # -- inputs

    def start(self, now: Now) -> list[Effect]:
        """Also after a restart: the decided past is told again."""
        now = self._ours(now)
        self._rest.begin(now)
        settled = self._settle(now, self._election.start(now))
        others = {member.node: member.addresses for member in self.state.roster.members if member.node != self.node}
        links: list[Effect] = [Emit(Connect(node, addresses)) for node, addresses in others.items()]
        formed: list[Effect] = [Emit(TeamFormed(self.team, self.state.roster)), *self._tell_adopted_end()]
        if self.halted:
            return [*formed, *settled, *self._timers_off()]
        if self._is_over:
            return [*formed, *settled, *self._sleep()]
        return [*links, *formed, *settled, *self._beat(now)]

    def handle_message(self, now: Now, peer: bytes, message: DecisionMessage | TeamTraffic) -> list[Effect]:
        """Raises PeerError for a peer's fault."""
        now = self._ours(now)
        if self._is_behind(peer, message):
            return [Send(peer, Founding(self.left or self.founding))]
        known = peer == self.node or peer in self.state.roster.voters
        if not known and isinstance(message, TeamTraffic) and not isinstance(message, Founding):
            raise PeerError("not-a-voter")
        if self.halted:
            return []
        self._supervision.hear(now, peer)
        if isinstance(message, TeamTraffic):
            effects = self._on_traffic(now, peer, message)
        elif self._is_silent(now) or self._sleeps_through(message, known=known):
            return []
        else:
            message = self._affairs.checkpoints.screen(peer, message)
            effects = [*self._wake(now), *self._settle(now, self._election.handle_message(now, peer, message))]
        self._links.hear(peer)
        return effects

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        now = self._ours(now)
        if self.asleep or self.halted:
            return []
        if name == self._timer:
            return [*self._beat(now), *self._post.ask_for_news(self.state, self.node)]
        if self._is_silent(now):
            return [SetTimer(name, self._silent_until_s)]
        return self._settle(now, self._election.handle_timer(now, name))

    def handle_command(self, now: Now, command: TeamCommand) -> list[Effect]:
        now = self._ours(now)
        if self.halted:
            return []
        match command:
            case LinkPeer():
                return [] if self.asleep else self._on_link(now, command)
            case AdmitMember(_, terms, invite):
                return self._on_roster_wish(now, Admit(terms, invite))
            case RemoveMember(_, node, cut, reason):
                return self._on_roster_wish(now, Remove(node, cut, reason[: limits.REASON_CHARS_MAX]))
            case StepDown() | StandAside():
                return [] if self.asleep else self._settle(now, self._election.handle_command(now, command))
            case PlanStep() | PlanFailed():
                return self._on_plan(now, command)
            case CancelTeam():
                return self._on_cancel(command)
            case Answer():
                return self._on_answer(command)
            case TaskProgress() | TaskDone() | TaskFailed() | WorkerDied():
                return self._carry(self._worker.hear(now, self.state, command))

    def _ours(self, now: Now) -> Now:
        """Time as this team counts it."""
        return Now(now.wall + self._row.ahead_s, now.boot)

    # -- what members say

    def _on_traffic(self, now: Now, peer: bytes, message: TeamTraffic) -> list[Effect]:
        match message:
            case Report():
                return self._on_report(now, peer, message)
            case Said() | Wish() | LostLinks():
                if self._coordinator is None:
                    return []
                return self._on_word(now, self._coordinator, peer, message)
            case Founding():
                return [Send(peer, Joined(self.team))]
            case Joined():
                return self._wake(now)

    def _on_word(
        self, now: Now, coordinator: Coordinator, peer: bytes, message: Said | Wish | LostLinks
    ) -> list[Effect]:
        match message:
            case LostLinks():
                coordinator.on_lost(peer, frozenset(message.nodes))
            case Said():
                next_phase(Speaker.MEMBER, self.state.phase, Move.HEAR)
                coordinator.on_said(peer, message)
            case Wish():
                next_phase(Speaker.MEMBER, self.state.phase, Move.WISH)
                if message.what == "change":
                    self._affairs.wish(self.state, peer, message.change)
                else:
                    coordinator.on_wish(message)
        return self._settle(now, [])

    def _on_report(self, now: Now, peer: bytes, report: Report) -> list[Effect]:
        row = self.state.tasks.get(report.task)
        if row is None:
            return []
        if row.state.final or report.attempt < row.spec.attempt:
            decided = row.outcome is not None and row.outcome.attempt == report.attempt
            orphan = None if decided else self._hearsay.late(self.team, report)
            return [Emit(orphan)] if orphan is not None else []
        if report.attempt > row.spec.attempt:
            return []
        if self._coordinator is not None:
            next_phase(Speaker.MEMBER, self.state.phase, Move.REPORT)
            self._coordinator.on_report(now, peer, report)
        elif peer != row.spec.node:
            raise PeerError("not-the-worker")
        told = self._hearsay.progress(self.team, row.spec, report)
        return [*([Emit(told)] if told is not None else []), *self._settle(now, [])]

    # -- what our side says

    def _on_link(self, now: Now, link: LinkPeer) -> list[Effect]:
        if link.node in self.absent and link.up and self._brings_founding:
            return [Send(link.node, Founding(self.founding))]
        if link.node not in self.state.roster.voters:
            return []
        is_news = self._links.set(link.node, up=link.up)
        effects = self._settle(now, self._election.handle_command(now, link))
        if link.up:
            effects += [*self._bring_founding({link.node}), *self._repeat_to(link.node)]
        return effects + (self._post.lost_links() if is_news else [])

    def _on_plan(self, now: Now, plan: PlanStep | PlanFailed) -> list[Effect]:
        if self._coordinator is None:
            return []
        if isinstance(plan, PlanStep):
            problem = self._coordinator.on_plan(now, plan.version, plan.step, plan.spent)
        else:
            problem = self._coordinator.on_plan_failed(plan.version, plan.reason, plan.spent)
        refused: list[Effect] = [Emit(PlanRefused(self.team, problem))] if problem else []
        return [*refused, *self._settle(now, [])]

    def _on_cancel(self, cancel: CancelTeam) -> list[Effect]:
        """Raises UsageError('team-ended' | 'no-such-task')."""
        if self._is_over:
            raise UsageError("team-ended", "the team has concluded already")
        if any(task not in self.state.tasks for task in cancel.tasks):
            raise UsageError("no-such-task", hint="see `ioa-p2p task list`")
        what = "cancel" if cancel.tasks else "conclude"
        wish = Wish(self.team, what, cancel.tasks[: limits.STEP_TASKS_MAX], cancel.reason[: limits.REASON_CHARS_MAX])
        self._post.wishes.add(wish)
        return self._post.to_coordinator([wish])

    def _on_roster_wish(self, now: Now, step: RosterStep) -> list[Effect]:
        """Raises UsageError for what would be refused."""
        self._affairs.check(self.state, self.node, step)
        wish = wish_of(self.team, step)
        self._post.wishes.add(wish)
        return self._post.to_coordinator([wish])

    def _on_answer(self, answer: Answer) -> list[Effect]:
        said = Said(self.team, answer.turn, answer.text[: limits.LINE_CHARS_MAX])
        self._post.wishes.answer(said)
        return self._post.to_coordinator([said])

    # -- the log moves

    def _settle(self, now: Now, effects: list[Effect]) -> list[Effect]:
        """Fold what the election tells and propose what is due, until nothing moves; then the worker acts."""
        done: list[Effect] = []
        while True:
            for effect in effects:
                done += self._on_told(now, effect.event) if isinstance(effect, Emit) else [effect]
            effects = self._propose(now)
            if not effects:
                break
        may_begin = self._election.coordinator is not None and not self.outdated
        done += self._carry(self._worker.reconcile(now, self.state, new=may_begin))
        return [*done, *self._ask(now)]

    def _on_told(self, now: Now, event: object) -> list[Effect]:
        match event:
            case told.Committed():
                return self._on_committed(now, event.entry, event.frame)
            case told.Restored():
                return self._on_restored(now, event)
            case told.Elected():
                elected = Emit(Elected(self.team, event.term, event.coordinator))
                return [elected, *self._repeat_to(event.coordinator)]
            case told.Deposed():
                self._coordinator = None
                return []
            case told.MemoryLost():
                return [Emit(MemoryLost(self.team, event.what))]
            case _:  # a higher incarnation: its founding entry will be brought
                return []

    def _on_restored(self, now: Now, restored: told.Restored) -> list[Effect]:
        """The state that a snapshot, or our disk, holds; verified before."""
        try:
            self.state = saved_state.decode(restored.state)
        except PeerError as fault:
            return self._halt(f"the team's state is of another version than this program: {fault}")
        self.outdated = ""  # it may be of after what we could not read
        self._links.unheard &= self.state.roster.voters
        changed = RosterChanged(self.team, "restored", b"", (), self.state.roster)
        ended = self.state.conclusion
        return [Emit(changed), *([Emit(Concluded(self.team, ended))] if ended is not None else [])]

    def _halt(self, reason: str) -> list[Effect]:
        """A bug or a liar: nothing more is decided, done or said here for this team."""
        self.halted, self._coordinator = reason, None
        return [Emit(Halted(self.team, reason)), *self._timers_off()]

    def _fall_behind(self, index: int) -> list[Effect]:
        """We cannot fold what a newer version decided. We keep the log and end what runs; the election itself votes
        no more (`Electorates.unread`)."""
        self.outdated = f"decision {index} is of a kind that only a newer version of this program knows: update it"
        return [Emit(Halted(self.team, self.outdated))]

    def _on_committed(self, now: Now, entry: Entry, frame: bytes) -> list[Effect]:
        if self.halted or self.outdated:
            return []
        if not is_known(entry.step):
            return self._fall_behind(entry.index)
        changes = self.state.apply(Committed(entry.index, entry.term, entry.node, entry.at, step_of(entry.step)))
        if entry.node == self.node and self._coordinator is not None:
            refused = next((each.code for each in changes if isinstance(each, Refused)), "")
            self._coordinator.on_decided(entry.step, refused)
        leads = self._election.role is Role.COORDINATOR and entry.term == self._election.term
        if leads and self._coordinator is None:
            me, ground = (self.node, self._mine[0].agent), self._ground
            self._coordinator = Coordinator(self.state, me, ground.profile, ground.rng, now, self._supervision)
        self._affairs.checkpoints.mark(self.state, frame)
        return [effect for change in changes for effect in self._on_change(now, change)]

    def _on_change(self, now: Now, change: Change) -> list[Effect]:
        """Tell it, and do what follows."""
        told_all: list[Effect] = [Emit(event) for event in events_of(change, self.state, self.node)]
        match change:
            case TaskMoved():
                self._hearsay.decided(change.row.spec.id)
            case Ended():
                self._rest.linger(now)
            case RosterMoved():
                return [*told_all, *self._on_roster(change)]
            case Checked():
                return self._on_checked(now, change)
            case _:
                pass
        return told_all

    def _on_roster(self, moved: RosterMoved) -> list[Effect]:
        """A newcomer is linked and brought the founding entry; who left is forgotten; left ourselves, we sleep."""
        if isinstance(moved.step, Admit) and moved.node != self.node:
            self._links.admit(moved.node)
            return [Emit(Connect(moved.node, moved.members[0].addresses))]
        if isinstance(moved.step, Remove):
            self._links.drop(moved.node)
            return self._sleep() if moved.node == self.node else []
        return []

    def _on_checked(self, now: Now, checked: Checked) -> list[Effect]:
        try:
            compact = self._affairs.checkpoints.judge(checked)
        except PeerError as fault:
            return self._halt(str(fault))
        return self._election.handle_command(now, compact) if compact is not None else []

    def _propose(self, now: Now) -> list[Effect]:
        effects: list[Effect] = []
        if self._coordinator is None:
            return effects
        for due in self._coordinator.due(now):
            try:
                effects += self._election.handle_command(now, told.Propose(due.step, due.key))
            except UsageError:  # we lead no more, or the log is busy: it stays due
                self._coordinator.on_not_proposed(due.step)
        return effects + self._affairs.propose(now, self.state)

    def _ask(self, now: Now) -> list[Effect]:
        if self._coordinator is None or self._is_over:
            return []
        view = self._coordinator.ask(now, self._hearsay.states)
        return [Emit(PlanWanted(view))] if view is not None else []

    # -- beats and repetition

    def _beat(self, now: Now) -> list[Effect]:
        """All that must arrive is said again."""
        if self._is_over and self._rest.is_due(now) and not self._worker.busy:
            return self._sleep()
        self._rest.look(now, led=self._election.coordinator is not None)
        launcher, deadline = self.node == self.state.roster.launcher, self.state.roster.deadline
        if not self._is_over and not launcher and self._rest.is_abandoned(now, deadline):
            return [*self._carry(self._worker.abandon()), *self._sleep()]
        effects = [*self._carry(self._worker.beat(now)), *self._bring_founding(self._links.unheard)]
        effects += [*self._post.lost_links(), *self._post.open_wishes(self.state), *self._settle(now, [])]
        hurry = self._links.unheard and self._brings_founding
        next_s = min(_HURRY_S, self._ground.profile.beat_s) if hurry else self._ground.profile.beat_s
        return [*effects, SetTimer(self._timer, now.boot + next_s)]

    def _repeat_to(self, node: bytes) -> list[Effect]:
        """A coordinator that is new, or linked again, hears at once what it may lack."""
        if node != self._election.coordinator:
            return []
        reports = self._carry(self._worker.open_reports())
        return [*reports, *self._post.lost_links(), *self._post.open_wishes(self.state)]

    @property
    def _brings_founding(self) -> bool:
        return self.node == self.state.roster.launcher or self._coordinator is not None

    def _bring_founding(self, nodes: set[bytes]) -> list[Effect]:
        return self._post.founding(nodes) if self._brings_founding else []

    def _carry(self, deeds: Sequence[Deed]) -> list[Effect]:
        return self._post.carry(deeds, self.state)

    # -- after the end

    def _sleeps_through(self, message: DecisionMessage, *, known: bool) -> bool:
        return self.asleep and not self._rest.is_broken_by(message, concluded=self._is_over, known=known)

    def _stop(self) -> list[Effect]:
        self._coordinator = None
        return self._sleep()

    def _wake(self, now: Now) -> list[Effect]:
        if not self.asleep:
            return []
        self._rest.wake(now)
        woken = self._election.handle_timer(now, f"election/{self.team.hex()}")
        return [*self._settle(now, woken), *self._beat(now)]
