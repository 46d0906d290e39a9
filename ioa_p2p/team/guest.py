"""The side that is asked: calls are answered with a bid, invitations with a counter-signature.

    Call ── allowed? offered? room? ──> BidFrame | Decline         Invitation ── as bid? ──> InviteFrame | Decline

It keeps nothing: a signature proves itself, and only a founding entry with all of them makes a team. To a
launcher that is not allowed every answer is "not-allowed", whatever else is true.
"""

from collections.abc import Callable

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.team.events import Offer
from ioa_p2p.team.roster import Terms, check_terms, sign
from ioa_p2p.wire import codec
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.team import Bid, BidFrame, Call, Decline, Invitation, InviteFrame, Member, Roster

_BID_S = 60  # a bid binds nobody longer


class Guest:
    def __init__(self, key: NodeKey, network: bytes, allowed: Callable[[], frozenset[bytes]]) -> None:
        """allowed: the launchers this node works for, as of now."""
        self._key = key
        self._network = network
        self._allowed = allowed
        self._offer = Offer(())

    def offer(self, offer: Offer) -> None:
        self._offer = offer

    def on_call(self, now: Now, peer: bytes, call: Call, room: bool) -> list[Effect]:
        refusal = self._refusal(now, peer, call, room)
        if refusal:
            return [Send(peer, Decline(call.team, call.agent, refusal))]
        member = self._member(call.agent)
        assert member is not None, "refused above"
        wall = int(now.wall)
        bid = Bid(self._key.node, call.team, member, wall + self._offer.busy_s, self._offer.load, wall, wall + _BID_S)
        return [Send(peer, BidFrame(seal(self._key, self._network, Kind.BID, bid)))]

    def on_invitation(self, now: Now, peer: bytes, invitation: Invitation) -> list[Effect]:
        roster = codec.decode(invitation.roster, Roster)
        terms = Terms(self._key.node, self._offer.members, self._allowed())
        try:
            check_terms(roster, peer, terms, now)
        except PeerError as fault:
            return [Send(peer, Decline(roster.team, "any", fault.code))]
        return [Send(peer, InviteFrame(roster.team, sign(self._key, self._network, invitation.roster, now)))]

    def _refusal(self, now: Now, peer: bytes, call: Call, room: bool) -> str:
        if peer != self._key.node and peer not in self._allowed():
            return "not-allowed"
        member = self._member(call.agent)
        if member is None or any(member.skill(skill) is None for skill in call.skills):
            return "no-such-agent"
        if call.deadline <= now.wall:
            return "deadline"
        return "" if room and self._offer.load < 255 else "busy"

    def _member(self, agent: str) -> Member | None:
        return next((member for member in self._offer.members if member.agent == agent), None)
