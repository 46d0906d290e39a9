"""What every implementation of `Links` must do with a link through a third peer.

a ── dials ".../p2p-circuit/..." ──> r ──> b        b reserved a place at r, over its link with it
"""

from collections.abc import AsyncIterator

import pytest

from ioa_p2p.wire.link import LinkKind
from tests.contracts.inbox import poll
from tests.contracts.rig import Peer, Rig, join, reach_through

SIGNED = LinkKind.SIGNED


@pytest.fixture(params=["memory", "memory without faults", "libp2p"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    made = Rig(request.param)
    yield made
    await made.aclose()


async def _through_a_third(rig: Rig) -> tuple[Peer, Peer, Peer]:
    """Dialler, reached, relay; the link stands."""
    a, b, r = await rig.peer(1), await rig.peer(2), await rig.peer(3, relay=True)
    a.links.connect(b.node, await reach_through(b, r))
    await a.inbox.until(lambda: b.node in a.links.peers)
    await b.inbox.until(lambda: a.node in b.links.peers)
    return a, b, r


async def test_a_link_through_a_third_peer_is_a_link_like_any_other(rig: Rig) -> None:
    a, b, _ = await _through_a_third(rig)
    sent = [(SIGNED, bytes([i % 251]) * (60_000 if i % 9 == 0 else 300)) for i in range(120)]
    for kind, body in sent:
        await poll(lambda kind=kind, body=body: a.links.send(b.node, kind, body))
        await poll(lambda kind=kind, body=body: b.links.send(a.node, kind, body))
    await b.inbox.until(lambda: len(b.inbox.frames(a.node)) == len(sent))
    await a.inbox.until(lambda: len(a.inbox.frames(b.node)) == len(sent))
    assert a.inbox.frames(b.node) == b.inbox.frames(a.node) == sent


async def test_both_ends_see_that_it_goes_through_a_third_and_the_third_hears_nothing_of_it(rig: Rig) -> None:
    a, b, r = await _through_a_third(rig)
    for up in (*a.inbox.ups(b.node), *b.inbox.ups(a.node)):
        assert up.via == r.node
        assert "/p2p-circuit" in up.address
    assert [up.via for up in r.inbox.ups(b.node)] == [None]
    assert a.inbox.ups(b.node)[0].outbound
    assert r.links.peers == {b.node}
    assert r.inbox.ups(a.node) == []


async def test_the_last_words_of_who_leaves_still_arrive(rig: Rig) -> None:
    a, b, _ = await _through_a_third(rig)
    for i in range(100):
        a.links.send(b.node, SIGNED, bytes([i]) * 1_000)
    await a.links.aclose()
    await b.inbox.until(lambda: b.inbox.downs(a.node))
    assert len(b.inbox.frames(a.node)) == 100


async def test_who_does_not_relay_refuses(rig: Rig) -> None:
    b, r = await rig.peer(2), await rig.peer(3)
    await join(b, r)
    b.links.relay_through({r.node})
    await b.inbox.until(lambda: b.inbox.relay_downs(r.node))
    assert b.inbox.relay_ups(r.node) == []


async def test_a_relay_without_a_link_to_it_is_none(rig: Rig) -> None:
    b, r = await rig.peer(2), await rig.peer(3, relay=True)
    b.links.relay_through({r.node})
    await b.inbox.until(lambda: [down.reason for down in b.inbox.relay_downs(r.node)] == ["no link"])


async def test_nobody_is_reached_through_a_relay_that_it_did_not_ask(rig: Rig) -> None:
    a, b, r = await rig.peer(1), await rig.peer(2), await rig.peer(3, relay=True)
    c = await rig.peer(4)
    addresses = await reach_through(b, r)
    await join(c, r)
    a.links.connect(c.node, addresses)
    await poll(lambda: any(name.startswith("dial-failed") for name in a.links.counters))
    assert c.links.peers == {r.node}
    assert a.links.peers == frozenset()


async def test_asking_again_changes_nothing_and_giving_up_is_told(rig: Rig) -> None:
    b, r = await rig.peer(2), await rig.peer(3, relay=True)
    await reach_through(b, r)
    b.links.relay_through({r.node})
    b.links.relay_through(())
    await b.inbox.until(lambda: b.inbox.relay_downs(r.node))
    assert [down.reason for down in b.inbox.relay_downs(r.node)] == ["given up"]
    assert len(b.inbox.relay_ups(r.node)) == 1


async def test_when_the_relay_dies_its_links_die_and_another_takes_over(rig: Rig) -> None:
    a, b = await rig.peer(1), await rig.peer(2)
    r, other = await rig.peer(3, relay=True), await rig.peer(4, relay=True)
    a.links.connect(b.node, await reach_through(b, r, other))
    await a.inbox.until(lambda: b.node in a.links.peers)
    await r.links.aclose()
    for here, there in ((a, b), (b, a)):
        await here.inbox.until(lambda h=here, t=there: h.inbox.downs(t.node))
    await b.inbox.until(lambda: b.inbox.relay_downs(r.node))
    await a.inbox.until(lambda: len(a.inbox.ups(b.node)) == 2)
    a.links.send(b.node, SIGNED, b"again")
    await b.inbox.until(lambda: (SIGNED, b"again") in b.inbox.frames(a.node))
    assert b.inbox.relay_downs(other.node) == []
