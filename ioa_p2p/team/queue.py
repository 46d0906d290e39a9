"""How much work this node takes on: in all, and of one requester. What does not fit is BUSY.

    take(requester) ──> room? yes: counted until give(requester)      no: BUSY, with a time to ask again

All teams of a node share one queue. Strangers together leave some places free, so that the owner's own goals are
worked on whatever others want.
"""

from ioa_p2p.wire import limits


class Queue:
    """most: tasks in all. most_each: of one requester. own: the node itself, for which `kept` places stay."""

    def __init__(
        self,
        most: int = limits.QUEUE_MAX,
        most_each: int = limits.QUEUE_PER_REQUESTER_MAX,
        own: bytes = b"",
        kept: int = limits.QUEUE_KEPT,
    ) -> None:
        self.resize(most, most_each)
        self._own, self._kept = own, kept
        self._taken: dict[bytes, int] = {}

    def resize(self, most: int, most_each: int) -> None:
        """What was taken before stays, also beyond the new measure."""
        self._most, self._most_each = most, most_each

    @property
    def taken(self) -> int:
        return sum(self._taken.values())

    def take(self, requester: bytes) -> bool:
        """Room for one more? False is BUSY."""
        if self._taken.get(requester, 0) >= self._most_each or not self._has_room(requester):
            return False
        self.hold(requester)
        return True

    def hold(self, requester: bytes) -> None:
        """Count what was taken on in an earlier life: it is ours, whether there is room or not."""
        self._taken[requester] = self._taken.get(requester, 0) + 1

    def give(self, requester: bytes) -> None:
        self._taken[requester] -= 1
        if not self._taken[requester]:
            del self._taken[requester]

    def _has_room(self, requester: bytes) -> bool:
        if requester == self._own:
            return self.taken < self._most
        strangers = self.taken - self._taken.get(self._own, 0)
        return strangers < self._most - min(self._kept, self._most // 8) and self.taken < self._most
