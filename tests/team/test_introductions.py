"""Who came in later and meets a member whose log lags: it proves itself, and nobody else can."""

from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Send
from ioa_p2p.errors import PeerError
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Compact, Propose
from ioa_p2p.team.introductions import introduction
from ioa_p2p.team.role import Role
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Introduce, PreVoteReply, PreVoteRequest, RosterLink, SnapshotPart, VoteRequest
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, Promote, Remove, Step, encode_step
from tests.sim.election import Trial
from tests.sim.teams import NETWORK, TEAM, Cast, members
from tests.team.people import admission

LATE = NodeKey(b"l" * 32)


class Lagging:
    """Three found a team. One was away while `late` came in, was made a voter, and another left: its log knows
    nothing of it. Then who led dies for good: of the three voters left, one lags and one is unknown to it."""

    def __init__(self, seed: int = 7, *, compact: bool = False) -> None:
        self.trial = Trial(seed, Election, 3)
        self.world = self.trial.world
        self.trial.start()
        assert self.world.run(5, until=lambda: self.trial.decided() > 0)
        self.world.run(1)
        self.sent: list[tuple[bytes, Any]] = []
        self.world.on_send.append(lambda world, source, target, message: self.sent.append((target, message)))
        self.lead, self.behind, self.leaver = sorted(self.trial.nodes, key=self._leads_first)
        self._change(compact=compact)

    def _leads_first(self, node: bytes) -> bool:
        return members(self.world)[node].coordinator != node

    def _change(self, *, compact: bool) -> None:
        for node in (self.lead, self.leaver):
            self.world.cut(self.behind, node)
            self.world.cut(node, self.behind)
        self.world.add(LATE.node, lambda node, saved, rng, now: joined(self.trial.cast, saved, rng))
        self.world.cut(self.behind, LATE.node)
        self.world.cut(LATE.node, self.behind)
        self.decide(admission(LATE, by=self.trial.cast.keys[0], team=TEAM))
        self.decide(Promote(LATE.node))
        self.decide(Remove(self.leaver))
        if compact:
            self._compact()
        for node in (self.lead, self.leaver):
            self.world.crash(node)
        assert LATE.node not in members(self.world)[self.behind].electorate.nodes

    def decide(self, step: Step) -> None:
        encoded = encode_step(step)
        self.world.command(self.lead, Propose(encoded, blake(encoded)))
        at = members(self.world)[self.lead].last_index
        assert self.world.run(5, until=lambda: members(self.world)[self.lead].commit_index >= at)
        self.world.run(1)

    def _compact(self) -> None:
        member = members(self.world)[self.lead]
        held = member.entry_at(at := member.commit_index)
        assert held is not None
        self.decide(Checkpoint(at, held.hash, member.electorate.roster_index, blake(b"state"), 1))
        for node in (self.lead, LATE.node):
            self.world.command(node, Compact(at, b"state", at + 1))

    def is_led(self) -> bool:
        """By the newcomer, whom the others follow."""
        late = members(self.world)[LATE.node]
        return late.role is Role.COORDINATOR and late.is_settled

    def mend(self) -> None:
        self.world.mend()

    def proof(self) -> Introduce:
        return introduction(members(self.world)[LATE.node]._log)

    def tell(self, message: Any, peer: bytes = LATE.node) -> list[Any]:
        machine = members(self.world)[self.behind]
        return machine.handle_message(self.world.now(self.world.hosts[self.behind]), peer, message)

    def asks(self, peer: bytes) -> Any:
        """What a question of `peer` brings at who lags: an answer, or the fault."""
        member = members(self.world)[self.behind]
        before = member.term
        try:
            effects = self.tell(PreVoteRequest(TEAM, 0, before + 1, 9, 9), peer)
        except PeerError as fault:
            assert member.term == before
            return fault.code
        return [effect.message for effect in effects if isinstance(effect, Send)]


def joined(cast: Cast, saved: Any, rng: Any) -> Election:
    """One that is in no founding roster."""
    voters = frozenset(cast.nodes)
    return Election(LATE, NETWORK, TEAM, 0, voters, voters, 0.5, cast.timing, rng, cast.founding, saved)


@pytest.mark.parametrize("compact", [False, True])
def test_a_newcomer_and_a_member_that_lags_are_a_majority(compact: bool) -> None:
    """Also where the entries that let it in are no more in its log."""
    scene = Lagging(compact=compact)
    scene.mend()
    assert scene.world.run(10, until=scene.is_led)
    scene.world.run(1)
    behind, late = members(scene.world)[scene.behind], members(scene.world)[LATE.node]
    assert (behind.coordinator, behind.commit_index) == (LATE.node, late.commit_index)
    assert behind.electorate == late.electorate
    assert any(isinstance(message, SnapshotPart) for _, message in scene.sent) is compact


def test_a_member_that_restarts_is_told_again_who_leads() -> None:
    """Nobody sees its link come or go."""
    scene = Lagging()
    scene.mend()
    assert scene.world.run(10, until=scene.is_led)
    scene.world.restart(scene.lead)
    scene.world.run(2)
    scene.trial.cast.lost.add(scene.behind)
    scene.world.crash(scene.behind, lose_disk=True)
    scene.world.restart(scene.behind)
    scene.world.run(3)
    assert members(scene.world)[scene.behind].coordinator == LATE.node


def test_founders_never_introduce_themselves() -> None:
    trial = Trial(7, Election, 3)
    sent: list[Any] = []
    trial.world.on_send.append(lambda world, source, target, message: sent.append(message))
    trial.start()
    assert trial.world.run(5, until=lambda: trial.decided() > 0)
    assert not [message for message in sent if isinstance(message, Introduce)]


def test_who_answers_is_not_told_again_who_asks() -> None:
    scene = Lagging()
    scene.mend()
    assert scene.world.run(10, until=scene.is_led)
    scene.world.run(2)
    scene.sent.clear()
    scene.world.run(5)
    told = {target for target, message in scene.sent if isinstance(message, Introduce)}
    assert told == {scene.lead}, "which is gone and answers nothing"


def test_a_proof_is_heard_silently_and_then_its_sender_has_a_say() -> None:
    scene = Lagging()
    assert scene.asks(LATE.node) == "not-a-voter"
    assert scene.tell(scene.proof()) == []
    assert [type(message) for message in scene.asks(LATE.node)] == [PreVoteReply]


def test_a_proof_speaks_for_nobody_else() -> None:
    scene, mallory = Lagging(), NodeKey(b"m" * 32)
    with pytest.raises(PeerError) as refused:
        scene.tell(scene.proof(), mallory.node)
    assert refused.value.code == "not-a-voter"
    assert scene.asks(mallory.node) == "not-a-voter"


LIES: dict[str, Any] = {
    "nothing": lambda links: (),
    "without its promotion": lambda links: links[:1],
    "without its admission": lambda links: links[1:],
    "out of order": lambda links: links[::-1],
    "without votes": lambda links: tuple(codec.replace(link, certificate=()) for link in links),
    "with one vote": lambda links: tuple(codec.replace(link, certificate=link.certificate[:1]) for link in links),
    "with a flipped bit": lambda links: (*links[:-1], _flipped(links[-1])),
    "no entries at all": lambda links: (RosterLink(b"noise", links[0].certificate),),
}


def _flipped(link: RosterLink) -> RosterLink:
    return codec.replace(link, frame=link.frame[:-1] + bytes([link.frame[-1] ^ 1]))


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_proof_that_proves_nothing_is_refused_and_forgotten(lie: Any) -> None:
    scene = Lagging()
    proof = scene.proof()
    with pytest.raises(PeerError):
        scene.tell(codec.replace(proof, links=lie(proof.links)))
    assert scene.asks(LATE.node) == "not-a-voter"


def test_changes_that_another_coordinator_signed_prove_nothing() -> None:
    """Made up whole by a member: real steps, its own signature, the real votes."""
    scene, liar = Lagging(), Lagging(9)
    forged = liar.proof()
    real = scene.proof()
    links = tuple(
        RosterLink(theirs.frame, ours.certificate) for theirs, ours in zip(forged.links, real.links, strict=True)
    )
    if liar.lead == scene.lead:
        pytest.fail("choose seeds with two coordinators")
    with pytest.raises(PeerError):
        scene.tell(Introduce(TEAM, 0, 1, links))
    assert scene.asks(LATE.node) == "not-a-voter"


def test_a_proof_of_another_team_is_refused() -> None:
    scene = Lagging()
    with pytest.raises(PeerError) as refused:
        scene.tell(codec.replace(scene.proof(), team=bytes(16)))
    assert refused.value.code == "wrong-team"


def test_who_was_removed_replays_its_proof_in_vain() -> None:
    scene = Lagging()
    old = scene.proof()
    scene.tell(old)
    scene.mend()
    assert scene.world.run(10, until=scene.is_led)
    scene.world.restart(scene.lead)
    scene.world.run(2)
    scene.world.command(LATE.node, Propose(encode_step(Remove(LATE.node)), b"leave"))
    assert scene.world.run(10, until=lambda: LATE.node in members(scene.world)[scene.behind].electorate.gone)
    scene.world.run(2)
    assert scene.tell(old) == []
    assert not any(isinstance(message, PreVoteReply) for message in scene.asks(LATE.node))


def test_an_introduction_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lagging()
    whole = scene.proof().links
    monkeypatch.setattr(limits, "INTRODUCTION_BYTES_MAX", len(whole[-1].frame) + 2 * limits.VOTE_FRAME_BYTES_MAX)
    assert scene.proof().links == whole[-1:]
    monkeypatch.setattr(limits, "INTRODUCTION_BYTES_MAX", 1 << 20)
    monkeypatch.setattr(limits, "INTRODUCTION_LINKS_MAX", 2)
    assert scene.proof().links == whole[-2:]


def test_a_stranger_is_not_heard_whatever_it_asks() -> None:
    scene, stranger = Lagging(), NodeKey(b"s" * 32)
    part = SnapshotPart(TEAM, 0, 9, 9, 9, 0, b"", 0)
    for message in (PreVoteRequest(TEAM, 0, 9, 9, 9), VoteRequest(TEAM, 0, 9, 9, 9), part):
        with pytest.raises(PeerError, match="not-a-voter"):
            scene.tell(message, stranger.node)
    assert members(scene.world)[scene.behind].term < 9


def test_the_admission_that_a_proof_holds_is_the_newcomers_own() -> None:
    """Who lets in a node that never signed is not believed, even if it was elected."""
    admit = admission(LATE, team=TEAM, signer=NodeKey(b"f" * 32))
    with pytest.raises(PeerError, match="nobody new"):
        members(Lagging().world)[LATE.node].electorates.all[0].after(2, bytes(32), admit)
