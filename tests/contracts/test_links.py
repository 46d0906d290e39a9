"""What every implementation of `Links` must do."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from ioa_p2p.errors import NetError
from ioa_p2p.wire import limits
from ioa_p2p.wire.link import LinkKind
from tests.contracts.inbox import poll
from tests.contracts.rig import Peer, Rig, join, port_of

SIGNED = LinkKind.SIGNED


@pytest.fixture(params=["memory", "memory without faults", "libp2p"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    made = Rig(request.param)
    yield made
    await made.aclose()


async def test_both_sides_hear_of_the_link_and_of_each_other(rig: Rig) -> None:
    a, b = await rig.pair()
    (up_a,), (up_b,) = a.inbox.ups(b.node), b.inbox.ups(a.node)
    assert up_a.outbound
    assert not up_b.outbound
    assert up_a.hello.addresses == b.links.addresses
    assert up_b.hello.features == ("a",)
    assert up_b.hello.boot < up_a.hello.boot


async def test_frames_arrive_in_order_in_both_directions_at_once(rig: Rig) -> None:
    a, b = await rig.pair()
    sent = [(SIGNED, i.to_bytes(4) * 64) for i in range(2_000)]
    for kind, body in sent:
        assert a.links.send(b.node, kind, body)
        assert b.links.send(a.node, kind, body)
    await b.inbox.until(lambda: len(b.inbox.frames(a.node)) == len(sent))
    await a.inbox.until(lambda: len(a.inbox.frames(b.node)) == len(sent))
    assert a.inbox.frames(b.node) == b.inbox.frames(a.node) == sent


async def test_frames_sent_together_come_in_batches(rig: Rig) -> None:
    a, b = await rig.pair()
    before = b.inbox.batches
    for _ in range(500):
        a.links.send(b.node, SIGNED, b"x")
    await b.inbox.until(lambda: len(b.inbox.frames(a.node)) == 500)
    assert b.inbox.batches - before < 250


async def test_frames_of_every_size_up_to_the_limit_pass_and_one_byte_more_is_refused(rig: Rig) -> None:
    a, b = await rig.pair()
    most = limits.LINK_FRAME_BYTES_MAX - 1  # the kind is counted too
    sizes = [0, 1, 65_535, 65_536, most, most, 5]
    for size in sizes:
        assert a.links.send(b.node, SIGNED, bytes(size))
    assert not a.links.send(b.node, SIGNED, bytes(most + 1))
    await b.inbox.until(lambda: len(b.inbox.frames(a.node)) == len(sizes))
    assert [len(body) for _, body in b.inbox.frames(a.node)] == sizes
    assert a.links.counters["send-refused"] == 1
    assert a.node in b.links.peers


async def test_sending_without_a_link_says_so_and_is_counted(rig: Rig) -> None:
    a, b = await rig.peer(1), await rig.peer(2)
    assert not a.links.send(b.node, SIGNED, b"x")
    assert a.links.counters["send-no-link"] == 1


async def test_a_full_queue_refuses_counts_and_still_delivers_all_it_took(rig: Rig) -> None:
    a, b = await rig.pair()
    body = bytes(64 * 1024)
    taken = 0
    while a.links.send(b.node, SIGNED, body):
        taken += 1
        assert taken * len(body) <= limits.LINK_QUEUE_BYTES_MAX
    assert a.links.counters["send-refused"] == 1
    await b.inbox.until(lambda: len(b.inbox.frames(a.node)) == taken)
    assert a.links.send(b.node, SIGNED, body)


async def test_many_small_frames_fill_the_queue_before_their_bytes_do(rig: Rig) -> None:
    a, b = await rig.pair()
    taken = sum(a.links.send(b.node, SIGNED, b"") for _ in range(limits.LINK_QUEUE_FRAMES_MAX + 10))
    assert taken == limits.LINK_QUEUE_FRAMES_MAX
    await b.inbox.until(lambda: len(b.inbox.frames(a.node)) == taken)


@pytest.mark.parametrize("room", [0, 100_000, limits.LINK_INBOX_BYTES_MAX])
async def test_two_that_flood_each_other_lose_nothing(rig: Rig, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than all windows and queues hold, whatever the reader's room."""
    monkeypatch.setattr(limits, "LINK_INBOX_BYTES_MAX", room)
    a, b = await rig.pair()
    sent = [bytes([i % 251]) * (60_000 if i % 3 else 300) for i in range(300)]
    await asyncio.gather(_send_all(a, b, sent), _send_all(b, a, sent))
    for here, there in ((a, b), (b, a)):
        await here.inbox.until(lambda h=here, t=there: len(h.inbox.frames(t.node)) == len(sent))
        assert [body for _, body in here.inbox.frames(there.node)] == sent
        assert here.inbox.downs(there.node) == []


async def _send_all(a: Peer, b: Peer, bodies: list[bytes]) -> None:
    for body in bodies:
        await poll(lambda body=body: a.links.send(b.node, SIGNED, body))


async def test_when_a_peer_leaves_the_other_is_told_and_gets_it_back_when_it_returns(rig: Rig) -> None:
    a, b = await rig.pair()
    port = port_of(b)
    await b.links.aclose()
    await a.inbox.until(lambda: a.inbox.downs(b.node))
    assert b.node not in a.links.peers
    back = await rig.peer(2, port=port)
    await a.inbox.until(lambda: len(a.inbox.ups(b.node)) == 2)
    await back.inbox.until(lambda: back.inbox.ups(a.node))
    assert a.links.send(b.node, SIGNED, b"again")
    await back.inbox.until(lambda: back.inbox.frames(a.node) == [(SIGNED, b"again")])


async def test_a_peer_that_restarted_replaces_its_own_ghost_at_once(rig: Rig) -> None:
    a, b = await rig.pair()
    again = await rig.peer(2)
    await join(again, a)
    await a.inbox.until(lambda: len(a.inbox.ups(b.node)) == 2)
    assert a.inbox.downs(b.node)[0].reason == "replaced"
    assert a.inbox.ups(b.node)[1].hello.boot > a.inbox.ups(b.node)[0].hello.boot


async def test_two_peers_that_dial_each_other_end_with_one_link(rig: Rig) -> None:
    for _ in range(3):
        a, b = await rig.peer(1), await rig.peer(2)
        a.links.connect(b.node, b.links.addresses)
        b.links.connect(a.node, a.links.addresses)
        await a.inbox.until(lambda a=a, b=b: a.inbox.ups(b.node))
        await b.inbox.until(lambda a=a, b=b: b.inbox.ups(a.node))
        await _settled(a, b)
        assert _standing(a, b) == 1
        assert _standing(b, a) == 1
        await a.links.aclose()
        await b.links.aclose()


async def _settled(a: Peer, b: Peer) -> None:
    """A frame each way over what stands; a link that loses the tie would swallow it."""
    for round_ in range(20):
        a.links.send(b.node, SIGNED, bytes([round_]))
        b.links.send(a.node, SIGNED, bytes([round_]))
        await asyncio.sleep(0)
    await a.inbox.until(lambda: (SIGNED, bytes([19])) in a.inbox.frames(b.node))
    await b.inbox.until(lambda: (SIGNED, bytes([19])) in b.inbox.frames(a.node))


def _standing(at: Peer, of: Peer) -> int:
    return len(at.inbox.ups(of.node)) - len(at.inbox.downs(of.node))


async def test_a_node_of_another_mesh_is_refused_by_name(rig: Rig) -> None:
    a, other = await rig.peer(1), await rig.peer(2, mesh="elsewhere")
    a.links.connect(other.node, other.links.addresses)
    await poll(lambda: other.links.counters.get("refused wrong-network"))
    assert a.inbox.items == []
    assert other.inbox.items == []


async def test_an_address_where_another_peer_answers_gives_no_link(rig: Rig) -> None:
    a, b, c = await rig.peer(1), await rig.peer(2), await rig.peer(3)
    a.links.connect(c.node, b.links.addresses)
    await poll(lambda: _failed_dials(a))
    assert a.links.peers == b.links.peers == frozenset()
    a.links.connect(c.node, c.links.addresses)
    await a.inbox.until(lambda: c.node in a.links.peers)


def _failed_dials(peer: Peer) -> int:
    return sum(n for name, n in peer.links.counters.items() if name.startswith("dial-failed"))


async def test_new_addresses_cut_the_back_off_short(rig: Rig) -> None:
    a, b = await rig.peer(1), await rig.peer(2)
    nowhere = (b.links.addresses[0].replace(str(port_of(b)), "9"),)
    a.links.connect(b.node, nowhere)
    await poll(lambda: _failed_dials(a) >= 3)
    a.links.connect(b.node, b.links.addresses)
    await a.inbox.until(lambda: b.node in a.links.peers, wait_s=3)


async def test_a_forgotten_peer_is_let_go_by_who_dialled_it_and_not_dialled_again(rig: Rig) -> None:
    a, b = await rig.pair()
    b.links.forget(a.node)
    assert a.node in b.links.peers
    a.links.forget(b.node)
    await b.inbox.until(lambda: b.inbox.downs(a.node))
    await a.inbox.until(lambda: a.inbox.downs(b.node))
    assert a.inbox.downs(b.node)[0].reason == "forgotten"


async def test_a_cut_peer_is_down_for_the_reason_given_and_a_wanted_one_comes_back(rig: Rig) -> None:
    a, b = await rig.pair()
    a.links.cut(b.node, "bad-frames")
    await a.inbox.until(lambda: a.inbox.downs(b.node))
    assert a.inbox.downs(b.node)[0].reason == "bad-frames"
    await b.inbox.until(lambda: b.inbox.downs(a.node))
    await a.inbox.until(lambda: len(a.inbox.ups(b.node)) == 2)


async def test_closing_is_prompt_and_may_be_repeated_and_flushes_what_was_sent(rig: Rig) -> None:
    a, b = await rig.pair()
    for i in range(100):
        a.links.send(b.node, SIGNED, bytes([i]))
    async with asyncio.timeout(limits.LINK_CLOSE_S + 20):
        await a.links.aclose()
        await a.links.aclose()
    await b.inbox.until(lambda: b.inbox.downs(a.node))
    assert len(b.inbox.frames(a.node)) == 100
    assert not a.links.send(b.node, SIGNED, b"late")
    assert a.links.peers == frozenset()


async def test_a_port_in_use_is_refused_with_a_hint(rig: Rig) -> None:
    a = await rig.peer(1)
    with pytest.raises(NetError) as refused:
        await rig.peer(2, port=port_of(a))
    assert refused.value.code == "port-in-use"
    assert "port" in refused.value.hint


async def test_a_mesh_of_five_reaches_everyone(rig: Rig) -> None:
    peers = [await rig.peer(n) for n in range(1, 6)]
    for i, a in enumerate(peers):
        for b in peers[i + 1 :]:
            await join(a, b)
    for a in peers:
        for b in peers:
            assert a is b or a.links.send(b.node, SIGNED, a.node)
    for b in peers:
        await b.inbox.until(lambda b=b: all(b.inbox.frames(a.node) for a in peers if a is not b))


async def test_a_closed_port_has_no_peers_and_delivers_nothing_more(rig: Rig) -> None:
    a, b = await rig.pair()
    await b.links.aclose()
    heard = len(b.inbox.items)
    a.links.send(b.node, SIGNED, b"x")
    await a.inbox.until(lambda: a.inbox.downs(b.node))
    assert len(b.inbox.items) == heard
