"""The roster and its signatures: what entry 0 of a decision log must prove.

Roster ── encode once ──> bytes ── hash ──> one INVITE frame of each voter ──> Found(bytes, frames)
"""

from dataclasses import dataclass

from ioa_p2p.crypto.envelope import open_frame, seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.step import Found, decode_step
from ioa_p2p.wire.team import Invite


@dataclass(frozen=True, slots=True)
class Terms:
    """What this node signs. members: its agents as offered. allowed: launchers it works for.
    members_max: the largest team it joins. waiting: its agents that wait for this team or one above it."""

    node: bytes
    members: tuple[Member, ...]
    allowed: frozenset[bytes]
    members_max: int = limits.TEAM_MEMBERS_DEFAULT_MAX
    waiting: frozenset[str] = frozenset()


def sign(key: NodeKey, network: bytes, roster: bytes, now: Now) -> bytes:
    """Our counter-signature under a roster (its encoded bytes), good until the roster's deadline."""
    body = codec.decode(roster, Roster)
    invite = Invite(key.node, body.team, blake(roster), int(now.wall), body.deadline)
    return seal(key, network, Kind.INVITE, invite)


def check_signature(frame: bytes, network: bytes, roster: bytes, team: bytes) -> bytes:
    """The voter that signed this roster. Raises PeerError('wrong-invite' or as frames do)."""
    invite = open_frame(frames.parse(frame), network, Kind.INVITE, Invite)
    if invite.team != team or invite.roster != blake(roster):
        raise PeerError("wrong-invite", "signed for another roster")
    return invite.node


def open_found(step: bytes, founder: bytes, team: bytes, network: bytes) -> Roster:
    """The roster of an entry 0, fully checked. Raises PeerError: 'wrong-founding', 'wrong-invite',
    'signature-missing', or as frames do."""
    found = decode_step(step)
    if not isinstance(found, Found):
        raise PeerError("wrong-founding", "entry 0 founds the team")
    roster = codec.decode(found.roster, Roster)
    if (roster.launcher, roster.team) != (founder, team) or founder not in roster.voters:
        raise PeerError("wrong-founding", "the founder is the roster's launcher and a voter")
    if len({(member.node, member.agent) for member in roster.members}) < len(roster.members):
        raise PeerError("wrong-founding", "an agent is listed twice")
    signed = frozenset(check_signature(frame, network, found.roster, roster.team) for frame in found.invites)
    if signed != roster.voters:
        raise PeerError("signature-missing", f"{len(signed)} of {len(roster.voters)} voters signed")
    return roster


def check_terms(roster: Roster, launcher: bytes, terms: Terms, now: Now) -> None:
    """Would we sign? Raises PeerError('not-allowed' | 'wrong-launcher' | 'clock' | 'deadline' | 'too-large' |
    'not-as-bid' | 'cycle')."""
    if launcher != terms.node and launcher not in terms.allowed:
        raise PeerError("not-allowed")
    if roster.launcher != launcher or launcher not in roster.voters:
        raise PeerError("wrong-launcher")
    if abs(roster.created - now.wall) > limits.CLOCK_SKEW_S:
        raise PeerError("clock", "our clocks differ too much")
    if roster.deadline <= roster.created:
        raise PeerError("deadline")
    if len(roster.members) > terms.members_max:
        raise PeerError("too-large")
    if roster.team in roster.ancestors:
        raise PeerError("cycle")
    mine = [member for member in roster.members if member.node == terms.node]
    if any(member.agent in terms.waiting for member in mine):
        raise PeerError("cycle", "an agent would wait for itself")
    if not mine or not all(_as_offered(member, terms.members) for member in mine):
        raise PeerError("not-as-bid")


def _as_offered(entry: Member, offered: tuple[Member, ...]) -> bool:
    """Our entry is what we bid: some skills of one of our agents. The launcher may take away the right to
    coordinate; addresses may have moved since."""
    return any(
        entry in (_bid(offer, entry), codec.replace(_bid(offer, entry), may_coordinate=False)) for offer in offered
    )


def _bid(offer: Member, entry: Member) -> Member:
    skills = tuple(skill for skill in offer.skills if skill in entry.skills)
    return codec.replace(offer, skills=skills, addresses=entry.addresses)
