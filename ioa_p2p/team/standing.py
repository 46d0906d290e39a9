"""Who stands how in a team: voters, those of them that may lead, learners, and who is gone. One change at a time.

    stranger ── Admit ──> learner ── Promote ──> voter          learner or voter ── Remove ──> gone, for good

Source: Ongaro's thesis, 4.1 (changes of one server) and 4.2.1 (learners catch up first). Pure: the election takes a
change when its entry is appended, the decided state when it is committed, by the same rules.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.step import Admit, Promote, Remove, RosterStep
from ioa_p2p.wire.team import Invite

_NONE: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Standing:
    """Sets of nodes. candidates: who may lead once it votes. gone: removed; a node that comes back could have
    forgotten its votes, so it may not."""

    voters: frozenset[bytes]
    candidates: frozenset[bytes]
    learners: frozenset[bytes] = _NONE
    gone: frozenset[bytes] = _NONE

    @property
    def nodes(self) -> frozenset[bytes]:
        """All that get the log."""
        return self.voters | self.learners


class Newcomer(NamedTuple):
    """Who an Admit lets in, by whom it was invited, as which agents."""

    node: bytes
    inviter: bytes
    members: tuple[Member, ...]


def newcomer(step: Admit) -> Newcomer:
    """Its signature is not checked here. Raises PeerError('wrong-admission' or as decoding does)."""
    terms = codec.decode(step.terms, Roster)
    node = codec.decode(frames.parse(step.invite).body, Invite).node
    members = tuple(member for member in terms.members if member.node == node)
    if not members or node == terms.launcher:
        raise PeerError("wrong-admission", "the terms name nobody new who signed them")
    return Newcomer(node, terms.launcher, members)


def check_admission(step: Admit, network: bytes, team: bytes) -> None:
    """The newcomer signed, for this team. Raises PeerError('wrong-admission' or as frames do)."""
    invite = open_frame(frames.parse(step.invite), network, Kind.INVITE, Invite)
    if invite.team != team or invite.roster != blake(step.terms) or codec.decode(step.terms, Roster).team != team:
        raise PeerError("wrong-admission", "signed for something else")


def changed(before: Standing, step: RosterStep) -> Standing:
    """Raises PeerError: 'was-removed', 'already-in', 'too-many-voters', 'wrong-admission', 'not-a-learner',
    'not-a-member', 'last-candidate'."""
    match step:
        case Admit():
            return _admitted(before, newcomer(step))
        case Promote(node):
            _need(node in before.learners, "not-a-learner", "only a learner can be made a voter")
            return replace(before, voters=before.voters | {node}, learners=before.learners - {node})
        case Remove(node):
            return _removed(before, node)


def _admitted(before: Standing, new: Newcomer) -> Standing:
    _need(new.node not in before.gone, "was-removed", "who was removed from a team does not come back to it")
    _need(new.node not in before.nodes, "already-in", "this node is in the team")
    room = len(before.nodes) < limits.VOTERS_ADMITTED_MAX
    _need(room, "too-many-voters", f"a team has at most {limits.VOTERS_ADMITTED_MAX} nodes")
    leads = any(member.may_coordinate for member in new.members)
    candidates = before.candidates | ({new.node} if leads else _NONE)
    return replace(before, candidates=candidates, learners=before.learners | {new.node})


def _removed(before: Standing, node: bytes) -> Standing:
    _need(node in before.nodes, "not-a-member", "this node is not in the team")
    left = before.candidates & before.voters - {node}
    _need(bool(left), "last-candidate", "nobody would be left who may coordinate the team")
    return Standing(before.voters - {node}, before.candidates - {node}, before.learners - {node}, before.gone | {node})


def _need(holds: bool, code: str, message: str) -> None:
    if not holds:
        raise PeerError(code, message)
