"""The side that is asked: calls are answered with a bid, invitations with a counter-signature.

    Call ── allowed? offered? room? ──> BidFrame | Decline         Invitation ── as bid? ──> InviteFrame | Decline

What was signed is remembered (space "invite") until the team is founded: a founding entry that we signed but do
not remember tells that our disk was lost, and with it our votes. So is how our clocks differ: a team's deadlines are
by its launcher's. To a launcher that is not allowed every answer
is "not-allowed", whatever else is true.
"""

from collections.abc import Callable, Collection

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Now, Rows, Save, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.team.commands import Offer
from ioa_p2p.team.roster import Terms, check_terms, sign
from ioa_p2p.team.witness import witness
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.team import Bid, BidFrame, Call, Decline, Invitation, InviteFrame

SPACE = "invite"
_BID_S = 60  # a bid binds nobody longer


class Signed(Message, frozen=True):
    """deadline: of the goal, wall seconds. ahead_s: how far the launcher's wall clock was ahead of ours."""

    deadline: int
    ahead_s: int


class Guest:
    def __init__(
        self,
        key: NodeKey,
        network: bytes,
        rows: Rows,
        allowed: Callable[[], frozenset[bytes]],
        waiting: Callable[[Collection[bytes]], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        """allowed: the launchers this node works for, as of now. waiting: our agents that wait for one of these."""
        self._key = key
        self._network = network
        self._allowed = allowed
        self._waiting = waiting
        self._offer = Offer(())
        self._signed = {team: codec.decode(row, Signed) for team, row in rows(SPACE)}

    def start(self, now: Now) -> list[Effect]:
        """Forget signatures whose team can no more be founded in time."""
        late = [team for team, row in self._signed.items() if row.deadline < now.wall - limits.CLOCK_SKEW_S]
        return [effect for team in late for effect in self.forget(team)]

    def offer(self, offer: Offer) -> None:
        self._offer = offer

    def signed(self, team: bytes) -> Signed | None:
        return self._signed.get(team)

    def forget(self, team: bytes) -> list[Effect]:
        return [Save(SPACE, team, None)] if self._signed.pop(team, None) is not None else []

    def on_call(self, now: Now, peer: bytes, call: Call, room: bool) -> list[Effect]:
        member = self._member(call.agent)
        refusal = self._refusal(now, peer, call, room)
        if refusal or member is None:
            return [Send(peer, Decline(call.team, call.agent, refusal))]
        wall, called = int(now.wall), tuple(skill for skill in member.skills if skill.name in call.skills)
        member = codec.replace(member, skills=called)
        bid = Bid(self._key.node, call.team, member, wall + self._offer.busy_s, self._offer.load, wall, wall + _BID_S)
        return [Send(peer, BidFrame(seal(self._key, self._network, Kind.BID, bid)))]

    def on_invitation(self, now: Now, peer: bytes, invitation: Invitation) -> list[Effect]:
        roster = codec.decode(invitation.roster, Roster)
        waiting = self._waiting((*roster.ancestors, roster.team))
        terms = Terms(self._key.node, self._offered, self._allowed(), waiting=waiting)
        try:
            check_terms(roster, peer, terms, now)
        except PeerError as fault:
            return [Send(peer, Decline(roster.team, "any", fault.code))]
        signed = self._signed[roster.team] = Signed(roster.deadline, roster.created - int(now.wall))
        signature = sign(self._key, self._network, invitation.roster, now)
        return [
            *self._make_room(),
            Save(SPACE, roster.team, codec.encode(signed)),
            Send(peer, InviteFrame(roster.team, signature)),
        ]

    def _make_room(self) -> list[Effect]:
        """A launcher that founds nothing must not fill the disk. Of whose team is founded after all we know only
        that we signed it, as after a lost disk: we never vote there."""
        oldest = list(self._signed)[: -limits.INVITES_SIGNED_MAX]
        return [effect for team in oldest for effect in self.forget(team)]

    def _refusal(self, now: Now, peer: bytes, call: Call, room: bool) -> str:
        if peer != self._key.node and peer not in self._allowed():
            return "not-allowed"
        member = self._member(call.agent)
        if member is None or any(member.skill(skill) is None for skill in call.skills):
            return "no-such-agent"
        if call.agent in self._waiting((*call.ancestors, call.team)):
            return "cycle"
        if call.deadline <= now.wall - limits.CLOCK_SKEW_S:
            return "deadline"
        return "" if room and self._offer.load < 255 else "busy"

    def _member(self, agent: str) -> Member | None:
        return next((member for member in self._offered if member.agent == agent), None)

    @property
    def _offered(self) -> tuple[Member, ...]:
        """Our agents; and we are a witness to whom we work for."""
        return (*self._offer.members, witness(self._key.node, self._offer.addresses))
