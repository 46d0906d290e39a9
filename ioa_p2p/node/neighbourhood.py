"""Which links the node wants: those of its teams, those of a search, and a few DHT neighbours for company.

    want(node, why) ──> links.connect            the last `why` gone ──> links.forget
    linked(node) ──> one dial a node, however many wait for it; one in vain is not repeated for a while

A node's link listens on the TCP port of the same number as its DHT's UDP port unless its record says otherwise,
so a DHT contact alone is enough to dial. That holds for contacts in the table, whom strangers reach; a node behind a
router is dialled at the addresses of its record alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain

from ioa_p2p.net.ports import LinkDown, Links, LinkUp
from ioa_p2p.node.silence import Silence
from ioa_p2p.steps import Candidate
from ioa_p2p.team.witness import WITNESS
from ioa_p2p.wire.dht import Contact
from ioa_p2p.wire.records import AgentRecord

NEIGHBOURS = 9  # directory neighbours kept linked; more cost memory, fewer see less
LOOK_S = 5.0  # how often neighbours are chosen anew
SEARCH_S = 60.0  # how long a link made by a search is kept for what follows


class Neighbourhood:
    """`contacts`: the DHT's good peers, best first. Feed link events to `on_link`.

    silence: nodes that nothing was heard of when it was looked for, not dialled for a search. Dials in vain are
    remembered apart from it, for the shortest time: datagrams of a node do not say that its links work again.
    """

    def __init__(self, links: Links, contacts: Callable[[], Sequence[Contact]], silence: Silence | None = None) -> None:
        self.silence = Silence() if silence is None else silence  # an empty one is false
        self.up: dict[bytes, LinkUp] = {}
        self._vain = Silence()
        self._links = links
        self._contacts = contacts
        self._wants: dict[bytes, dict[str, tuple[str, ...]]] = {}  # node -> why -> where
        self._dials: dict[bytes, asyncio.Future[bool]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def want(self, node: bytes, addresses: Sequence[str], why: str) -> None:
        """The node is dialled wherever anybody who wants it knows it to be: what a stranger on the local network says
        of it takes nothing away from what its own record says."""
        self._wants.setdefault(node, {})[why] = tuple(addresses)
        self._links.connect(node, self._addresses(node))

    def drop(self, node: bytes, why: str) -> None:
        wants = self._wants.get(node, {})
        wants.pop(why, None)
        if wants:
            self._links.connect(node, self._addresses(node))
        elif self._wants.pop(node, None) is not None:
            self._links.forget(node)

    def drop_all(self, why: str) -> None:
        """A team is over: its links may go unless something else wants them."""
        for node in [node for node, wants in self._wants.items() if why in wants]:
            self.drop(node, why)

    def choose(self) -> None:
        """Want links to a few contacts, now: the DHT may just have found the first."""
        contacts = {contact.key: contact for contact in self._contacts()}
        chosen = [node for node, wants in self._wants.items() if "neighbour" in wants]
        for node in chosen:
            if node not in contacts and node not in self._links.peers:
                self.drop(node, "neighbour")
        room = NEIGHBOURS - len(chosen)
        for contact in [one for node, one in contacts.items() if node not in chosen][: max(0, room)]:
            self.want(contact.key, (link_address(contact.host, contact.port),), "neighbour")

    def redial(self) -> None:
        """We woke up or moved: who is wanted and not linked is dialled now, not after a back-off of up to a minute."""
        self.silence.clear()
        self._vain.clear()
        for node in self._wants.keys() - self._links.peers:
            self._links.forget(node)
            self._links.connect(node, self._addresses(node))

    async def linked(self, node: bytes, addresses: Sequence[str], wait_s: float) -> bool:
        """Whether a link stands within `wait_s` of the first that asked; one made for this is kept for a minute."""
        if self.is_linked(node):
            return True
        if self.silence.has(node) or self._vain.has(node):
            return False
        dial = self._dials.get(node)
        if dial is None:
            loop = asyncio.get_running_loop()
            dial = self._dials[node] = loop.create_future()
            self.want(node, addresses, "search")
            loop.call_later(wait_s, self._dialled, node)
            loop.call_later(SEARCH_S, self.drop, node, "search")
        return await asyncio.shield(dial)

    def news(self, record: AgentRecord) -> None:
        """A proven record came: who issued it since it was looked for in vain is there again."""
        self.silence.news(record)
        self._vain.news(record)

    def witnesses(self, nodes: Sequence[bytes]) -> tuple[Candidate, ...]:
        """These as witnesses of a team, where the DHT knows them; who is linked is reached anyway."""
        known = {contact.key: (link_address(contact.host, contact.port),) for contact in self._contacts()}
        return tuple(Candidate(node, WITNESS, known.get(node, ())) for node in nodes)

    def is_linked(self, node: bytes) -> bool:
        return node in self._links.peers

    def _dialled(self, node: bytes) -> None:
        """A search's dial is over, one way or the other."""
        dial = self._dials.pop(node, None)
        if dial is None:
            return
        if not self.is_linked(node):
            self._vain.note(node, blamed=False)
        dial.set_result(self.is_linked(node))

    def on_link(self, event: LinkUp | LinkDown) -> None:
        if isinstance(event, LinkUp):
            self.up[event.peer] = event
            self.silence.heard(event.peer)
            self._vain.heard(event.peer)
            self._dialled(event.peer)
        else:
            self.up.pop(event.peer, None)

    def _addresses(self, node: bytes) -> tuple[str, ...]:
        """All that are known, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(self._wants[node].values())))

    async def _keep(self) -> None:
        """Keep links to a few contacts; who is neither linked nor known to the DHT any more is let go."""
        while True:
            self.choose()
            await asyncio.sleep(LOOK_S)


def link_address(host: str, port: int) -> str:
    """The multiaddr text of a link that listens where the DHT does."""
    return f"/ip{6 if ':' in host else 4}/{host}/tcp/{port}"
