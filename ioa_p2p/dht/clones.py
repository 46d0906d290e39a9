"""Two nodes with one key: how it shows in what reaches us. DISCOVERY, "Identity".

    a newer record by an *older* start than the record it replaces ──┐
    a link of an *older* start than one already heard of ────────────┼──> alarm
    a record of our own key by a *newer* start than ours ────────────┘

A start's id is larger than that of every start before, and starts of one node follow each other: to an honest key none
of these happens.
"""

from collections import OrderedDict
from collections.abc import Callable

from ioa_p2p.dht.store import Item
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import AgentRecord


class Clones:
    """own: our key. boot: our start's id. on_clone(node, agent, number): a seq, or without an agent the older start."""

    def __init__(self, own: bytes, boot: int, on_clone: Callable[[bytes, str, int], None]) -> None:
        self._own = own
        self._boot = boot
        self._on_clone = on_clone
        self._newest: OrderedDict[bytes, int] = OrderedDict()

    def kept(self, old: Item | None, new: Item) -> None:
        """`new` was proven and took the place of `old`."""
        record = new.body
        if not isinstance(record, AgentRecord):
            return
        if self._of_us(record) or _went_back(old, record):
            self._on_clone(record.node, record.agent, record.seq)
        self._note(record.node, record.boot)

    def linked(self, node: bytes, boot: int) -> None:
        """A link to this start of `node` was made just now. boot: 0 if it is not known."""
        if 0 < boot < self._newest.get(node, 0):
            self._on_clone(node, "", boot)
        self._note(node, boot)

    def _of_us(self, record: AgentRecord) -> bool:
        return record.node == self._own and record.boot > self._boot

    def _note(self, node: bytes, boot: int) -> None:
        self._newest[node] = max(boot, self._newest.pop(node, 0))
        if len(self._newest) > limits.BOOTS_MAX:
            self._newest.popitem(last=False)


def _went_back(old: Item | None, record: AgentRecord) -> bool:
    return old is not None and isinstance(old.body, AgentRecord) and record.boot < old.body.boot
