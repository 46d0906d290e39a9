"""Two nodes with one key: how it shows in the records that reach us. DISCOVERY, "Identity".

    a newer record by an *older* start than the record it replaces ──> the older start still runs
    a record of our own key by a *newer* start than ours ────────────> somebody started a copy of us

A start's id is time-ordered, and each start of one node goes on from a larger seq, so neither happens to an honest key.
"""

from collections.abc import Callable

from ioa_p2p.dht.store import Item
from ioa_p2p.wire.records import AgentRecord


class Clones:
    """own: our key. boot: our start's id. on_clone(item) is told of what only a clone can have signed."""

    def __init__(self, own: bytes, boot: int, on_clone: Callable[[Item], None]) -> None:
        self._own = own
        self._boot = boot
        self._on_clone = on_clone

    def kept(self, old: Item | None, new: Item) -> None:
        """`new` was proven and took the place of `old`."""
        if isinstance(new.body, AgentRecord) and (self._of_us(new.body) or _went_back(old, new.body)):
            self._on_clone(new)

    def _of_us(self, record: AgentRecord) -> bool:
        return record.node == self._own and record.boot > self._boot


def _went_back(old: Item | None, record: AgentRecord) -> bool:
    return old is not None and isinstance(old.body, AgentRecord) and record.boot < old.body.boot
