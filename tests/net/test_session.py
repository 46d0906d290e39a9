"""One link's conversation, byte by byte."""

import os
import random
from collections.abc import Callable

import pytest

from ioa_p2p.errors import PeerError
from ioa_p2p.net.outbox import Outbox, frame
from ioa_p2p.net.session import Session
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.link import Hello, LinkKind

NETWORK = b"n" * 16
SIGNED = LinkKind.SIGNED


def _hello(version: int = 1, network: bytes = NETWORK, boot: int = 1) -> Hello:
    return Hello(version, network, boot)


def _greeting(hello: Hello) -> bytes:
    return frame(LinkKind.HELLO, codec.encode(hello))


def _standing() -> Session:
    """An acceptor that has answered."""
    session = Session(_hello(), dialled=False)
    session.receive(_greeting(_hello()))
    session.accept()
    session.take()
    return session


def _ends_as(session: Session, come: Callable[[int], bytes]) -> str:
    """Why the link ends when these bytes come between beats."""
    try:
        for beat in range(100):
            session.receive(come(beat))
            session.beat()
    except PeerError as fault:
        return fault.code
    return "stands"


def test_the_dialler_speaks_first_and_the_acceptor_only_when_it_has_decided() -> None:
    dialler, acceptor = Session(_hello(boot=1), dialled=True), Session(_hello(boot=2), dialled=False)
    assert acceptor.take() == b""
    assert acceptor.receive(dialler.take()) == []
    assert acceptor.theirs == _hello(boot=1)
    assert not acceptor.stands
    assert acceptor.take() == b""
    acceptor.accept()
    assert acceptor.stands
    dialler.receive(acceptor.take())
    assert dialler.stands
    assert dialler.theirs == _hello(boot=2)


def test_frames_come_out_whole_however_the_bytes_were_cut() -> None:
    dice = random.Random(1)
    frames = [(SIGNED, os.urandom(dice.randrange(0, 3_000))) for _ in range(50)]
    data = b"".join(frame(kind, body) for kind, body in frames)
    for largest in (1, 2, 5, 7, 1_000, 100_000):
        session, got = _standing(), []
        at = 0
        while at < len(data):
            size = dice.randint(1, largest)
            got += session.receive(data[at : at + size])
            at += size
        assert got == frames


def test_frames_right_behind_the_hello_are_not_lost() -> None:
    dialler = Session(_hello(), dialled=True)
    assert dialler.receive(_greeting(_hello()) + frame(SIGNED, b"first")) == [(SIGNED, b"first")]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (_greeting(_hello(version=2)), "wrong-version"),
        (_greeting(_hello(network=b"m" * 16)), "wrong-network"),
        (frame(LinkKind.HELLO, b"\xc1"), "bad-hello"),
        (frame(SIGNED, b"x"), "early-frame"),
        (frame(LinkKind.PING, b""), "early-frame"),
        (bytes(5), "early-frame"),
        (_greeting(_hello()) + _greeting(_hello()), "early-frame"),
        (b"\xff\xff\xff\xff\x05", "frame-too-large"),
        ((limits.LINK_HELLO_BYTES_MAX + 1).to_bytes(4) + b"\x01", "frame-too-large"),
    ],
)
def test_what_is_no_good_hello_ends_the_link_by_name(data: bytes, code: str) -> None:
    with pytest.raises(PeerError) as fault:
        Session(_hello(), dialled=False).receive(data)
    assert fault.value.code == code


def test_the_largest_frame_passes_and_a_longer_one_ends_the_link_before_it_is_read() -> None:
    session = _standing()
    most = bytes(limits.LINK_FRAME_BYTES_MAX - 1)
    assert session.receive(frame(SIGNED, most)) == [(SIGNED, most)]
    with pytest.raises(PeerError) as fault:
        session.receive((limits.LINK_FRAME_BYTES_MAX + 1).to_bytes(4) + bytes([SIGNED]))
    assert fault.value.code == "frame-too-large"


def test_a_ping_is_answered_with_its_body_and_a_flood_of_them_with_one_pong() -> None:
    session = _standing()
    session.receive(b"".join(frame(LinkKind.PING, bytes([i])) for i in range(100)))
    assert session.take() == frame(LinkKind.PONG, bytes([99]))
    assert session.take() == b""


@pytest.mark.parametrize(
    "bad",
    [
        _greeting(_hello()),
        frame(LinkKind.PING, bytes(limits.LINK_PING_BYTES_MAX + 1)),
        bytes(4),
        frame(0, b"no such kind"),
    ],
)
def test_bad_frames_are_counted_and_too_many_end_the_link(bad: bytes) -> None:
    session, good = _standing(), frame(SIGNED, b"good")
    assert session.receive(bad * limits.LINK_BAD_FRAMES_MAX + good) == [(SIGNED, b"good")]
    assert session.bad_frames == limits.LINK_BAD_FRAMES_MAX
    with pytest.raises(PeerError) as fault:
        session.receive(bad + good)
    assert fault.value.code == "bad-frames"


def test_a_quiet_peer_is_pinged_and_a_silent_one_given_up() -> None:
    session = _standing()
    session.beat()
    assert session.take() == b""
    for _ in range(limits.LINK_SILENT_BEATS_MAX):
        session.beat()
        assert session.take() == frame(LinkKind.PING, b"")
    with pytest.raises(PeerError) as fault:
        session.beat()
    assert fault.value.code == "silent"


def test_any_byte_counts_as_life() -> None:
    session = _standing()
    data = frame(SIGNED, bytes(1_000))
    for i in range(100):
        session.beat()
        session.receive(data[i : i + 1])


def test_silence_is_noticed_within_five_seconds_whenever_it_begins() -> None:
    assert (limits.LINK_SILENT_BEATS_MAX + 2) * limits.LINK_BEAT_S <= 5.0


def test_who_never_says_hello_is_given_up_however_much_it_drips() -> None:
    session = Session(_hello(), dialled=False)
    greeting = _greeting(_hello())
    assert _ends_as(session, lambda beat: greeting[beat : beat + 1]) == "no-hello"


def test_a_peer_that_lives_but_never_reads_is_stalled_in_the_end() -> None:
    session = _standing()
    session.outbox.put(SIGNED, b"waits")
    assert _ends_as(session, lambda _: frame(LinkKind.PONG, b"")) == "stalled"


def test_a_slow_reader_is_not_stalled() -> None:
    session = _standing()
    for _ in range(100):
        session.outbox.put(SIGNED, bytes(limits.LINK_WRITE_BYTES_MAX - 5))
        session.outbox.put(SIGNED, b"waits")
        session.receive(frame(LinkKind.PONG, b""))
        session.beat()
        session.take()


def test_nothing_of_the_node_is_written_before_the_link_stands() -> None:
    session = Session(_hello(), dialled=True)
    session.outbox.put(SIGNED, b"early")
    assert session.take() == _greeting(_hello())
    session.receive(_greeting(_hello()))
    assert session.take() == frame(SIGNED, b"early")


# -- the outbox ----------------------------------------------------------------------------------------


def test_an_outbox_gives_frames_in_order_in_bounded_helpings() -> None:
    outbox = Outbox()
    bodies = [bytes([i]) * 100_000 for i in range(9)]
    for body in bodies:
        assert outbox.put(SIGNED, body)
    helpings = []
    while helping := outbox.take():
        assert sum(map(len, helping)) <= limits.LINK_WRITE_BYTES_MAX
        helpings += helping
    assert helpings == [frame(SIGNED, body) for body in bodies]
    assert outbox.waiting_bytes == 0


def test_an_outbox_refuses_when_full_and_has_room_again_for_what_was_taken() -> None:
    outbox = Outbox()
    while outbox.put(SIGNED, bytes(100_000)):
        pass
    assert limits.LINK_QUEUE_BYTES_MAX - 100_005 < outbox.waiting_bytes <= limits.LINK_QUEUE_BYTES_MAX
    outbox.take()
    assert outbox.put(SIGNED, bytes(100_000))


def test_an_outbox_refuses_a_frame_over_the_limit() -> None:
    assert not Outbox().put(SIGNED, bytes(limits.LINK_FRAME_BYTES_MAX))


def test_a_beat_overtakes_a_line_and_a_line_overtakes_a_file_each_kind_in_its_order() -> None:
    outbox = Outbox()
    sent = [(kind, bytes([number])) for number in range(2) for kind in (LinkKind.BLOB, SIGNED, LinkKind.DECISION)]
    for kind, body in sent:
        assert outbox.put(kind, body)
    taken = []
    while helping := outbox.take():
        taken += helping
    order = [LinkKind.DECISION, SIGNED, LinkKind.BLOB]
    assert taken == [frame(kind, bytes([number])) for kind in order for number in range(2)]


def test_a_full_lane_takes_no_room_from_another() -> None:
    outbox = Outbox()
    for kind in (LinkKind.BLOB, SIGNED, LinkKind.TEAM):
        assert outbox.put(kind, b"first")
        while outbox.put(kind, bytes(60_000)):
            pass
    bounds = limits.LINK_QUEUE_BYTES_MAX + limits.LINK_URGENT_BYTES_MAX + limits.LINK_BULK_BYTES_MAX
    assert bounds - 3 * 60_005 < outbox.waiting_bytes <= bounds


def test_one_write_holds_one_piece_of_a_file_so_that_a_beat_never_waits_for_two() -> None:
    outbox = Outbox()
    for _ in range(3):
        outbox.put(LinkKind.BLOB, bytes(limits.BLOB_CHUNK_BYTES))
    assert len(outbox.take()) == 1
