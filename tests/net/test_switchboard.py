"""Which links stand: two switchboards and wires of plain bytes."""

import itertools
import random
from dataclasses import dataclass, field

import pytest

from ioa_p2p.net.ports import Frames, LinkDown, LinkUp
from ioa_p2p.net.switchboard import Link, Switchboard
from ioa_p2p.wire import limits
from ioa_p2p.wire.link import Hello, LinkKind

SMALL, LARGE = b"a" * 32, b"z" * 32
NETWORK = b"n" * 16
SIGNED = LinkKind.SIGNED


@dataclass
class FakeWire:
    """Remembers; moves nothing by itself."""

    link: Link | None = None
    closed: bool = False
    woken: int = 0

    def wake(self) -> None:
        self.woken += 1

    def close(self) -> None:
        self.closed = True


@dataclass
class Side:
    """A switchboard, its time, and what it told its node."""

    own: bytes
    boot: int = 1
    now: float = 0.0
    events: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.board = Switchboard(self.own, Hello(1, NETWORK, self.boot), random.Random(1))

    def open(self, peer: bytes, *, dialled: bool) -> FakeWire:
        wire = FakeWire()
        wire.link = self.board.opened(self.now, peer, "there", wire, dialled=dialled)
        return wire

    def told(self) -> list[object]:
        self.events += [event for event, _ in self.board.take_events()]
        return self.events

    def standing(self, peer: bytes) -> int:
        up = [event for event in self.told() if isinstance(event, LinkUp) and event.peer == peer]
        down = [event for event in self.told() if isinstance(event, LinkDown) and event.peer == peer]
        return len(up) - len(down)


@dataclass
class Cable:
    """Both ends of one byte stream."""

    ends: tuple[tuple[Side, FakeWire], tuple[Side, FakeWire]]

    def carry(self) -> bool:
        """Move what waits, both ways; True when something moved."""
        moved = False
        for (_, wire), (far, other) in (self.ends, self.ends[::-1]):
            if wire.link is None or other.link is None or wire.closed:
                continue
            while data := wire.link.session.take():
                moved = True
                far.board.received(far.now, other.link, data)
        return moved

    def hang_up(self) -> None:
        """The side that closed is noticed by the other."""
        for (_, wire), (far, other) in (self.ends, self.ends[::-1]):
            if (wire.closed or wire.link is None) and other.link is not None:
                far.board.closed(far.now, other.link, "closed")


def _cable(dialler: Side, acceptor: Side) -> Cable:
    dialler.board.connect(dialler.now, acceptor.own, ["x"])
    near = dialler.open(acceptor.own, dialled=True)
    far = acceptor.open(dialler.own, dialled=False)
    return Cable(((dialler, near), (acceptor, far)))


def _run(*cables: Cable) -> None:
    while sum(cable.carry() for cable in cables):
        pass
    for cable in cables:
        cable.hang_up()


def _linked() -> tuple[Side, Side, Cable]:
    a, b = Side(SMALL), Side(LARGE)
    cable = _cable(a, b)
    _run(cable)
    return a, b, cable


def test_a_link_stands_after_both_hellos_and_its_frames_follow_it() -> None:
    a, b, cable = _linked()
    assert a.told() == [LinkUp(LARGE, Hello(1, NETWORK, 1), "there", True)]
    assert b.told() == [LinkUp(SMALL, Hello(1, NETWORK, 1), "there", False)]
    link = cable.ends[0][1].link
    assert link is not None
    link.outbox.put(SIGNED, b"hi")
    _run(cable)
    assert b.told()[-1] == Frames(SMALL, [(SIGNED, b"hi")])


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_two_dials_that_cross_end_with_the_same_one_link_on_both_sides(order: tuple[int, ...]) -> None:
    """Whatever the order in which the four deliveries of the two handshakes happen."""
    a, b = Side(SMALL), Side(LARGE)
    a.board.connect(0.0, LARGE, ["x"])
    b.board.connect(0.0, SMALL, ["x"])
    a.board.due(0.0)
    b.board.due(0.0)
    cables = [_cable(a, b), _cable(b, a)]
    ends = [cables[0].ends, cables[0].ends[::-1], cables[1].ends, cables[1].ends[::-1]]
    for which in order:
        (_, wire), (far, other) = ends[which]
        if wire.link and other.link and (data := wire.link.session.take()):
            far.board.received(far.now, other.link, data)
    for _ in range(4):
        _run(*cables)
    assert a.standing(LARGE) == b.standing(SMALL) == 1
    alive = [cable for cable in cables if not any(wire.closed or wire.link is None for _, wire in cable.ends)]
    assert len(alive) == 1
    assert alive[0] is cables[0]


def test_the_smaller_key_holds_its_answer_so_that_no_link_stands_and_falls() -> None:
    a, b = Side(SMALL), Side(LARGE)
    a.board.connect(0.0, LARGE, ["x"])
    a.board.due(0.0)
    theirs = _cable(b, a)
    _run(theirs)
    assert a.told() == b.told() == []
    ours = _cable(a, b)
    _run(ours, theirs)
    assert [type(event) for event in a.told()] == [type(event) for event in b.told()] == [LinkUp]


def test_a_held_answer_is_given_when_our_own_dial_fails() -> None:
    a, b = Side(SMALL), Side(LARGE)
    a.board.connect(0.0, LARGE, ["x"])
    a.board.due(0.0)
    theirs = _cable(b, a)
    _run(theirs)
    a.board.dial_failed(1.0, LARGE, "no-answer")
    _run(theirs)
    assert a.standing(LARGE) == b.standing(SMALL) == 1


def test_a_held_answer_does_not_wait_for_a_dial_that_hangs() -> None:
    a, b = Side(SMALL), Side(LARGE)
    a.board.connect(0.0, LARGE, ["x"])
    a.board.due(0.0)
    theirs = _cable(b, a)
    _run(theirs)
    for _ in range(limits.LINK_HELD_BEATS_MAX + 1):
        a.board.beat(1.0)
    _run(theirs)
    assert a.standing(LARGE) == b.standing(SMALL) == 1


def test_the_larger_key_gives_up_its_own_dial_for_a_link_that_stands() -> None:
    a, b, _ = _linked()
    late = _cable(b, a)
    assert late.ends[0][1].link is None
    assert b.board.counters["refused duplicate"] == 1
    assert a.standing(LARGE) == b.standing(SMALL) == 1


def test_a_later_boot_replaces_the_ghost_of_the_earlier_whoever_dialled() -> None:
    a, _, _ = _linked()
    reborn = Side(LARGE, boot=2)
    cable = _cable(reborn, a)
    _run(cable)
    downs = [event for event in a.told() if isinstance(event, LinkDown)]
    assert downs == [LinkDown(LARGE, "replaced")]
    assert a.standing(LARGE) == reborn.standing(SMALL) == 1


def test_an_earlier_boot_does_not_replace_a_later_one() -> None:
    a = Side(SMALL)
    young = _cable(Side(LARGE, boot=2), a)
    _run(young)
    old = _cable(Side(LARGE, boot=1), a)
    _run(old)
    assert a.standing(LARGE) == 1
    assert not young.ends[1][1].closed


def test_a_dial_to_ourselves_is_refused() -> None:
    a = Side(SMALL)
    a.board.connect(0.0, SMALL, ["x"])
    assert a.board.due(0.0) == []
    assert a.open(SMALL, dialled=False).link is None


def test_strangers_cannot_take_all_places_and_the_wanted_get_in_all_the_same() -> None:
    a = Side(SMALL)
    peers = [bytes([1, i // 256, i % 256]) + bytes(29) for i in range(limits.LINKS_INBOUND_MAX + 5)]
    accepted = [a.open(peer, dialled=False).link is not None for peer in peers]
    assert accepted.count(True) == limits.LINKS_INBOUND_MAX
    assert a.board.counters["refused inbound-full"] == 5
    a.board.connect(0.0, LARGE, ["x"])
    assert a.open(LARGE, dialled=False).link is not None


def test_one_peer_cannot_open_more_than_its_share() -> None:
    a = Side(SMALL)
    accepted = [a.open(LARGE, dialled=False).link is not None for _ in range(limits.LINKS_PER_PEER_MAX + 2)]
    assert accepted.count(True) == limits.LINKS_PER_PEER_MAX


def test_forgetting_ends_what_we_dialled_and_leaves_what_they_did() -> None:
    a, b, _ = _linked()
    b.board.connect(0.0, SMALL, ["x"])
    b.board.forget(0.0, SMALL)
    assert b.standing(SMALL) == 1
    a.board.connect(0.0, LARGE, ["x"])
    a.board.forget(0.0, LARGE)
    assert a.told()[-1] == LinkDown(LARGE, "forgotten")


def test_a_dial_that_ends_after_it_was_forgotten_gives_no_link() -> None:
    a = Side(SMALL)
    a.board.connect(0.0, LARGE, ["x"])
    a.board.due(0.0)
    a.board.forget(0.0, LARGE)
    assert a.open(LARGE, dialled=True).link is None


def test_an_ended_link_says_nothing_more() -> None:
    a, b, cable = _linked()
    link = cable.ends[1][1].link
    assert link is not None
    b.board.cut(0.0, SMALL, "bad-frames")
    assert b.told()[-1] == LinkDown(SMALL, "bad-frames")
    heard, counted = len(b.told()), dict(b.board.counters)
    b.board.received(0.0, link, b"more")
    b.board.closed(0.0, link, "closed")
    assert len(b.told()) == heard
    assert b.board.counters == counted
    assert a.standing(LARGE) == 1


def test_a_silent_peer_is_down_by_name_and_dialled_again() -> None:
    a, b = Side(SMALL), Side(LARGE)
    a.board.connect(0.0, LARGE, ["x"])
    a.board.due(0.0)
    _run(_cable(a, b))
    now = 100.0
    for _ in range(limits.LINK_SILENT_BEATS_MAX + 2):
        a.board.beat(now)
    assert a.told()[-1] == LinkDown(LARGE, "silent")
    assert a.board.due(now + 2 * limits.LINK_BACKOFF_S) == [(LARGE, ("x",))]


def test_bad_frames_are_in_the_counters_when_the_link_has_ended() -> None:
    _, b, cable = _linked()
    link = cable.ends[1][1].link
    assert link is not None
    b.board.received(0.0, link, bytes(20))
    b.board.closed(0.0, link, "closed")
    assert b.board.counters["bad-frames"] == 4
