"""The inviter's side of letting one agent into a team that works already.

    CALLING ── bid ──> INVITING ── signed ──> admitted: the team decides          declined, silent ──> failed

The invited node signs terms of its own: a roster of this team with its inviter and itself (docs/wire.md, "Teams").
Nothing is saved: an inviter that dies asks again from the start.
"""

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.team.commands import AddMember
from ioa_p2p.team.events import AdmissionFailed, Connect
from ioa_p2p.team.roster import check_signature
from ioa_p2p.wire import codec, frames
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.team import Bid, Call, Invitation

_PATIENCE_S = 10.0  # for its link, its bid and its signature together


class Admission:
    """`terms` and `invite` are there once it signed; `over` when nothing is left to do."""

    def __init__(self, key: NodeKey, network: bytes, roster: Roster, wanted: AddMember, now: Now) -> None:
        """roster: the team's, as decided."""
        self._key, self._network, self._team, self._wanted = key, network, roster, wanted
        self._until_s = now.boot + _PATIENCE_S
        self.terms = self.invite = b""
        self.over = False

    def begin(self) -> list[Effect]:
        return [Emit(Connect(self._wanted.node, self._wanted.addresses)), *self.ask()]

    def ask(self) -> list[Effect]:
        """Again and again: for its bid, then for its signature."""
        if self.terms:
            return [Send(self._wanted.node, Invitation(self.terms))]
        wanted, team = self._wanted, self._team
        call = Call(team.team, wanted.agent, wanted.skills, team.goal, team.deadline, team.ancestors)
        return [Send(wanted.node, call)]

    def tick(self, now: Now) -> list[Effect]:
        return self.ask() if now.boot < self._until_s else self.fail("silent")

    def on_bid(self, now: Now, peer: bytes, frame: bytes) -> list[Effect]:
        """Raises PeerError('wrong-bid' or as frames do)."""
        bid, wanted = open_frame(frames.parse(frame), self._network, Kind.BID, Bid), self._wanted
        if peer != bid.node or (bid.member.node, bid.member.agent) != (wanted.node, wanted.agent):
            raise PeerError("wrong-bid")
        if not self.terms:
            self.terms = codec.encode(self._terms_for(bid.member, now))
        return self.ask()

    def on_signature(self, peer: bytes, frame: bytes) -> list[Effect]:
        """Raises PeerError('wrong-invite' or as frames do)."""
        if not self.terms:
            return []
        if check_signature(frame, self._network, self.terms, self._team.team) != peer or peer != self._wanted.node:
            raise PeerError("wrong-invite", "not the invited one's own")
        self.invite, self.over = frame, True
        return []

    def on_decline(self, peer: bytes, reason: str) -> list[Effect]:
        """Only the invited one's own word counts."""
        return self.fail(reason) if peer == self._wanted.node else []

    def fail(self, code: str) -> list[Effect]:
        self.over = True
        return [Emit(AdmissionFailed(self._team.team, self._wanted.node, self._wanted.agent, code))]

    def _terms_for(self, member: Member, now: Now) -> Roster:
        """By our own clock, as an invited node checks it."""
        mine = Member(self._key.node, "inviter")
        leads = member.may_coordinate and self._wanted.may_coordinate
        joining = codec.replace(member, may_coordinate=leads)
        created = int(now.wall)
        deadline = created + max(1, self._team.deadline - int(now.wall))
        return Roster(
            self._team.team, 0, self._team.goal, self._key.node, (mine, joining), created, deadline,
            ancestors=self._team.ancestors,
        )  # fmt: skip
