"""`python -m tests.net.child NUMBER PORT [PEER_NUMBER ADDRESS]`: a node in a process of its own.

Prints its address, dials the peer if one is named, echoes every frame, and ends with its standard input.
"""

import asyncio
import random
import sys
import time
from collections.abc import Sequence

from ioa_p2p.net.libp2p import Libp2pLinks
from ioa_p2p.net.ports import Frames, LinkEvent
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.link import VERSION, Hello
from tests.contracts.rig import MESH, node_of, seed_of


async def main(number: int, port: int, peer: tuple[int, str] | None) -> None:
    hello = Hello(VERSION, network_id(MESH), int(time.time() * 1000), "child")
    links = Libp2pLinks(seed_of(number), hello, random.Random(), port=port)

    def echo(events: Sequence[LinkEvent]) -> None:
        for event in events:
            if isinstance(event, Frames):
                for kind, body in event.frames:
                    links.send(event.peer, kind, body)

    await links.open(echo)
    print(links.addresses[0], flush=True)
    if peer:
        links.connect(node_of(peer[0]), [peer[1]])
    await asyncio.to_thread(sys.stdin.read)
    await links.aclose()


if __name__ == "__main__":
    other = (int(sys.argv[3]), sys.argv[4]) if len(sys.argv) > 3 else None
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), other))
