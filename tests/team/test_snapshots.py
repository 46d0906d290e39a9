"""Snapshots that lie: each is refused, changes nothing, and costs little memory, whoever sends it how often."""

from collections.abc import Callable
from typing import Any

import pytest

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.effects import Send
from ioa_p2p.errors import PeerError
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Compact, Propose
from ioa_p2p.team.snapshots import Arrivals, snapshot_of
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Ack, Entry, RosterLink, Snapshot, SnapshotAck, SnapshotPart
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import Checkpoint, Remove, Step, encode_step
from tests.sim.election import Trial
from tests.sim.teams import NETWORK, TEAM, coordinator, members

STATE = b"the decided state"


class Away:
    """Five found a team; one leaves it, then a checkpoint stands for the beginning, twice. `node` missed it all.

    older, newest: the two snapshots, both genuine.
    """

    def __init__(self, seed: int = 7) -> None:
        self.trial = Trial(seed, Election, 5)
        self.world = self.trial.world
        self.trial.start()
        assert self.world.run(5, until=lambda: self.trial.decided() > 0)
        self.world.run(1)
        found = coordinator(self.world)
        assert found is not None
        self.lead = found.coordinator or b""
        others = [node for node in self.trial.nodes if node != self.lead]
        self.node, self.liar, leaver = others[:3]
        self.world.split([self.node], [node for node in self.trial.nodes if node != self.node])
        self._decide(Remove(leaver))
        self.older = self._checkpoint(b"older")
        self.newest = self._checkpoint(STATE)
        self.member = members(self.world)[self.node]
        self.before = self._standing()

    def _decide(self, step: Step) -> None:
        encoded = encode_step(step)
        self.world.command(self.lead, Propose(encoded, blake(encoded)))
        self.world.run(1)

    def _checkpoint(self, state: bytes) -> Snapshot:
        lead = members(self.world)[self.lead]
        held = lead.entry_at(at := lead.commit_index)
        assert held is not None
        self._decide(Checkpoint(at, held.hash, lead.electorate.roster_index, blake(state), 1))
        self.world.command(self.lead, Compact(at, state, at + 1))
        return codec.decode(snapshot_of(lead._log), Snapshot)

    def _standing(self) -> tuple[Any, ...]:
        member = self.member
        return member.fence, member.commit_index, member.first_index, member.last_index, member.electorates

    def tell(self, message: Any, peer: bytes = b"") -> list[Any]:
        now = self.world.now(self.world.hosts[self.node])
        effects = self.member.handle_message(now, peer or self.liar, message)
        return [effect.message for effect in effects if isinstance(effect, Send)]

    def part(self, data: bytes, **changed: Any) -> SnapshotPart:
        index, term = _index(self.newest.anchor), self.member.term
        return codec.replace(SnapshotPart(TEAM, 0, term, index, len(data), 0, data, 0), **changed)

    def give(self, snapshot: Snapshot, **changed: Any) -> list[Any]:
        return self.tell(self.part(codec.encode(snapshot), **changed))

    def unchanged(self) -> bool:
        return self._standing() == self.before and not self.member._arrivals._from

    def signed(self, frame: bytes, **changed: Any) -> bytes:
        """The entry in `frame`, changed, and signed anew by whom it names, who lies."""
        entry = codec.replace(_entry(frame), **changed)
        key = next(key for key in self.trial.cast.keys if key.node == entry.node)
        return seal(key, NETWORK, Kind.DECISION, entry)


def _entry(frame: bytes) -> Entry:
    return codec.decode(frame[limits.FRAME_HEADER_BYTES : -limits.SIGNATURE_BYTES], Entry)


def _index(frame: bytes) -> int:
    return _entry(frame).index


def _flip(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


def _by_a_liar(scene: Away, frame: bytes) -> bytes:
    return scene.signed(frame, node=scene.liar)


def _link(scene: Away, **changed: Any) -> tuple[RosterLink, ...]:
    return tuple(codec.replace(link, **changed) for link in scene.newest.links)


def _no_change(scene: Away) -> RosterLink:
    """A genuine entry."""
    return RosterLink(scene.older.checkpoint, scene.older.proof)


def _names(scene: Away, **changed: Any) -> bytes:
    """A checkpoint of the old coordinator's that says something else."""
    frame = scene.newest.checkpoint
    step = codec.decode(_entry(frame).step, Checkpoint)
    return scene.signed(frame, step=encode_step(codec.replace(step, **changed)))


LIES: dict[str, Callable[[Away], dict[str, Any]]] = {
    "another state": lambda scene: {"state": b"another state"},
    "no state": lambda scene: {"state": b""},
    "an older state": lambda scene: {"state": scene.older.state},
    "an anchor that nobody signed so": lambda scene: {"anchor": _flip(scene.newest.anchor)},
    "an anchor by a liar": lambda scene: {"anchor": _by_a_liar(scene, scene.newest.anchor)},
    "an anchor that the checkpoint does not name": lambda scene: {"anchor": scene.signed(scene.newest.anchor, at=1)},
    "an anchor of another team": lambda scene: {"anchor": scene.signed(scene.newest.anchor, team=bytes(16))},
    "an anchor without votes": lambda scene: {"certificate": ()},
    "an anchor with too few votes": lambda scene: {"certificate": scene.newest.certificate[:2]},
    "an anchor with one vote thrice": lambda scene: {"certificate": scene.newest.certificate[:1] * 3},
    "without the change of the roster": lambda scene: {"links": ()},
    "the change twice": lambda scene: {"links": scene.newest.links * 2},
    "the change by a liar": lambda scene: {"links": _link(scene, frame=_by_a_liar(scene, scene.newest.links[0].frame))},
    "the change without votes": lambda scene: {"links": _link(scene, certificate=())},
    "beside the change what is none": lambda scene: {"links": (_no_change(scene), *scene.newest.links)},
    "no checkpoint": lambda scene: {"checkpoint": scene.newest.anchor},
    "a checkpoint by a liar": lambda scene: {"checkpoint": _by_a_liar(scene, scene.newest.checkpoint)},
    "a checkpoint without votes": lambda scene: {"proof": ()},
    "a checkpoint of before its anchor": lambda scene: {"checkpoint": scene.older.checkpoint},
    "a checkpoint that names another entry": lambda scene: {"checkpoint": _names(scene, entry=bytes(32))},
    "a checkpoint that names another roster": lambda scene: {"checkpoint": _names(scene, roster=0)},
    "a checkpoint that is of another place": lambda scene: {"checkpoint": _names(scene, index=1)},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_snapshot_with_a_false_part_is_refused_and_changes_nothing(lie: Callable[[Away], dict[str, Any]]) -> None:
    scene = Away()
    with pytest.raises(PeerError):
        scene.give(codec.replace(scene.newest, **lie(scene)))
    assert scene.unchanged()


def test_the_true_one_is_taken_from_whoever_brings_it() -> None:
    """It proves itself; so the lies above are refused for what is false in them."""
    scene = Away()
    answers = scene.give(scene.newest)
    assert [(type(answer), answer.index) for answer in answers] == [(Ack, _index(scene.newest.anchor))]
    assert scene.member._log.state == STATE
    assert scene.member.electorates.all[-1].roster_index == _index(scene.newest.links[0].frame)


def test_noise_is_no_snapshot() -> None:
    scene = Away()
    with pytest.raises(PeerError):
        scene.tell(scene.part(b"noise"))
    assert scene.unchanged()


def test_a_genuine_one_of_another_team_is_refused() -> None:
    scene, other = Away(), Away(8)
    if other.lead == scene.lead:
        other = Away(9)
    foreign = codec.encode(codec.replace(other.newest, anchor=other.signed(other.newest.anchor, team=bytes(16))))
    with pytest.raises(PeerError):
        scene.tell(scene.part(foreign))
    with pytest.raises(PeerError, match="wrong-team"):
        scene.tell(scene.part(codec.encode(scene.newest), team=bytes(16)))
    assert scene.unchanged()


def test_an_older_one_that_is_announced_as_newer_takes_nobody_back() -> None:
    scene = Away()
    scene.give(scene.newest)
    scene.before = scene._standing()
    index = _index(scene.newest.anchor) + 100
    with pytest.raises(PeerError, match="announced"):
        scene.give(scene.older, index=index)
    assert scene.unchanged()


def test_an_older_one_is_answered_by_how_far_we_are() -> None:
    scene = Away()
    scene.give(scene.newest)
    scene.before = scene._standing()
    answers = scene.give(scene.older, index=_index(scene.older.anchor))
    assert [(answer.ok, answer.hint) for answer in answers] == [(False, scene.member.commit_index)]
    assert scene.unchanged()


def test_more_bytes_than_announced_are_refused() -> None:
    scene = Away()
    data = codec.encode(scene.newest)
    assert [answer.offset for answer in scene.tell(scene.part(data[:10], size=11))] == [10]
    with pytest.raises(PeerError, match="more than 11"):
        scene.tell(scene.part(data[10:], size=11, offset=10))


def test_less_bytes_than_announced_install_nothing() -> None:
    scene = Away()
    data = codec.encode(scene.newest)
    answers = scene.tell(scene.part(data, size=len(data) + 1))
    assert [type(answer) for answer in answers] == [SnapshotAck]
    assert scene._standing() == scene.before


def test_a_liars_parts_do_not_spoil_those_of_another() -> None:
    """Also if they say to be of the same snapshot."""
    scene = Away()
    data = codec.encode(scene.newest)
    half = len(data) // 2
    scene.tell(scene.part(data[:half], size=len(data)), scene.lead)
    scene.tell(scene.part(b"x" * half, size=len(data)))
    scene.tell(scene.part(data[half:], size=len(data), offset=half), scene.lead)
    assert scene.member._log.state == STATE


def test_who_opens_large_ones_again_and_again_holds_no_more_than_it_sent_last() -> None:
    scene = Away()
    for index in range(2_000, 2_200):
        scene.tell(scene.part(bytes(1_000), index=index, size=limits.SNAPSHOT_BYTES_MAX))
    assert _bytes_held(scene.member._arrivals) == 1_000


def test_many_liars_hold_no_more_than_two_and_the_coordinator_comes_first() -> None:
    arrivals = Arrivals()
    coordinator = b"coordinator"

    def take(peer: bytes, data: bytes, size: int = 100) -> bytes | None:
        return arrivals.take(peer, SnapshotPart(TEAM, 0, 1, 9, size, arrivals.offset(peer), data, 0), coordinator)

    for number in range(10):
        take(b"liar %d" % number, b"x" * (10 + number))
    assert _bytes_held(arrivals) == 21, "the first two keep their places"
    assert take(coordinator, b"half") is None
    for number in range(10):
        take(b"liar %d" % number, b"x" * 30)
    assert arrivals.offset(coordinator) == 4
    assert take(coordinator, b"y" * 96) == b"half" + b"y" * 96
    assert len(arrivals._from) <= 2


def test_what_was_under_way_is_let_go_once_entries_brought_us_as_far() -> None:
    arrivals = Arrivals()
    arrivals.take(b"a", SnapshotPart(TEAM, 0, 1, 9, 100, 0, b"half", 0), None)
    arrivals.settle(8)
    assert _bytes_held(arrivals) == 4
    arrivals.settle(9)
    assert _bytes_held(arrivals) == 0


def _bytes_held(arrivals: Arrivals) -> int:
    return sum(len(arriving.data) for arriving in arrivals._from.values())
