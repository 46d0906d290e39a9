"""libp2p links against strangers, broken sockets and dying processes. Public failures 3 and 4 of the kind list."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace

import pytest
import trio
import trio.lowlevel
from libp2p.stream_muxer.exceptions import MuxedStreamError
from libp2p.stream_muxer.yamux.yamux import FLAG_FIN

from ioa_p2p.errors import NetError
from ioa_p2p.net import libp2p, libp2p_host, libp2p_patches
from ioa_p2p.net.libp2p import Libp2pLinks
from ioa_p2p.net.outbox import frame
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import VERSION, Hello, LinkKind
from tests.contracts.inbox import WAIT_S, Inbox, poll
from tests.contracts.rig import MESH, Peer, Rig, join, node_of, port_of, seed_of
from tests.net.stranger import HELLO, Stranger, hang_up, stranger

SIGNED = LinkKind.SIGNED


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig("libp2p")
    yield made
    await made.aclose()


async def _as_stranger(act: Callable[[Stranger], Awaitable[None]], number: int = 99) -> None:
    async def run() -> None:
        async with stranger(number) as who:
            await act(who)

    await asyncio.to_thread(trio.run, run)


@contextlib.asynccontextmanager
async def _child(*args: object) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A node in its own process, and its address; killed at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.net.child", *map(str, args), stdin=-1, stdout=-1
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            line = await process.stdout.readline()
        yield process, line.decode().strip()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _still_works(a: Peer, b: Peer) -> None:
    """`b` can link to `a` and be heard."""
    if a.node not in b.links.peers:
        await join(b, a)
    heard = len(a.inbox.frames(b.node))
    b.links.send(a.node, SIGNED, b"still here")
    await a.inbox.until(lambda: len(a.inbox.frames(b.node)) > heard)


# -- strangers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "frame-too-large"),
        (bytes(64), "early-frame"),
        (frame(SIGNED, b"before the hello"), "early-frame"),
        (frame(LinkKind.HELLO, b"\xc1 not messagepack"), "bad-hello"),
        (frame(LinkKind.HELLO, bytes(limits.LINK_HELLO_BYTES_MAX)), "frame-too-large"),
    ],
)
async def test_a_stream_that_does_not_begin_with_a_hello_is_cut_by_name(rig: Rig, first: bytes, reason: str) -> None:
    a, b = await rig.peer(1), await rig.peer(2)

    async def act(who: Stranger) -> None:
        stream = await who.stream(a.node, a.links.addresses[0])
        await stream.write(first)
        with contextlib.suppress(Exception):
            while await stream.read(100):
                pass

    await _as_stranger(act)
    await poll(lambda: a.links.counters.get(f"refused {reason}"))
    assert a.inbox.items == []
    await _still_works(a, b)


async def test_garbage_and_half_handshakes_on_the_port_hold_nobody_up(rig: Rig) -> None:
    a, b = await rig.peer(1), await rig.peer(2)
    sockets = [await asyncio.open_connection("127.0.0.1", port_of(a)) for _ in range(40)]
    for i, (_, writer) in enumerate(sockets):
        writer.write([b"", b"\x13/multistream/1.0.0\n", os.urandom(300), b"\xff" * 40][i % 4])
    await _still_works(a, b)
    async with asyncio.timeout(WAIT_S):
        for reader, writer in sockets:
            with contextlib.suppress(ConnectionError):
                while await reader.read(1000):
                    pass
            writer.close()


async def test_a_peer_that_takes_the_stream_and_never_answers_is_given_up(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LINK_BEAT_S", 0.1)
    a, b = await rig.peer(1), await rig.peer(2)
    loop = asyncio.get_running_loop()

    async def act(who: Stranger) -> None:
        taken = trio.Event()

        async def never_answer(_: object) -> None:
            taken.set()
            await trio.sleep_forever()

        who.on_stream(never_answer)
        loop.call_soon_threadsafe(a.links.connect, node_of(99), [who.address])
        with trio.fail_after(WAIT_S):
            await taken.wait()
            while not a.links.counters.get("refused no-hello"):
                await trio.sleep(0.05)

    await _as_stranger(act)
    await _still_works(a, b)


async def test_a_socket_that_accepts_and_says_nothing_fails_the_dial_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LINK_HANDSHAKE_S", 1.0)
    a, b = await rig.peer(1), await rig.peer(2)
    mute = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = mute.sockets[0].getsockname()[1]
    a.links.connect(node_of(98), [f"/ip4/127.0.0.1/tcp/{port}"])
    await _still_works(a, b)
    await poll(lambda: a.links.counters.get("dial-failed timeout"))
    mute.close()


async def test_a_reset_in_the_middle_of_sends_to_one_peer_harms_no_other(rig: Rig) -> None:
    a, b = await rig.peer(1), await rig.peer(2)
    await join(b, a)
    loop = asyncio.get_running_loop()
    bodies = [bytes([i % 251]) * 2_000 for i in range(1_000)]

    def send_to_both() -> None:
        for body in bodies:
            a.links.send(node_of(99), SIGNED, body)
            a.links.send(b.node, SIGNED, body)

    async def act(who: Stranger) -> None:
        stream = await who.stream(a.node, a.links.addresses[0])
        await stream.write(HELLO)
        await stream.read(1)
        loop.call_soon_threadsafe(send_to_both)
        await stream.read(1)
        hang_up(stream, reset=True)

    await _as_stranger(act)
    await a.inbox.until(lambda: a.inbox.downs(node_of(99)))
    await b.inbox.until(lambda: len(b.inbox.frames(a.node)) == len(bodies))
    assert [body for _, body in b.inbox.frames(a.node)] == bodies
    await _still_works(a, b)


async def test_more_inbound_links_in_a_row_than_libp2p_would_take_in_a_lifetime_are_all_accepted(rig: Rig) -> None:
    a = await rig.peer(1)

    async def act(who: Stranger) -> None:
        for _ in range(260):
            stream = await who.stream(a.node, a.links.addresses[0])
            await stream.write(HELLO)
            assert await stream.read(1)
            hang_up(stream)

    await _as_stranger(act)
    await poll(lambda: len(a.inbox.ups(node_of(99))) == len(a.inbox.downs(node_of(99))) == 260)


async def test_a_peer_that_sends_beyond_its_window_is_cut(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINK_INBOX_BYTES_MAX", -1)  # the node never has room: no credit is given
    a = await rig.peer(1)

    async def act(who: Stranger) -> None:
        stream = await who.stream(a.node, a.links.addresses[0])
        await stream.write(HELLO)
        await stream.read(1)
        inner = stream.muxed_stream
        with contextlib.suppress(Exception):
            for _ in range(40):
                inner.send_window = 1 << 30
                await stream.write(frame(SIGNED, bytes(60_000)))

    await _as_stranger(act)
    await a.inbox.until(lambda: a.inbox.downs(node_of(99)))
    assert sum(len(body) for _, body in a.inbox.frames(node_of(99))) <= limits.LINK_WINDOW_BYTES + 64 * 1024


async def test_a_full_house_of_idlers_gives_way_to_who_wants_a_link(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINK_SOCKETS_INBOUND_MAX", 20)
    a, b, c = await rig.peer(1), await rig.peer(2), await rig.peer(3)
    await join(b, a)
    idlers = [await asyncio.open_connection("127.0.0.1", port_of(a)) for _ in range(60)]
    await _still_works(a, c)
    await _still_works(a, b)
    closed = [asyncio.create_task(reader.read()) for reader, _ in idlers]
    await asyncio.wait(closed, timeout=WAIT_S)
    assert all(task.done() for task in closed)
    for _, writer in idlers:
        writer.close()


async def test_a_connection_that_carries_no_link_is_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINK_BARE_S", 0.5)
    a, b = await rig.peer(1), await rig.peer(2)
    await join(b, a)

    async def act(who: Stranger) -> None:
        conn = await who.connection(a.node, a.links.addresses[0])
        with trio.fail_after(WAIT_S):
            await conn.event_closed.wait()

    await _as_stranger(act)
    await _still_works(a, b)


@pytest.mark.parametrize("flood", ["streams", "bytes"])
async def test_a_connection_without_measure_is_closed(rig: Rig, flood: str) -> None:
    a, b = await rig.peer(1), await rig.peer(2)
    await join(b, a)

    async def act(who: Stranger) -> None:
        conn = await who.connection(a.node, a.links.addresses[0])
        muxer = conn.muxed_conn
        with contextlib.suppress(MuxedStreamError):
            for _ in range(limits.LINK_STREAMS_MAX + 1):
                stream = await muxer.open_stream()
                if flood == "bytes":
                    muxer.write_now(struct.pack("!BBHII", 0, 0, 0, stream.stream_id, 2 * limits.LINK_WINDOW_BYTES))
        with trio.fail_after(limits.LINK_BARE_S - 2):
            await conn.event_closed.wait()

    await _as_stranger(act)
    await _still_works(a, b)


async def test_what_comes_together_with_the_end_of_a_stream_is_still_delivered(rig: Rig) -> None:
    a = await rig.peer(1)
    last = frame(SIGNED, b"last words")

    async def act(who: Stranger) -> None:
        stream = await who.stream(a.node, a.links.addresses[0])
        await stream.write(HELLO)
        await stream.read(1)
        inner = stream.muxed_stream
        inner.conn.write_now(struct.pack("!BBHII", 0, 0, FLAG_FIN, inner.stream_id, len(last)) + last)
        with contextlib.suppress(Exception):
            while await stream.read(100):
                pass

    await _as_stranger(act)
    await a.inbox.until(lambda: a.inbox.downs(node_of(99)))
    assert a.inbox.frames(node_of(99)) == [(SIGNED, b"last words")]


# -- processes -----------------------------------------------------------------------------------------


async def test_a_frozen_process_is_noticed_and_a_thawed_one_comes_back(rig: Rig) -> None:
    a = await rig.peer(1)
    async with _child(2, 0) as (process, address):
        a.links.connect(node_of(2), [address])
        await a.inbox.until(lambda: node_of(2) in a.links.peers)
        process.send_signal(signal.SIGSTOP)
        await a.inbox.until(lambda: a.inbox.downs(node_of(2)))
        assert a.inbox.downs(node_of(2))[0].reason == "silent"
        process.send_signal(signal.SIGCONT)
        await a.inbox.until(lambda: len(a.inbox.ups(node_of(2))) == 2)


async def test_a_killed_process_is_noticed_at_once_and_its_successor_is_linked_quickly(rig: Rig) -> None:
    a = await rig.peer(1)
    async with _child(2, 0) as (process, address):
        a.links.connect(node_of(2), [address])
        await a.inbox.until(lambda: node_of(2) in a.links.peers)
        process.kill()
        await a.inbox.until(lambda: a.inbox.downs(node_of(2)))
        assert a.inbox.downs(node_of(2))[0].reason == "closed"
    async with _child(2, 0, 1, a.links.addresses[0]):
        await a.inbox.until(lambda: len(a.inbox.ups(node_of(2))) == 2)
        a.links.send(node_of(2), SIGNED, b"echo")
        await a.inbox.until(lambda: a.inbox.frames(node_of(2)) == [(SIGNED, b"echo")])


# -- addresses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::1"])
async def test_what_we_say_we_listen_on_can_be_dialled(host: str) -> None:
    hello = Hello(VERSION, network_id(MESH), 1)
    a, b = (Libp2pLinks(seed_of(n), hello, random.Random(n), host=host) for n in (1, 2))
    at_a, at_b = Inbox(), Inbox()
    await a.open(at_a)
    await b.open(at_b)
    assert 1 <= len(b.addresses) <= limits.RECORD_ADDRESSES_MAX
    assert all("0.0.0.0" not in address for address in b.addresses)
    a.connect(node_of(2), b.addresses)
    await at_a.until(lambda: node_of(2) in a.peers)
    assert at_a.ups(node_of(2))[0].hello.addresses == b.addresses
    await a.aclose()
    await b.aclose()


async def test_a_machine_that_moved_is_told_at_its_new_address(monkeypatch: pytest.MonkeyPatch) -> None:
    links = Libp2pLinks(seed_of(1), Hello(VERSION, network_id(MESH), 1), random.Random(1), host="0.0.0.0")
    assert links.addresses == ()
    await links.open(Inbox())
    monkeypatch.setattr(libp2p_host, "_own_hosts", lambda _: ["10.0.0.7", "127.0.0.1"])
    assert [address.split("/")[2] for address in links.addresses] == ["10.0.0.7", "127.0.0.1"]
    await links.aclose()


@pytest.mark.parametrize(
    ("hosts", "told"),
    [(["127.0.0.1", "192.0.2.7"], ["192.0.2.7"]), (["127.0.0.1"], ["127.0.0.1"])],
    ids=["beside another address", "with no other address"],
)
async def test_a_loopback_address_is_told_only_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch, hosts: list[str], told: list[str]
) -> None:
    nics = {f"nic{at}": [SimpleNamespace(family=socket.AF_INET, address=host)] for at, host in enumerate(hosts)}
    monkeypatch.setattr(libp2p_host.psutil, "net_if_addrs", lambda: nics)
    links = Libp2pLinks(seed_of(1), Hello(VERSION, network_id(MESH), 1), random.Random(1), host="0.0.0.0")
    await links.open(Inbox())
    assert [address.split("/")[2] for address in links.addresses] == told
    await links.aclose()


# -- beginning and end ---------------------------------------------------------------------------------


async def test_closing_does_not_wait_for_a_frozen_peer(rig: Rig) -> None:
    a = await rig.peer(1)
    async with _child(2, 0) as (process, address):
        a.links.connect(node_of(2), [address])
        await a.inbox.until(lambda: node_of(2) in a.links.peers)
        process.send_signal(signal.SIGSTOP)
        while a.links.send(node_of(2), SIGNED, bytes(60_000)):
            await asyncio.sleep(0)
        async with asyncio.timeout(limits.LINK_CLOSE_S + 20):
            await a.links.aclose()


async def test_a_version_that_the_cures_were_not_written_for_is_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libp2p, "VERSION", "0.0.1")
    with pytest.raises(NetError) as refused:
        await rig.peer(1)
    assert refused.value.code == "libp2p-version"
    assert "0.0.1" in refused.value.hint


def test_a_key_that_is_not_ed25519_names_no_node() -> None:
    assert libp2p_patches.node_of(libp2p_patches.peer_id_of(b"k" * 32)) == b"k" * 32
    assert libp2p_patches.node_of(libp2p_patches.ID(b"\x12\x20" + bytes(32))) is None
