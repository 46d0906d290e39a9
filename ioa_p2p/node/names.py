"""Host names to addresses, on a few threads of their own.

    addresses(host, port) ── a free thread: the system's resolver ──> (address, port), ...   too slow, unknown: none

The system's resolver blocks, for as long as a server that somebody else runs lets it wait. On the threads that the
whole node shares, a list of such names would bring everything else on them to a stop.
"""

import asyncio
import logging
import socket
from concurrent.futures import ThreadPoolExecutor

from ioa_p2p.wire import limits

THREADS = 4

log = logging.getLogger(__name__)


class Names:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="names")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def addresses(self, host: str, port: int) -> tuple[tuple[str, int], ...]:
        """What the name stands for now, each once, in the system's order of preference."""
        try:
            async with asyncio.timeout(limits.DNS_WAIT_S):
                found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host, port)
        except (OSError, TimeoutError, UnicodeError) as fault:
            log.warning("seed %s: %s", host, fault or "its name takes too long to resolve")
            return ()
        return tuple(dict.fromkeys(found))


def _look_up(host: str, port: int) -> list[tuple[str, int]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    return [(str(address[0]), int(address[1])) for *_, address in found]
