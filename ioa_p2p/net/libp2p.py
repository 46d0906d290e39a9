"""Links over libp2p: TCP, Noise, Yamux, one long `/ioa/link/1` stream for each neighbour.

    asyncio                                      │ trio, a thread of its own
    send ─> link.outbox ─ touched, next round ───┼─> Host.wake ─> one write for all that waits
    on_events <─ one batch <─ call_soon_threadsafe ┼── Host.inbox <─ one receive, no await, Switchboard

libp2p is imported by `open`, in its thread: 1.2 CPU-seconds that must not stop the caller's loop.
"""

import asyncio
import importlib.metadata
import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ioa_p2p.errors import NetError
from ioa_p2p.net.ports import Endpoint, Frames, LinkDown, LinkEvent, LinkUp, RelayTerms
from ioa_p2p.net.switchboard import Link
from ioa_p2p.wire import limits
from ioa_p2p.wire.link import Hello

if TYPE_CHECKING:
    from ioa_p2p.net.libp2p_host import Host


VERSION = "0.8.1"

log = logging.getLogger(__name__)


def check_version() -> None:
    """Raises NetError('libp2p-version') for any but the one that libp2p_patches.py was written for."""
    found = importlib.metadata.version("libp2p")
    if found != VERSION:
        hint = f"install libp2p=={VERSION}, as the lock files do"
        raise NetError("libp2p-version", f"libp2p {found} is installed; this program needs {VERSION}", hint)


class Libp2pLinks:
    """`Links` over libp2p.

    seed: the 32 secret bytes of our Ed25519 key. hello: what we say of ourselves; its addresses, if empty, become
    the ones we listen on. dice: thrown on the other thread, so not to be shared. host: a literal address,
    "0.0.0.0" for all; port 0: any free one. relay: what we give to others who want to be reached; None: nothing.
    """

    def __init__(
        self, seed: bytes, hello: Hello, dice: random.Random, host: str = "127.0.0.1", port: int = 0,
        relay: RelayTerms | None = None,
    ) -> None:  # fmt: skip
        self._seed = seed
        self._hello = hello
        self._dice = dice
        self._listen = Endpoint(host, port)
        self._relay = relay
        self._counters: Counter[str] = Counter()
        self._standing: dict[bytes, Link] = {}
        self._touched: set[Link] = set()
        self._host: Host | None = None
        self._thread: threading.Thread | None = None
        self._on_events: Callable[[Sequence[LinkEvent]], None]
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Future[None]

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._host.addresses if self._host else ()

    @property
    def peers(self) -> frozenset[bytes]:
        return frozenset(self._standing)

    @property
    def counters(self) -> dict[str, int]:
        """Ours and the other thread's; `dict` copies at one go, whatever that thread does."""
        theirs = dict(self._host.switchboard.counters) if self._host else {}
        return dict(self._counters) | theirs

    async def open(self, on_events: Callable[[Sequence[LinkEvent]], None]) -> None:
        """Also raises NetError('libp2p-version' | 'cannot-bind')."""
        self._loop = asyncio.get_running_loop()
        self._on_events = on_events
        self._ended = self._loop.create_future()
        opened: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name="libp2p", daemon=True)
        self._thread.start()
        await asyncio.wait([opened, self._ended], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            self._thread = None
            self._ended.result()

    def connect(self, peer: bytes, addresses: Sequence[str]) -> None:
        if self._host:
            self._host.soon(self._host.connect, peer, tuple(addresses))

    def forget(self, peer: bytes) -> None:
        if self._host:
            self._host.soon(self._host.forget, peer)

    def cut(self, peer: bytes, reason: str) -> None:
        if self._host:
            self._host.soon(self._host.cut, peer, reason)

    def relay_through(self, peers: Collection[bytes]) -> None:
        if self._host:
            self._host.soon(self._host.relay_through, frozenset(peers))

    def send(self, peer: bytes, kind: int, body: bytes) -> bool:
        link = self._standing.get(peer)
        if link is None:
            self._counters["send-no-link"] += 1
            return False
        if not link.outbox.put(kind, body):
            self._counters["send-refused"] += 1
            return False
        if not self._touched:
            self._loop.call_soon(self._pass_on)
        self._touched.add(link)
        return True

    async def aclose(self) -> None:
        """Returns within LINK_CLOSE_S, whatever the peers do."""
        if self._host is None or self._thread is None:
            return
        self._pass_on()
        host, self._thread = self._host, None
        host.soon(host.stop)
        await asyncio.wait([self._ended], timeout=limits.LINK_CLOSE_S)

    # -- between the threads -----------------------------------------------------------------------------

    def _pass_on(self) -> None:
        """What was sent in this round of the loop, in one wake-up of the other thread."""
        touched, self._touched = self._touched, set()
        if touched and self._host:
            self._host.soon(self._host.wake, touched)

    def _deliver(self) -> None:
        """Everything in the inbox, as one batch."""
        host = self._host
        if host is None:
            return
        host.posted = False  # before reading: what comes from now on calls again
        batch: list[LinkEvent] = []
        while host.inbox:
            event, link = host.inbox.popleft()
            batch.append(event)
            self._note(host, event, link)
        if batch:
            self._on_events(batch)
        if host.withheld:
            host.soon(host.credit)

    def _note(self, host: "Host", event: LinkEvent, link: Link | None) -> None:
        if isinstance(event, Frames):
            host.read_bytes += sum(len(body) for _, body in event.frames)
        elif isinstance(event, LinkUp) and link is not None:
            self._standing[event.peer] = link
        elif isinstance(event, LinkDown):
            self._standing.pop(event.peer, None)

    def _run(self, opened: "asyncio.Future[None]") -> None:
        """The whole life of the other thread."""
        fault: NetError | None = None
        try:
            self._serve(opened)
        except NetError as refused:
            fault = refused
        except Exception as broken:
            log.exception("libp2p has failed; no link of this node stands any more")
            fault = NetError("libp2p-failed", f"{type(broken).__name__}: {broken}", "see the log")
        self._tell(self._end, fault)

    def _serve(self, opened: "asyncio.Future[None]") -> None:
        check_version()  # before any of it is imported
        import trio

        from ioa_p2p.net.libp2p_host import Host

        async def main() -> None:
            news = partial(self._tell, self._deliver)
            host = Host(self._seed, self._hello, self._dice, self._listen, self._relay, news)
            await host.run(lambda: self._tell(self._begin, host, opened))

        trio.run(main)  # pyright: ignore[reportUnknownMemberType]

    def _tell(self, call: Callable[..., None], *args: object) -> None:
        """Call on the asyncio loop; one that is closed wants to hear nothing."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    def _begin(self, host: "Host", opened: "asyncio.Future[None]") -> None:
        """The host listens; its first events may come right behind this call."""
        self._host = host
        if not opened.done():
            opened.set_result(None)

    def _end(self, fault: NetError | None) -> None:
        """The other thread is gone: as asked, because it could not listen, or broken."""
        for peer in list(self._standing):
            del self._standing[peer]
            self._on_events([LinkDown(peer, "closed")])
        if fault is None:
            self._ended.set_result(None)
        else:
            self._counters[f"ended {fault.code}"] += 1
            self._ended.set_exception(fault)
            self._ended.exception()  # whoever still waits is told; nobody may
