"""Comparing directories with link neighbours: on connect, and every 5 min. docs/wire.md, "Directory".

    link up: Digest ──> <── Digest      whoever lacks something: Want ──> <── Records ... until nothing is lacking
    an agent is elsewhere now, or gone: a Digest of that alone, at once, which its readers pass on likewise

A neighbour is no authority: what it hands over passes the same checks as a Store, and counts to a quota of its own.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.budget import Budget
from ioa_p2p.dht.records import Claim, Gate
from ioa_p2p.dht.store import Store
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Digest, Records, Want
from ioa_p2p.wire.records import AgentRecord


@dataclass(slots=True)
class Neighbour:
    """lacking: slots wanted from it and not come yet. compared: one exchange is complete."""

    lacking: dict[bytes, None] = field(default_factory=dict[bytes, None])
    compared: bool = False


class Neighbours:
    """on_compared(now) is called when an exchange with one of them is complete. faults: refused frames are counted."""

    def __init__(
        self,
        store: Store,
        gate: Gate,
        agenda: Agenda,
        out: list[Effect],
        faults: Counter[str],
        on_compared: Callable[[Now], None],
    ) -> None:
        self._faults = faults
        self._store = store
        self._gate = gate
        self._agenda = agenda
        self._out = out
        self._budget = Budget(*limits.DIGEST_BUDGET, limits.STORE_BUDGET_PEERS_MAX)
        self._news: dict[bytes, None] = {}
        self._on_compared = on_compared
        self._nodes: dict[bytes, Neighbour] = {}

    @property
    def compared(self) -> bool:
        """Whether directories were compared with anybody linked now."""
        return any(neighbour.compared for neighbour in self._nodes.values())

    def up(self, now: Now, node: bytes) -> None:
        """A newcomer is told of a part only, so that joining costs little."""
        self._nodes[node] = Neighbour()
        self._out.append(Send(node, self._digest(now, limits.DIGEST_JOIN_MAX)))

    def down(self, node: bytes) -> None:
        self._nodes.pop(node, None)

    def compare_all(self, now: Now) -> None:
        digest = self._digest(now, limits.DIGEST_ENTRIES_MAX)
        self._out += [Send(node, digest) for node in self._nodes]

    def changed(self, now: Now, slot: bytes) -> None:
        """What is held there speaks of another place than before, or of an end: neighbours hear of it at once."""
        if not self._news:
            self._agenda.at(now.boot + limits.DIGEST_NEWS_S, self.tell_news)
        self._news[slot] = None

    def digest(self, now: Now, node: bytes, digest: Digest) -> None:
        """Want what it has and we lack."""
        neighbour = self._neighbour(node)
        fresh = {slot: None for slot, seq in digest.entries if self._lacks(now, slot, seq)}
        neighbour.lacking = dict.fromkeys([*fresh, *neighbour.lacking][: limits.DIGEST_ENTRIES_MAX])
        self._want(now, node, neighbour, fresh)

    def want(self, now: Now, node: bytes, want: Want) -> None:
        """Hand over as much as fits one answer."""
        self._neighbour(node)
        frames: list[bytes] = []
        room = limits.RECORDS_BYTES_MAX
        for slot in want.slots:
            held = self._store.get(now, slot)
            if held is not None and room >= len(held.item.raw):
                room -= len(held.item.raw)
                frames.append(held.item.raw)
        self._out.append(Send(node, Records(tuple(frames))))

    def records(self, now: Now, node: bytes, records: Records) -> None:
        """Keep what stands the checks; want the rest if this brought us on."""
        neighbour = self._neighbour(node)
        before = len(neighbour.lacking)
        for raw in records.frames:
            self._admit(now, node, neighbour, raw)
        if len(neighbour.lacking) == before:
            neighbour.lacking = {}
        self._want(now, node, neighbour, neighbour.lacking)

    def _admit(self, now: Now, node: bytes, neighbour: Neighbour, raw: bytes) -> None:
        try:
            claim = Claim(raw)
            if claim.slot not in neighbour.lacking:
                raise PeerError("unasked-record")
            del neighbour.lacking[claim.slot]
            self._budget.spend(now, node)
            self._gate.admit(now, claim, node)
        except PeerError as fault:
            self._faults[fault.code] += 1

    def _want(self, now: Now, node: bytes, neighbour: Neighbour, slots: dict[bytes, None]) -> None:
        if slots:
            self._out.append(Send(node, Want(tuple(slots))))
        elif not neighbour.lacking and not neighbour.compared:
            neighbour.compared = True
            self._on_compared(now)

    def _lacks(self, now: Now, slot: bytes, seq: int) -> bool:
        held = self._store.get(now, slot)
        return held is None or held.item.body.seq < seq

    def tell_news(self, now: Now) -> None:
        """What changed is not kept back any longer."""
        held = [self._store.get(now, slot) for slot in list(self._news)[: limits.DIGEST_ENTRIES_MAX]]
        digest = Digest(tuple((one.item.slot, one.item.body.seq) for one in held if one is not None))
        self._news.clear()
        if digest.entries:
            self._out += [Send(node, digest) for node in self._nodes]

    def _digest(self, now: Now, entries_max: int) -> Digest:
        """Records before pointers, the newest first."""
        alive = [held.item for held in self._store if held.until_s > now.boot]
        alive.sort(key=lambda item: (isinstance(item.body, AgentRecord), item.body.issued), reverse=True)
        return Digest(tuple((item.slot, item.body.seq) for item in alive[:entries_max]))

    def _neighbour(self, node: bytes) -> Neighbour:
        neighbour = self._nodes.get(node)
        if neighbour is None:
            raise PeerError("no-neighbour", f"{ids.node_short(node)} has no link here")
        return neighbour
