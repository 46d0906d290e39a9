"""Through whom this node is reached, when strangers cannot reach it: a few of its neighbours pass links on to it.

    neighbours ── fit: dialled at a public address, in the DHT's table, says relay/1 ──> at most RELAYS asked
    RelayUp ──> `addresses` ──> on_change: records are issued anew          RelayDown ──> another is asked
    proven reachable after all ──> none

A relay that refused, or was lost, rests for a while, so that the next one is asked.
"""

import asyncio
from collections.abc import Callable, Mapping

from ioa_p2p.dht import space
from ioa_p2p.net.ports import Links, LinkUp, RelayDown, RelayUp

FEATURE = "relay/1"
"""What a node says in its hello that passes links on."""

RELAYS = 2  # one may die, and everybody still gets through at once by the other
LOOK_S = 5.0  # how often it is looked whether all is as it should be
REST_S = 3.0  # how long one that was lost is not asked: its link may be back by then
REFUSED_REST_S = 60.0  # likewise, one that refused


class Relays:
    """neighbours: links that stand. is_client: whether strangers cannot reach us. in_table: whether the DHT knows a
    node as one that strangers reach."""

    def __init__(
        self,
        links: Links,
        neighbours: Mapping[bytes, LinkUp],
        is_client: Callable[[], bool],
        in_table: Callable[[bytes], bool],
        on_change: Callable[[], None],
    ) -> None:
        self._links = links
        self._neighbours = neighbours
        self._is_client = is_client
        self._in_table = in_table
        self._on_change = on_change
        self._chosen: dict[bytes, str] = {}
        self._rest_until_s: dict[bytes, float] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where we are reached through others."""
        return tuple(address for address in self._chosen.values() if address)

    @property
    def serving(self) -> list[bytes]:
        return [node for node, address in self._chosen.items() if address]

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def on_event(self, event: RelayUp | RelayDown) -> None:
        before = self.addresses
        if isinstance(event, RelayUp):
            self._chosen[event.peer] = event.address
        else:
            self._chosen.pop(event.peer, None)
            rest_s = REFUSED_REST_S if event.reason.startswith("refused") else REST_S
            self._rest_until_s[event.peer] = asyncio.get_running_loop().time() + rest_s
            self.choose()
        if self.addresses != before:
            self._on_change()

    def choose(self) -> None:
        """Who serves us stays; free places go to neighbours that fit."""
        if self._is_client():
            fitting = [node for node, link in self._neighbours.items() if self._fits(node, link)]
            for node in [node for node in fitting if node not in self._chosen][: RELAYS - len(self._chosen)]:
                self._chosen[node] = ""
            self._links.relay_through(self._chosen)
        elif self._chosen:
            self._links.relay_through(())

    def _fits(self, node: bytes, link: LinkUp) -> bool:
        rests = self._rest_until_s.get(node, 0.0) > asyncio.get_running_loop().time()
        dialled = link.outbound and link.via is None and _is_public(link.address)
        return dialled and not rests and FEATURE in link.hello.features and self._in_table(node)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now = asyncio.get_running_loop().time()
            self._rest_until_s = {node: until for node, until in self._rest_until_s.items() if until > now}
            self.choose()


def _is_public(address: str) -> bool:
    """Of "/ip4/11.0.0.1/tcp/4001". A relay at home is of no use to strangers."""
    parts = address.split("/")
    return len(parts) > 2 and parts[1] in ("ip4", "ip6") and space.scope(parts[2]) is space.Scope.PUBLIC
