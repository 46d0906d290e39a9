"""Mallory, a member or a stranger, says what is not so: each lie is a PeerError by name, and changes nothing."""

from typing import Any

import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Emit
from ioa_p2p.errors import PeerError
from ioa_p2p.team.election_events import LinkPeer, Stale
from ioa_p2p.team.role import Role
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.decision import (
    Ack,
    Append,
    DecisionMessage,
    Entry,
    HandOver,
    PreVoteReply,
    PreVoteRequest,
    Vote,
    VoteReply,
    VoteRequest,
)
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from tests.sim.teams import NETWORK, TEAM
from tests.team.stage import Stage

OTHER_MESH = bytes(16)
STRANGER = NodeKey(b"s" * 32)


class Scene:
    """Five members, a coordinates term 1 with entry 1 decided; e is mallory, b is lied to."""

    def __init__(self) -> None:
        self.stage = Stage(5)
        self.stage.play("\n".join([*(f"start {name}" for name in "abcde"), "timer a", "pass"]))
        self.a, self.b, self.c, self.d, self.e = self.stage.cast.keys
        self.member = self.stage.members["b"]
        self.head = self._held(1)

    def vote(
        self, voter: NodeKey, candidate: NodeKey, term: int = 2, network: bytes = NETWORK, **changed: Any
    ) -> bytes:
        roster = blake(self.stage.cast.founding)
        fields = {"team": TEAM, "incarnation": 0, "term": term, "candidate": candidate.node, "roster_index": 0}
        fields |= {"roster_hash": roster, "last_index": 1, "last_term": 1}
        return seal(voter, network, Kind.VOTE, Vote(node=voter.node, **(fields | changed)))

    def votes(self, *voters: NodeKey, candidate: NodeKey | None = None, **changed: Any) -> tuple[bytes, ...]:
        return tuple(self.vote(voter, candidate or self.e, **changed) for voter in voters)

    def entry(self, signer: NodeKey, network: bytes = NETWORK, **changed: Any) -> bytes:
        fields = {"team": TEAM, "incarnation": 0, "term": 1, "index": 2, "previous": blake(self.head), "at": 0}
        fields |= {"certificate": (), "step": b"forged"}
        return seal(signer, network, Kind.DECISION, Entry(node=signer.node, **(fields | changed)))

    def append(self, *entries: bytes, term: int = 1, certificate: tuple[bytes, ...] = (), commit: int = 9) -> Append:
        return Append(TEAM, 0, term, 1, 1, entries, commit, 0, certificate)

    def refused(self, message: DecisionMessage, source: str = "e", target: str = "b") -> str:
        """The code of the fault; nothing else came of it."""
        member = self.stage.members[target]
        before = (member.role, member.fence, member.coordinator, member.commit_index, member.last_index)
        with pytest.raises(PeerError) as refused:
            self.stage.deliver(source, target, message)
        assert (member.role, member.fence, member.coordinator, member.commit_index, member.last_index) == before
        assert member.handle_command(self.stage.now, LinkPeer(STRANGER.node, up=True)) == []
        return refused.value.code

    def _held(self, index: int) -> bytes:
        held = self.member.entry_at(index)
        assert held is not None
        return held.frame


def test_the_scene_is_what_it_says() -> None:
    scene = Scene()
    assert (scene.member.coordinator, scene.member.term, scene.member.commit_index) == (scene.a.node, 1, 1)
    scene.stage.deliver("a", "b", scene.append(scene.entry(scene.a), commit=1))
    assert scene.member.last_index == 2


def test_an_honest_certificate_is_followed() -> None:
    scene = Scene()
    scene.stage.deliver("e", "b", scene.append(term=2, certificate=scene.votes(scene.c, scene.d, scene.e)))
    assert (scene.member.coordinator, scene.member.term) == (scene.e.node, 2)


@pytest.mark.parametrize(
    ("certificate", "code"),
    [
        (lambda scene: scene.votes(scene.e), "no-quorum"),
        (lambda scene: scene.votes(scene.d, scene.e), "no-quorum"),
        (lambda scene: scene.votes(scene.d, scene.e, scene.e), "repeated-voter"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, scene.e), "repeated-voter"),
        (lambda scene: scene.votes(scene.c, scene.d, STRANGER), "not-a-voter"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, candidate=scene.a), "wrong-vote"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, term=3), "wrong-vote"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, incarnation=1), "wrong-vote"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, team=bytes(16)), "wrong-vote"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, roster_hash=bytes(32)), "wrong-vote"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, roster_index=1), "wrong-vote"),
        (lambda scene: scene.votes(scene.c, scene.d, scene.e, network=OTHER_MESH), "bad-signature"),
        (lambda scene: (*scene.votes(scene.d, scene.e), scene.vote(scene.c, scene.e, last_index=0)), "wrong-vote"),
        (lambda scene: tuple(_sign_as(scene.e, vote) for vote in scene.votes(scene.c, scene.d)), "bad-signature"),
        (lambda scene: (scene.entry(scene.e),) * 3, "wrong-kind"),
        (lambda scene: (b"junk",) * 3, "short-frame"),
    ],
)
def test_a_certificate_that_proves_nothing_is_refused(certificate: Any, code: str) -> None:
    scene = Scene()
    assert scene.refused(scene.append(term=2, certificate=certificate(scene))) == code


def test_a_term_without_a_certificate_is_not_followed() -> None:
    scene = Scene()
    assert scene.refused(scene.append(scene.entry(scene.e, term=2), term=2)) == "no-certificate"
    scene.stage.deliver("e", "b", scene.append(term=2))
    assert (scene.member.coordinator, scene.member.term, scene.member.last_index) == (scene.a.node, 1, 1)


def test_the_coordinator_of_a_term_is_one() -> None:
    scene = Scene()
    assert scene.refused(scene.append()) == "second-coordinator"


def test_a_certificate_stolen_from_another_candidate_is_refused() -> None:
    scene = Scene()
    stolen = scene.votes(scene.a, scene.c, scene.d, candidate=scene.c)
    assert scene.refused(scene.append(term=2, certificate=stolen)) == "wrong-vote"


def test_who_may_not_coordinate_is_not_followed_with_any_votes() -> None:
    scene = Scene()
    scene.stage.cast.leads = 2
    scene.stage.play("restart b")
    scene.member = scene.stage.members["b"]
    certificate = scene.votes(scene.c, scene.d, scene.e)
    assert scene.refused(scene.append(term=2, certificate=certificate)) == "not-a-candidate"
    scene.stage.deliver("e", "b", VoteRequest(TEAM, 0, 3, 9, 9))
    assert scene.stage.mail["b", "e"] == [VoteReply(TEAM, 0, 3, b"")]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (lambda scene: scene.entry(scene.e), "wrong-signer"),
        (lambda scene: _sign_as(scene.e, scene.entry(scene.a)), "bad-signature"),
        (lambda scene: scene.entry(scene.a, network=OTHER_MESH), "bad-signature"),
        (lambda scene: scene.entry(scene.a, team=bytes(16)), "wrong-entry"),
        (lambda scene: scene.entry(scene.a, incarnation=1), "wrong-entry"),
        (lambda scene: scene.entry(scene.a, index=3), "wrong-entry"),
        (lambda scene: scene.entry(scene.a, previous=bytes(32)), "wrong-entry"),
        (lambda scene: scene.entry(scene.a, term=0), "wrong-entry"),
        (lambda scene: scene.entry(scene.a, term=2), "no-certificate"),
        (lambda scene: scene.entry(scene.a, certificate=scene.votes(scene.c, scene.d, scene.e)), "wrong-entry"),
        (lambda scene: scene.vote(scene.a, scene.a), "wrong-kind"),
    ],
)
def test_an_entry_that_its_coordinator_did_not_make_so_is_refused(entry: Any, code: str) -> None:
    """a itself passes it on: not even the coordinator may bring what does not follow."""
    scene = Scene()
    assert scene.refused(scene.append(entry(scene)), source="a") == code


@pytest.mark.parametrize(
    "changed", [{"step": b"not empty"}, {"certificate": "of another log end"}, {"certificate": "of another"}]
)
def test_a_term_begins_with_an_empty_step_after_the_log_that_was_voted_on(changed: dict[str, Any]) -> None:
    scene = Scene()
    votes = scene.votes(scene.c, scene.d, scene.e)
    if changed.get("certificate") == "of another log end":
        changed = {"certificate": scene.votes(scene.c, scene.d, scene.e, last_index=0, last_term=0)}
    elif changed.get("certificate") == "of another":
        changed = {"certificate": scene.votes(scene.c, scene.d, scene.e, candidate=scene.d)}
    first = scene.entry(scene.e, **({"term": 2, "step": b"", "certificate": votes} | changed))
    assert scene.refused(scene.append(first, term=2, certificate=votes)) in ("wrong-entry", "wrong-vote")


def test_an_entry_of_a_later_term_than_its_messenger_is_refused() -> None:
    scene = Scene()
    first = scene.entry(scene.e, term=2, step=b"", certificate=scene.votes(scene.c, scene.d, scene.e))
    assert scene.refused(scene.append(first), source="a") == "wrong-signer"


def test_two_entries_in_one_place_and_term_are_a_fork() -> None:
    scene = Scene()
    scene.stage.deliver("a", "b", scene.append(scene.entry(scene.a, step=b"to b"), commit=1))
    assert scene.refused(scene.append(scene.entry(scene.a, step=b"to others")), source="a") == "forked-log"


def test_a_decided_entry_is_not_replaced_even_by_an_elected_coordinator() -> None:
    scene = Scene()
    votes = scene.votes(scene.c, scene.d, scene.e, last_index=0, last_term=0)
    founding = blake(scene.stage.cast.founding)
    first = scene.entry(scene.e, term=2, index=1, previous=founding, step=b"", certificate=votes)
    message = Append(TEAM, 0, 2, 0, 0, (first,), 1, 0, votes)
    assert scene.refused(message) == "conflicts-committed"


def test_an_append_is_bounded_in_bytes() -> None:
    scene = Scene()
    large = scene.entry(scene.a, step=bytes(limits.DECISION_STEP_BYTES_MAX))
    assert scene.refused(scene.append(large, large, large), source="a") == "batch-too-large"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (PreVoteRequest(bytes(16), 0, 9, 9, 9), "wrong-team"),
        (VoteRequest(TEAM, 0, 2 + limits.TERM_LEAP_MAX, 9, 9), "term-leap"),
        (Ack(TEAM, 0, limits.TERM_MAX, False, 0, 0), "term-leap"),
    ],
)
def test_a_word_from_elsewhere_is_refused(message: DecisionMessage, code: str) -> None:
    assert Scene().refused(message) == code


def test_a_stranger_is_not_heard() -> None:
    scene = Scene()
    with pytest.raises(PeerError) as refused:
        scene.member.handle_message(scene.stage.now, STRANGER.node, VoteRequest(TEAM, 0, 2, 1, 1))
    assert refused.value.code == "not-a-voter"


@pytest.mark.parametrize("hand_over", [False, True])
def test_a_stranger_with_a_longer_log_moves_nobody(hand_over: bool) -> None:
    scene = Scene()
    with pytest.raises(PeerError, match="not-a-voter"):
        scene.member.handle_message(scene.stage.now, STRANGER.node, VoteRequest(TEAM, 0, 2, 9, 9, hand_over))
    assert scene.member.term == 1


def test_a_higher_incarnation_is_told_once_and_believed_of_nobody() -> None:
    scene = Scene()
    message = Append(TEAM, 3, 9, 0, 0, (), 0, 0)
    told = [scene.member.handle_message(scene.stage.now, scene.e.node, message) for _ in range(2)]
    assert told == [[Emit(Stale(3))], []]
    assert scene.member.fence == (0, 1)


@pytest.mark.parametrize(
    "vote",
    [
        lambda scene: scene.vote(scene.d, scene.a),  # d's own, but e brings it
        lambda scene: _sign_as(scene.e, scene.vote(scene.d, scene.a)),
        lambda scene: scene.vote(scene.e, scene.c),
        lambda scene: scene.vote(scene.e, scene.a, last_index=0, last_term=0),
    ],
)
def test_a_candidate_counts_only_votes_on_its_own_ballot_from_their_voters(vote: Any) -> None:
    scene = Scene()
    scene.stage.play("wait 3\ntimer a\ntimer a\npass a b\npass a c\npass b a\npass c a")
    member = scene.stage.members["a"]
    assert (member.role, member.term) == (Role.CANDIDATE, 2)
    assert scene.refused(VoteReply(TEAM, 0, 2, vote(scene)), target="a") in ("wrong-vote", "bad-signature")


def test_a_forged_hand_over_makes_nobody_stand() -> None:
    scene = Scene()
    scene.stage.deliver("e", "b", HandOver(TEAM, 0, 1))
    assert scene.member.role is Role.FOLLOWER


def test_an_answer_to_what_was_never_sent_is_refused() -> None:
    scene = Scene()
    scene.member = scene.stage.members["a"]
    ahead = Ack(TEAM, 0, 1, True, 7, 0)
    with pytest.raises(PeerError) as refused:
        scene.stage.deliver("e", "a", ahead)
    assert refused.value.code == "ack-ahead"
    assert scene.member.commit_index == 1


def test_a_granted_pre_vote_of_another_term_does_not_count() -> None:
    scene = Scene()
    scene.stage.play("link b a down")
    for name in "cde":
        scene.stage.deliver(name, "b", PreVoteReply(TEAM, 0, 7, True))
    assert (scene.member.role, scene.member.term) == (Role.PRE_CANDIDATE, 1)


@pytest.mark.parametrize(
    "message",
    [
        PreVoteRequest(TEAM, 1, 2, 3, 4),
        PreVoteReply(TEAM, 1, 2, True),
        VoteRequest(TEAM, 1, 2, 3, 4, True),
        VoteReply(TEAM, 1, 2, b"vote"),
        Append(TEAM, 1, 2, 3, 4, (b"entry",), 5, 6, (b"vote",)),
        Ack(TEAM, 1, 2, True, 3, 4, 5),
        HandOver(TEAM, 1, 2),
    ],
)
def test_every_message_comes_back_as_it_went(message: DecisionMessage) -> None:
    union: Any = DecisionMessage
    data = codec.encode(message)
    assert codec.decode(data, union) == message
    for cut in range(len(data)):
        with pytest.raises(PeerError):
            codec.decode(data[:cut], union)


def _sign_as(forger: NodeKey, frame: bytes) -> bytes:
    """The same body under the forger's signature."""
    parsed = frames.parse(frame)
    signature = forger.sign(envelope._covered(NETWORK, parsed.kind, frame[: limits.FRAME_HEADER_BYTES], parsed.body))
    return frame[: -limits.SIGNATURE_BYTES] + signature
