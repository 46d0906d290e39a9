"""Which open tasks are alive, and what becomes of those that are not.

    report ──> lease renewed        silent past the lease, or link lost by a majority ──> Reassign (another member)
                                    nobody else, and silent past lease + grace ──> FAILED, or UNKNOWN for ONCE

A coordinator's view of one term; times are boot seconds.
"""

from dataclasses import dataclass

from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.team.state import TaskRow, TeamState
from ioa_p2p.team.tasks import Profile, may_repeat
from ioa_p2p.wire import limits
from ioa_p2p.wire.roster import Member
from ioa_p2p.wire.step import FinalState, Outcome, Reassign, Step
from ioa_p2p.wire.team import Report


@dataclass(slots=True)
class Lease:
    """One attempt. until_s: it counts as alive up to then. busy: the worker has no room for it.
    result: its final report. text: the end of what it put out so far."""

    attempt: int
    until_s: float
    busy: bool = False
    result: Report | None = None
    text: str = ""


class Leases:
    def __init__(self, state: TeamState, profile: Profile, me: bytes, now: Now) -> None:
        self._state = state
        self._profile = profile
        self._me = me
        self._leases: dict[bytes, Lease] = {}
        self._lost: dict[bytes, frozenset[bytes]] = {}
        for row in state.open_tasks:
            self._of(now, row)

    def on_report(self, now: Now, peer: bytes, report: Report) -> None:
        """Of the current attempt of an open task. Raises PeerError('not-the-worker')."""
        row = self._state.tasks[report.task]
        if peer != row.spec.node:
            raise PeerError("not-the-worker")
        lease = self._of(now, row)
        lease.busy = report.state == "busy"
        lease.until_s = now.boot + self._profile.lease_s + report.retry_s
        lease.text = report.summary or lease.text
        if report.state not in ("accepted", "running", "busy"):
            lease.result = report

    def on_lost(self, peer: bytes, nodes: frozenset[bytes]) -> None:
        self._lost[peer] = nodes & self._state.roster.voters

    def here(self, node: bytes) -> bool:
        return node == self._me or not self._is_lost(node)

    def due(self, now: Now, row: TaskRow) -> Step | None:
        """What an open task needs, if anything."""
        lease = self._of(now, row)
        if lease.result is not None:
            return _outcome(lease.result)
        if now.wall > row.spec.deadline:
            return self._final(row, "expired", "deadline passed")
        lost = self._is_lost(row.spec.node) and not self._state.nests(row.spec)  # its team dissolves within the lease
        if now.boot <= lease.until_s and not lease.busy and not lost:
            return None
        stand_in = self._stand_in(row)
        if stand_in is not None:
            return self._move(row, lease, stand_in)
        if now.boot <= lease.until_s + self._profile.grace_s:
            return None
        return self._final(row, "failed" if may_repeat(row.spec.effect) else "unknown", "worker lost")

    @property
    def texts(self) -> dict[bytes, str]:
        """By task: the end of what it put out, as far as this term heard of it."""
        return {task: lease.text for task, lease in self._leases.items() if lease.text}

    # -- small parts

    def _move(self, row: TaskRow, lease: Lease, to: Member) -> Step:
        spec, begun = row.spec, not lease.busy
        if begun and self._state.budget.write_off(spec.id).cannot_fit(spec.budget):
            return self._final(row, "failed", "worker lost, and no budget left for another try")
        reason = "worker lost" if begun else "busy"
        return Reassign(spec.id, spec.attempt + 1, to.node, to.agent, reason, begun)

    def _of(self, now: Now, row: TaskRow) -> Lease:
        """The lease of the current attempt; it begins when it is first looked at."""
        lease = self._leases.get(row.spec.id)
        if lease is None or lease.attempt != row.spec.attempt:
            lease = self._leases[row.spec.id] = Lease(row.spec.attempt, now.boot + self._profile.lease_s)
        return lease

    def _is_lost(self, node: bytes) -> bool:
        """A majority of the voters, us included, has no link to it; or it is in the team no more."""
        if node not in self._state.roster.voters:
            return True
        reports = sum(node in lost for reporter, lost in self._lost.items() if reporter != node)
        return reports > len(self._state.roster.voters) // 2

    def _stand_in(self, row: TaskRow) -> Member | None:
        """Another member with the skill: the cheapest that is linked and least loaded."""
        spec = row.spec
        if spec.pinned or not may_repeat(spec.effect) or spec.attempt >= limits.TASK_ATTEMPTS_MAX:
            return None
        fit = [member for member in self._state.roster.members if self._fits(member, row)]
        return min(fit, key=lambda member: (self._load(member), member.cost, member.node), default=None)

    def _fits(self, member: Member, row: TaskRow) -> bool:
        skill = member.skill(row.spec.skill)
        same_effect = skill is not None and skill.effect == row.spec.effect
        return same_effect and member.node != row.spec.node and self.here(member.node)

    def _load(self, member: Member) -> int:
        return sum((row.spec.node, row.spec.agent) == (member.node, member.agent) for row in self._state.open_tasks)

    def _final(self, row: TaskRow, state: FinalState, reason: str) -> Outcome:
        """Its worker did not tell the end; what it put out before is kept."""
        lease = self._leases.get(row.spec.id)
        return Outcome(row.spec.id, row.spec.attempt, state, summary=lease.text if lease else "", reason=reason)


def _outcome(report: Report) -> Outcome:
    """A worker's result as a decision."""
    assert report.state not in ("accepted", "running", "busy")
    return Outcome(
        task=report.task,
        attempt=report.attempt,
        state=report.state,
        outputs=report.outputs,
        blobs=report.blobs,
        summary=report.summary,
        reason=report.note,
        retry=report.retry,
        spent=report.spent,
    )
