"""One member of a team as a process: the real election, driver, disk and clocks, with plain TCP between members.

    python -m tests.live.voter FOLDER NUMBER DOOR PORT...

PORT: of all members, in their order; ours is the NUMBER-th. DOOR: the file descriptor of the socket that listens there.

Frames: 4 bytes of length, then MessagePack [sender, kind, body]. From members: kind "decision". From clients:
"append" -> "ok" | "fail" | nothing, and "read" -> the decided values, or "fail".
"""

import asyncio
import random
import socket
import sys
from pathlib import Path
from typing import Any, cast

import msgspec

from ioa_p2p.errors import UsageError
from ioa_p2p.node.clock import now
from ioa_p2p.node.runtime import Committer, Driver
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.team.election_events import Committed, Propose
from ioa_p2p.team.timing import Timing
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import DecisionMessage
from tests.sim.teams import Cast
from tests.sim.trials.t26_history import read_decided, value_of

Answer = asyncio.StreamWriter
TIMING = Timing(beat_s=0.2, wait_beats=(2, 4))  # faster than a LAN: more elections in a short life


class Voter:
    def __init__(self, folder: Path, number: int, ports: list[int]) -> None:
        self._cast = Cast(len(ports), timing=TIMING)
        self._me, self._ports = self._cast.nodes[number], dict(zip(self._cast.nodes, ports, strict=True))
        storage = SqliteStorage(folder / f"voter-{number}.db")
        self._election = self._cast.make(self._me, lambda space: list(storage.scan(space)), random.Random(), now())
        self._driver = Driver(self._election, Committer(storage, print), now, self._send, self._emit)
        self._waiting: dict[bytes, Answer] = {}
        self._out: dict[bytes, asyncio.Queue[bytes]] = {node: asyncio.Queue(1_000) for node in self._ports}

    async def run(self, door: int) -> None:
        server = await asyncio.start_server(self._serve, sock=socket.socket(fileno=door))
        self._driver.start()
        async with server:
            await asyncio.gather(*(self._carry(node) for node in self._ports if node != self._me))

    # -- members

    def _send(self, to: bytes, message: Any) -> None:
        if not self._out[to].full():
            self._out[to].put_nowait(pack(self._me, "decision", codec.encode(message)))

    async def _carry(self, node: bytes) -> None:
        """To one other member, over and over: what does not arrive is lost."""
        writer: asyncio.StreamWriter | None = None
        while True:
            frame = await self._out[node].get()
            try:
                if writer is None:
                    _, writer = await asyncio.open_connection("127.0.0.1", self._ports[node])
                writer.write(frame)
                await asyncio.wait_for(writer.drain(), 1.0)
            except (OSError, TimeoutError):
                writer = None

    # -- all that comes in

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                sender, kind, body = await unpack(reader)
                self._take(sender, kind, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _take(self, sender: bytes, kind: str, body: bytes, writer: Answer) -> None:
        if kind == "decision":
            self._driver.message(sender, codec.decode(body, cast(Any, DecisionMessage)))
        elif kind == "append":
            self._append(body, writer)
        else:
            seen = read_decided(self._election, now())
            writer.write(pack(self._me, "fail", b"") if seen is None else pack(self._me, "ok", codec.encode(seen)))

    def _append(self, value: bytes, writer: Answer) -> None:
        step = value + bytes(4)
        self._waiting[value] = writer
        try:
            self._driver.command(Propose(step, value))
        except UsageError:
            del self._waiting[value]
            writer.write(pack(self._me, "fail", b""))

    def _emit(self, event: Any) -> None:
        if isinstance(event, Committed) and (writer := self._waiting.pop(value_of(event.entry.step), None)):
            writer.write(pack(self._me, "ok", b""))


def pack(sender: bytes, kind: str, body: bytes) -> bytes:
    data = msgspec.msgpack.encode((sender, kind, body))
    return len(data).to_bytes(4, "big") + data


async def unpack(reader: asyncio.StreamReader) -> tuple[bytes, str, bytes]:
    length = int.from_bytes(await reader.readexactly(4), "big")
    return msgspec.msgpack.decode(await reader.readexactly(length), type=tuple[bytes, str, bytes])


if __name__ == "__main__":
    folder, *numbers = sys.argv[1:]
    number, door, *ports = map(int, numbers)
    asyncio.run(Voter(Path(folder), number, ports).run(door))
